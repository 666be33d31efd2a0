"""Stages that read results: tables, pages, cards, exported models."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from hatchery.analysis.settings import OTHER, models_in_order
from hatchery.errors import ConfigError
from hatchery.evaluation.translation.settings import ALC_STEPS, translated_runs
from hatchery.experiment.experiment_file import Experiment, Published
from hatchery.experiment.paper_tables import paper_tables
from hatchery.experiment.project import Project
from hatchery.experiment.raw_inputs import raw_inputs
from hatchery.experiment.seeded_run import SeededRun
from hatchery.stages.record import Stage
from hatchery.training.objectives import DEFAULT_TASK
from hatchery.typed import keys_of

MOST_BY_NAME = 12
"""Models that a figure or a table can tell apart by their names alone."""


def runs_of(project: Project, experiment: str) -> list[dict[str, object]]:
    """The pretrained models of an experiment or a study: model, seed, and what tables call them."""
    return [names_of(run) for run in project.shown_runs(experiment)]


def published_of(project: Project, experiment: str) -> Published | list[Published] | None:
    """The published rows that an experiment repeats, or those of each experiment of a study."""
    if not project.is_study(experiment):
        return project.experiment(experiment).published
    return under_names_of_study({part: project.experiment(part).published for part in project.parts(experiment)})


def under_names_of_study(chosen: Mapping[str, Published | None]) -> list[Published]:
    """What experiments repeat, if anything, with their models as a study of them calls these."""
    return [
        replace(block, rows={f"{part}/{model}": row for model, row in block.rows.items()})
        for part, block in chosen.items()
        if block is not None
    ]


def sets_of_many(project: Project, experiment: str, models: Sequence[str]) -> dict[str, str]:
    """The set of each of many models, as people read it; none where they are few, or some are in no set of a grid."""
    if len(models) <= MOST_BY_NAME:
        return {}
    study = project.is_study(experiment)
    sets = project.sets_of(project.parts(experiment)) if study else project.expansion(experiment).sets()
    parts: dict[str, set[str]] = {}
    for model, name in sets.items():
        parts.setdefault(name, set()).add(model.partition("/")[0] if study else "")
    named = {
        model: f"{model.partition('/')[0]}: {name}" if len(parts[name]) > 1 else name for model, name in sets.items()
    }
    return {model: named[model] for model in models} if set(models) <= set(named) else {}


def names_of(run: SeededRun) -> dict[str, object]:
    """A pretrained model: model, seed, and what tables call it."""
    # A label only where there is one, so that the tables of experiments without sweeps stay as they are.
    return {"name": run.name, "model": run.model, "seed": run.seed, **({"label": run.label} if run.label else {})}


def collect_settings(project: Project, experiment: str) -> dict[str, object]:
    """The tidy tables of an experiment."""
    block = project.experiment(experiment)
    chosen, translated = block.translation, translated_runs(block.translation, block.runs)
    untranslated = [run for run in block.runs if run not in translated]
    return {
        "experiment": experiment,
        "runs": runs_of(project, experiment),
        "suites": block.minimal_pairs,
        "tasks": list(block.finetuning.tasks),
        "perplexity": bool(block.perplexity.splits),
        "baselines": block.baselines,
        # Only where there are such, so that other experiments stay as they are.
        **({"translation": True} if chosen.tests else {}),
        **({"untranslated": untranslated} if chosen.tests and untranslated else {}),
        **({"alc_steps": chosen.alc_steps} if chosen.alc_steps != ALC_STEPS else {}),
    }


def summary_settings(project: Project, experiment: str) -> dict[str, object]:
    """The table of an experiment or a study."""
    blocks = [project.experiment(part) for part in project.parts(experiment)]
    objectives = project.of_parts(experiment, lambda part: _other_objectives(project.experiment(part)))
    return {
        "experiment": experiment,
        "runs": runs_of(project, experiment),
        "suites": _each_once(block.minimal_pairs for block in blocks),
        "tasks": _each_once(block.finetuning.tasks for block in blocks),
        "baselines": list(project.of_parts(experiment, lambda part: dict.fromkeys(project.experiment(part).baselines))),
        "published": published_of(project, experiment),
        **({"objectives": objectives} if objectives else {}),
    }


def _other_objectives(experiment: Experiment) -> dict[str, str]:
    """The task of every model that was not trained on masked text; of models of others, that they are such."""
    tasks = {run: entry.pretraining.objective.task for run, entry in experiment.runs.items()}
    others = {run: task for run, task in tasks.items() if task != DEFAULT_TASK}
    return others | (dict.fromkeys(experiment.baselines, OTHER) if experiment.perplexity.splits else {})


def _each_once(lists: Iterable[Iterable[str]]) -> list[str]:
    return list(dict.fromkeys(name for names in lists for name in names))


def tables_settings(project: Project, experiment: str) -> dict[str, object]:
    """The tables in the layout of a paper. Raises ConfigError for an experiment that repeats none."""
    block = project.experiment(experiment)
    chosen = paper_tables(project, experiment)
    if chosen is None:
        raise ConfigError(
            f"results/{experiment}/paper_tables: the experiment repeats no paper: it has neither `published` nor"
            " `paper_tables`"
        )
    return {
        "experiment": experiment,
        "runs": runs_of(project, experiment),
        "tasks": list(block.finetuning.tasks),
        "baselines": block.baselines,
        **chosen,
    }


def page_settings(project: Project, experiment: str) -> dict[str, object]:
    """The page of an experiment or a study."""
    parts = {part: project.experiment(part) for part in project.parts(experiment)}
    sets = sets_of_many(project, experiment, models_in_order(project.shown_runs(experiment)))
    told = {part: {"description": block.description, "corpus": block.corpus} for part, block in parts.items()}
    return {
        "experiment": experiment,
        "description": project.results_of(experiment).description,
        "runs": runs_of(project, experiment),
        "style": project.results_of(experiment).figures,
        **({"parts": told} if project.is_study(experiment) else {}),
        **({"sets": sets} if sets else {}),
    }


def provenance_settings(project: Project, experiment: str) -> dict[str, object]:
    """The page that leads from every number to its files. Raises ConfigError for an unknown experiment."""
    project.results_of(experiment)
    return {"experiment": experiment}


def export_settings(project: Project, experiment: str, run: str) -> dict[str, object]:
    """A model as a folder for the `transformers` library."""
    block = project.experiment(experiment)
    chosen = project.seeded_run(experiment, run)
    settings = block.runs[chosen.model]
    corpus = project.corpus(block.corpus)
    sources = {source["name"]: source for source in raw_inputs(project, block.corpus)}
    return {
        "experiment": experiment,
        "description": block.description,
        "run": names_of(chosen),
        "seeds": settings.seeds,
        "model": settings.model,
        "model_description": keys_of(project.model(settings.model))["description"],
        "corpus": block.corpus,
        "corpus_description": corpus.description,
        "languages": corpus.languages,
        "sources": [{**sources[name], "dataset": _hub_dataset(project, name)} for name in sorted(sources)],
    }


def filled_sentences_settings(project: Project, experiment: str, run: str) -> dict[str, object]:
    """What a model writes into gaps: model and corpus alone. Raises ConfigError for an unknown model."""
    project.seeded_run(experiment, run)
    return {}


def _hub_dataset(project: Project, source: str) -> str | None:
    """The data set of the hub that a raw input comes from; None for embedded ones and where the user gives a path."""
    data = project.raw_input(source)
    return None if data is None or data.hub is None or data.path is not None else data.hub.dataset


def exports_settings(project: Project, experiment: str) -> dict[str, object]:
    """The list of exported models."""
    names = [run.name for run in project.seeded_runs(experiment)]
    return {"experiment": experiment, "description": project.experiment(experiment).description, "runs": names}


# Views are light: minutes on the machine that submits.
_view = partial(Stage, environment="analysis", sort="local", memory_mb=2000, minutes=10)

STAGES = (
    _view(
        name="collect_measurements",
        version=6,
        settings=collect_settings,
        inputs=lambda results, experiment: {
            "pretraining": results.pretrained(experiment),
            "minimal_pairs": results.minimal_pairs(experiment),
            "finetuning": results.finetuned(experiment),
            "perplexity": results.perplexities(experiment),
            "translation": results.translated(experiment),
            "baseline": results.baselines(experiment),
            "tokens": results.tokens(experiment),
        },
        minutes=30,
    ),
    _view(
        name="summarise",
        version=5,
        settings=summary_settings,
        inputs=lambda results, experiment: {"published": results.published(experiment)},
    ),
    _view(
        name="write_tables",
        version=4,
        settings=tables_settings,
        inputs=lambda results, experiment: {
            "card": results.card_statistics(experiment),
            "task": results.tuned_tasks(experiment),
        },
    ),
    _view(
        name="write_page",
        version=12,
        settings=page_settings,
        inputs=lambda results, experiment: {
            "card": results.cards(experiment),
            "pretraining": results.pretrained(experiment),
            "tables": results.paper_tables(experiment),
            "part": results.pages_of_parts(experiment),
            "analysis": results.analyses(experiment),
            "filled": results.filled_sentences(experiment),
        },
    ),
    _view(name="write_provenance", version=7, settings=provenance_settings, memory_mb=1000),
    _view(name="export_model", version=5, settings=export_settings, environment="evaluation", memory_mb=3000),
    _view(
        name="list_exported_models",
        version=1,
        settings=exports_settings,
        inputs=lambda results, experiment: {"model": results.exported(experiment)},
        environment="evaluation",
        memory_mb=500,
    ),
    _view(
        name="fill_sentences",
        version=4,
        settings=filled_sentences_settings,
        environment="evaluation",
        memory_mb=3000,
    ),
)
