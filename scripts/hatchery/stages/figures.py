"""The stage that draws any figure of an experiment or a study."""

from collections.abc import Mapping
from typing import Any

from hatchery.analysis.msgs_features import bias_features
from hatchery.evaluation.perplexity.settings import OPTIONAL
from hatchery.experiment.continuation import KEY
from hatchery.experiment.overrides import pretraining_of
from hatchery.experiment.project import Project
from hatchery.stages.analysis import published_of, runs_of, sets_of_many
from hatchery.stages.record import Stage
from hatchery.views.figures.registry import NEEDS, declared_figures

MOST_DRAWN = 40
"""Models that a figure shows: with more of them nothing can be told apart, and the file grows by megabytes."""


def drawable(project: Project, experiment: str) -> list[str]:
    """What an experiment's results give figures to draw (`NEEDS`)."""
    block = project.experiment(experiment)
    tasks, runs, shared = list(block["finetuning"]["tasks"]), list(block["runs"].values()), block["pretraining"]
    lacking = {
        # Of models that only add their layers, there is nothing to see but ones.
        "layer_weights": not any(_weighs_layers(project, run) for run in runs),
        **{
            key: not any(run["pretraining"].get(key, shared[key]) for run in runs)
            for key in ("divergences", "bias_drift")
        },
        "frequencies": not (block["perplexity"]["splits"] and block["perplexity"][OPTIONAL]),
        "translations": not any(
            pretraining_of(block, run)["objective"]["task"] == "translation" for run in block["runs"]
        ),
        "translated_tests": not block["translation"]["tests"],
        "regularised_starts": not (block["translation"]["tests"] and regularised_starts(block)),
        "sweeps": not project.swept_values(experiment),
        "minimal_pairs": not block["minimal_pairs"],
        "tasks": not tasks,
        "ambiguous_tasks": all(bias_features(task) is None for task in tasks),
        "probes": all(project.block("task", task)["head"]["kind"] != "span_classification" for task in tasks),
    }
    return [need for need in NEEDS if not lacking.get(need, False)]


def _weighs_layers(project: Project, run: Mapping[str, Any]) -> bool:
    model = project.block("model", run["model"])
    return bool(run["model_changes"].get("layer_weighting", model["layer_weighting"]) != "none")


def regularised_starts(experiment: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """The runs that start from a run with `unigram_penalty`, and those that differ from them in nothing else.

    With that penalty and its steps, both 0 where there was none; empty where no run starts so.
    """
    settings = {run: pretraining_of(experiment, run) for run in experiment["runs"]}
    found, compared = {}, []
    for run, own in settings.items():
        before = settings.get((own[KEY] or {}).get("run"), own)
        if penalty := before["objective"].get("unigram_penalty", 0) if before is not own else 0:
            found[run] = {"penalty": penalty, "steps": before["steps"]}
            compared.append((experiment["runs"][run]["model"], {**own, KEY: None}))
    others = {
        run: {"penalty": 0.0, "steps": 0}
        for run, own in settings.items()
        if (experiment["runs"][run]["model"], own) in compared
    }
    return {**others, **found}


def figure_settings(project: Project, experiment: str, figure: str) -> dict[str, Any]:
    """A figure of an experiment or a study, with the first models as far as they fit, and what it marks of papers.

    The experiments of a study that were not evaluated in this way are named, and none of their models is drawn.
    """
    block, declared, runs = project.results_of(experiment), declared_figures()[figure], runs_of(project, experiment)
    needs, parts = {need for need in declared.needs if need in NEEDS}, project.parts(experiment)
    without = [part for part in parts if project.is_study(experiment) and not needs <= set(drawable(project, part))]
    all_models = list(dict.fromkeys(run["model"] for run in runs))
    runs = [run for run in runs if run["model"].partition("/")[0] not in without]
    models = list(dict.fromkeys(run["model"] for run in runs))
    sets = sets_of_many(project, experiment, models) if declared.by_set else {}
    # A model has the place, and so the colour, that it has where all are shown.
    shifted = not sets and models != all_models[: len(models)]
    regularised: dict[str, Any] = {}
    if "regularised_starts" in needs:
        for part in parts:
            prefix = f"{part}/" if project.is_study(experiment) else ""
            found = regularised_starts(project.experiment(part))
            regularised |= {prefix + run: start for run, start in found.items()}
        models = [model for model in models if model in regularised]
    swept: dict[str, Any] = {}
    if "sweeps" in needs:
        for part in parts:
            prefix = f"{part}/" if project.is_study(experiment) else ""
            for run, told in project.swept_values(part).items():
                swept[prefix + run] = {**told, "line": prefix + told["line"]}
        models = [model for model in models if model in swept]
    most = len(models) if declared.all_models or sets else MOST_DRAWN
    left_out = len(models[most:])
    return {
        "figure": figure,
        "version": declared.version,
        "experiment": experiment,
        "runs": [run for run in runs if run["model"] in models[:most]],
        "style": block["figures"],
        **({"left_out": left_out} if left_out else {}),
        **({"without": without} if without else {}),
        **({"all_models": all_models} if shifted else {}),
        **({"sets": sets} if sets else {}),
        **({"regularised": regularised} if regularised else {}),
        **({"swept": swept} if swept else {}),
        **({"published": published_of(project, experiment)} if declared.published else {}),
    }


STAGES = (
    Stage(
        name="draw_figure",
        # What all figures share; each has a version of its own, in its file.
        version=1,
        settings=figure_settings,
        arguments=lambda layout, experiment, figure: {"tables": layout.figure_tables(experiment, figure)},
        environment="analysis",
        sort="local",
        memory_mb=2000,
        minutes=10,
    ),
)
