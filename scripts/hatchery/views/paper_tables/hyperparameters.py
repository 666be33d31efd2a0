"""The hyperparameters in tables of a paper, from the configuration of our runs (GPT-BERT, Tables 3, 4).

In a layout they are columns of the suite `settings`. Their task is a path: `model`, `tokenizer` or `pretraining` with
their keys, or `finetuning`, a task and a key of its protocol.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hatchery.errors import ConfigError
from hatchery.views.paper_tables.layout import ScoreLayout, read_layout

if TYPE_CHECKING:
    from hatchery.experiment.project import Project

SETTINGS, VALUE = "settings", "value"
"""Suite and metric of the columns."""
Numbers = dict[str, float]


def hyperparameters(
    project: "Project", experiment: str, layout: str, prefix: str, runs: Mapping[str, str]
) -> dict[str, Numbers]:
    """Return the hyperparameters in a paper's layout for every one of `runs`, by path; empty if it has none.

    `prefix` is the prefix of tasks before their names in the paper's tables. Missing keys of a run are left out.
    Raises ConfigError for a path that no run could have.
    """
    tables = (table for table in read_layout(layout).tables.values() if isinstance(table, ScoreLayout))
    columns = [column for table in tables for column in table.resolved_columns() if column.suite == SETTINGS]
    paths = list(dict.fromkeys(column.task for column in columns))
    found = {run: _of_run(project, experiment, run, prefix, paths) for run in runs} if paths else {}
    return {run: numbers for run, numbers in found.items() if numbers}


def _of_run(project: "Project", experiment: str, run: str, prefix: str, paths: list[str]) -> Numbers:
    block = project.experiment(experiment)
    if run not in block.runs:
        return {}
    parts: dict[str, Any] = {
        "model": project.model_of(experiment, run),
        "tokenizer": project.tokenizer(block.tokenizer),
        "pretraining": block.runs[run].pretraining,
    }
    found = {}
    for path in paths:
        part, *keys = path.split(".")
        if part == "finetuning":
            task = prefix + keys.pop(0)
            value: Any = project.protocol_of(experiment, task) if task in block.finetuning.tasks else None
        elif part in parts:
            value = parts[part]
        else:
            raise ConfigError(f"{path!r}: expected a path from model, tokenizer, pretraining or finetuning")
        for key in keys:
            value = getattr(value, key, None)
        # A protocol that lists several rates tries each of them.
        if isinstance(value, tuple):
            value = value[0] if len(value) == 1 else None
        if isinstance(value, int | float):
            found[path] = float(value)
    return found
