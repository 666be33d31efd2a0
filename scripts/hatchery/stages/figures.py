"""The stage that draws any figure of an experiment or a study."""

from dataclasses import replace

from hatchery.analysis.settings import RegularisedStart, models_in_order
from hatchery.analysis.suite_averages import bias_features
from hatchery.experiment.experiment_file import Experiment
from hatchery.experiment.project import Project
from hatchery.settings.fields import ABSENT
from hatchery.stages.analysis import names_of, published_of, sets_of_many
from hatchery.stages.record import Stage
from hatchery.views.figures.registry import NEEDS, declared_figures

MOST_DRAWN = 40
"""Models that a figure shows: with more of them nothing can be told apart, and the file grows by megabytes."""


def drawable(project: Project, experiment: str) -> list[str]:
    """What an experiment's results give figures to draw (`NEEDS`)."""
    block = project.experiment(experiment)
    tasks, trainings = block.finetuning.tasks, [run.pretraining for run in block.runs.values()]
    tests = block.translation.tests
    lacking = {
        # Of models that only add their layers, there is nothing to see but ones.
        "layer_weights": all(project.model_of(experiment, run).layer_weighting == "none" for run in block.runs),
        "divergences": not any(training.divergences for training in trainings),
        "bias_drift": not any(training.bias_drift for training in trainings),
        "frequencies": not (block.perplexity.splits and block.perplexity.frequency_bin_nats),
        "translations": all(training.objective.task != "translation" for training in trainings),
        "translated_tests": not tests,
        "regularised_starts": not (tests and regularised_starts(block)),
        "sweeps": not project.expansion(experiment).swept_values(),
        "minimal_pairs": not block.minimal_pairs,
        "tasks": not tasks,
        "ambiguous_tasks": all(bias_features(task) is None for task in tasks),
        "probes": all(project.task(task).head.kind != "span_classification" for task in tasks),
    }
    return [need for need in NEEDS if not lacking.get(need, False)]


def regularised_starts(experiment: Experiment) -> dict[str, RegularisedStart]:
    """The runs that start from a run with `unigram_penalty`, and those that differ from them in nothing else.

    With that penalty and its steps, both 0 where there was none; empty where no run starts so.
    """
    found, compared, runs = dict[str, RegularisedStart](), [], experiment.runs
    for run, entry in runs.items():
        start = entry.pretraining.initialise_from
        before = None if start is None or start.run is ABSENT else runs.get(start.run)
        if before is not None and (penalty := getattr(before.pretraining.objective, "unigram_penalty", 0.0)):
            found[run] = RegularisedStart(penalty, before.pretraining.steps)
            compared.append((entry.model, entry.model_changes, replace(entry.pretraining, initialise_from=None)))
    others = {
        run: RegularisedStart(0.0, 0)
        for run, entry in runs.items()
        if (entry.model, entry.model_changes, entry.pretraining) in compared
    }
    return {**others, **found}


def figure_settings(project: Project, experiment: str, figure: str) -> dict[str, object]:
    """A figure of an experiment or a study, with the first models as far as they fit, and what it marks of papers.

    The experiments of a study that were not evaluated in this way are named, and none of their models is drawn.
    """
    block, declared, runs = project.results_of(experiment), declared_figures()[figure], project.shown_runs(experiment)
    needs, parts = {need for need in declared.needs if need in NEEDS}, project.parts(experiment)
    without = [part for part in parts if project.is_study(experiment) and not needs <= set(drawable(project, part))]
    all_models = models_in_order(runs)
    runs = [run for run in runs if run.model.partition("/")[0] not in without]
    models = models_in_order(runs)
    sets = sets_of_many(project, experiment, models) if declared.by_set else {}
    # A model has the place, and so the colour, that it has where all are shown.
    shifted = not sets and models != all_models[: len(models)]
    regularised = dict[str, RegularisedStart]()
    if "regularised_starts" in needs:
        regularised = project.of_parts(experiment, lambda part: regularised_starts(project.experiment(part)))
        models = [model for model in models if model in regularised]
    swept = dict[str, object]()
    if "sweeps" in needs:
        for model, told in project.of_parts(experiment, lambda part: project.expansion(part).swept_values()).items():
            # Lines are called after their experiments as models are.
            swept[model] = {**told, "line": f"{model.removesuffix(model.rpartition('/')[2])}{told['line']}"}
        models = [model for model in models if model in swept]
    most = len(models) if declared.all_models or sets else MOST_DRAWN
    left_out = len(models[most:])
    return {
        "figure": figure,
        "version": declared.version,
        "experiment": experiment,
        "runs": [names_of(run) for run in runs if run.model in models[:most]],
        "style": block.figures,
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
        inputs=lambda results, experiment, figure: {"tables": results.figure_tables(experiment, figure)},
        environment="analysis",
        sort="local",
        memory_mb=2000,
        minutes=10,
    ),
)
