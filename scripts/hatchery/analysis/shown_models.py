"""The models of an experiment or a study as views are told of them: names, sets, and the published rows they repeat."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from hatchery.experiment.seeded_run import SeededRun

if TYPE_CHECKING:
    from hatchery.experiment.experiment_file import Published
    from hatchery.experiment.project import Project

MOST_BY_NAME = 12
"""Models that a figure or a table can tell apart by their names alone."""


def runs_of(project: "Project", experiment: str) -> list[dict[str, object]]:
    """The pretrained models of an experiment or a study: model, seed, and what tables call them."""
    return [names_of(run) for run in project.shown_runs(experiment)]


def names_of(run: SeededRun) -> dict[str, object]:
    """A pretrained model: model, seed, and what tables call it."""
    # What is not there is not said, so that the tables of experiments without sweeps stay as they are.
    told = {"label": run.label, "is_baseline": run.is_baseline}
    named = {"name": run.name, "model": run.model, "seed": run.seed}
    return named | {key: value for key, value in told.items() if value}


def published_of(project: "Project", experiment: str) -> "Published | list[Published] | None":
    """The published rows that an experiment repeats, or those of each experiment of a study."""
    if not project.is_study(experiment):
        return project.experiment(experiment).published
    return under_names_of_study({part: project.experiment(part).published for part in project.parts(experiment)})


def under_names_of_study(chosen: Mapping[str, "Published | None"]) -> list["Published"]:
    """What experiments repeat, if anything, with their models as a study of them calls these."""
    return [
        replace(block, rows={f"{part}/{model}": row for model, row in block.rows.items()})
        for part, block in chosen.items()
        if block is not None
    ]


def sets_of_many(project: "Project", experiment: str, models: Sequence[str]) -> dict[str, str]:
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
