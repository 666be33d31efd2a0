"""The hyperparameters in a paper's tables, from the configuration of our runs (GPT-BERT, Tables 3, 4).

In a layout, a hyperparameter is a column of the suite `settings`. Its `task` is a path in the configuration: `model`,
`tokenizer` or `pretraining` followed by keys, or `finetuning.<task>` followed by a key of the protocol.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hatchery.errors import ConfigError
from hatchery.views.paper_tables.layout import ScoreLayout, read_layout

if TYPE_CHECKING:
    from hatchery.experiment.project import Project

SETTINGS, VALUE = "settings", "value"
"""Suite and metric of columns with hyperparameters."""
Numbers = dict[str, float]


def hyperparameters(
    project: "Project", experiment: str, layout: str, prefix: str, runs: Mapping[str, str]
) -> dict[str, Numbers]:
    """Return the hyperparameters that the layout of a paper's tables names: for each run, the numbers by dotted path
    (such as `model.hidden_size`). Empty if the layout names no hyperparameters.

    Our name of a task is `prefix` followed by the name that the paper gives to the task. Keys that a run lacks, and
    values that are not a single number, are omitted. Raises ConfigError for a path that does not begin with model,
    tokenizer, pretraining or finetuning.
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
            raise ConfigError(f"{path!r}: expected a key that begins with model, tokenizer, pretraining or finetuning")
        for key in keys:
            value = getattr(value, key, None)
        # If a protocol lists several learning rates, the hyperparameter has no single value and is omitted.
        if isinstance(value, tuple):
            value = value[0] if len(value) == 1 else None
        if isinstance(value, int | float):
            found[path] = float(value)
    return found
