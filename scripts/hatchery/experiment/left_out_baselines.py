"""Baselines that an experiment names, and that cannot be had or are not wanted here: one key of config.yaml."""

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hatchery.experiment.experiment_file import Experiment


LEAVE_OUT = "leave_out_baselines"
"""The key of the main configuration."""


def without_baselines(experiment: "Experiment", left_out: Collection[str]) -> "Experiment":
    """The experiment without these baselines, and without the published rows that they repeat."""
    gone = [name for name in experiment.baselines if name in left_out]
    if not gone:
        return experiment
    kept = tuple(name for name in experiment.baselines if name not in gone)
    published = experiment.published
    if published is not None:
        rows = {model: row for model, row in published.rows.items() if model not in gone}
        published = replace(published, rows=rows)
    return replace(experiment, baselines=kept, published=published)


def advice(baselines: Iterable[str]) -> str:
    """What to do without these baselines, to stand behind what is said of a missing one; empty for none."""
    names = ", ".join(baselines)
    return f"; to go on without it: {LEAVE_OUT}: [{names}] in config/config.yaml" if names else ""
