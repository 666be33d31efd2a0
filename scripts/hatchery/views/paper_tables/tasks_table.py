"""Sizes of the tasks that models are fine-tuned on: LTG-BERT Table 4, from the manifests of fine-tuning.

A task has the same rows for every model of an experiment, so those of one model are enough.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from hatchery.artifacts.manifests import Manifest, read_manifest
from hatchery.artifacts.records import Exact, Record, record
from hatchery.settings.base import Natural
from hatchery.views.paper_tables.layout import TasksLayout
from hatchery.views.paper_tables.notes import common_notes
from hatchery.views.paper_tables.printed import PrintedTable
from hatchery.views.paper_tables.settings import PaperTablesSettings
from hatchery.views.score_table import OURS, PUBLISHED, Block, Digits, Line, PaperTable, Score

METRICS = ("train_rows", "validation_rows", "at_least_512_subwords_percent")
HEADINGS = ("Training rows", "Validation rows", "512 subwords or more (%)")


@dataclass(frozen=True)
class TaskSize(Record):
    """Rows of a task of texts, and how many of them were cut, because they have more than `max_length` subwords."""

    train_rows: Annotated[Natural, Exact()]
    validation_rows: Annotated[Natural, Exact()]
    truncated_train_rows: Annotated[Natural, Exact()]
    truncated_validation_rows: Annotated[Natural, Exact()]
    max_length: Annotated[Natural, Exact()]

    @property
    def percent_cut(self) -> float:
        """The share of the rows that were cut, in percent."""
        cut = self.truncated_train_rows + self.truncated_validation_rows
        return 100 * cut / (self.train_rows + self.validation_rows)


def read_task_sizes(
    manifests: Mapping[str, Path], layout: TasksLayout, settings: PaperTablesSettings
) -> dict[str, TaskSize]:
    """The sizes of the tasks of a layout, under the paper's names, from fine-tuning manifests by our tasks.

    Raises ManifestError for a manifest that was altered, EvaluationError for one that does not say them.
    """
    named = {settings.papers_task(task): path for task, path in manifests.items()}
    return {task: _size(read_manifest(path)) for task, path in named.items() if task in layout.tasks}


def _size(manifest: Manifest) -> TaskSize:
    protocol = manifest.settings.get("protocol", {})
    known = {**manifest.measures, "max_length": protocol.get("max_length")}
    return record(TaskSize, {name: known.get(name) for name in TaskSize.__annotations__}, f"{manifest.path}: measures")


def tasks_table(
    number: str,
    layout: TasksLayout,
    settings: PaperTablesSettings,
    printed: PrintedTable,
    ours: Mapping[str, TaskSize],
) -> PaperTable:
    """The printed sizes, and ours below them. Raises ConfigError when layout and printed table do not fit."""
    digits = (Digits(0, grouped=True), Digits(0, grouped=True), Digits(layout.decimals))
    lines = []
    for task, heading in layout.tasks.items():
        places = [("", layout.row, layout.suite, task, metric) for metric in METRICS]
        values = tuple(printed.value(place, how) for place, how in zip(places, digits, strict=True))
        lines.append(Line(heading, PUBLISHED, values))
        if (size := ours.get(task)) is not None:
            found = (size.train_rows, size.validation_rows, size.percent_cut)
            lines.append(Line(heading, OURS, tuple(map(Score, found, digits))))
    printed.check_complete([("", layout.row)])
    limits = sorted({size.max_length for size in ours.values()})
    notes = [
        "The paper does not say which rows its shares are of. Ours are of training and validation rows together: those"
        f" that the protocol cuts, with more than {' or '.join(map(str, limits))} subwords, [CLS] and [SEP] included",
        *common_notes(settings, lines, HEADINGS, layout.remark),
    ]
    blocks = (Block("", tuple(lines)),)
    paper = settings.published.paper
    return PaperTable(layout.caption, "task", HEADINGS, blocks, tuple(notes), paper=paper, number=number)
