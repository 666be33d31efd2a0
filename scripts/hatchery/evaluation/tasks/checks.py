"""Check the settings of a task for conflicts between its format, layout and head, before any data is read."""

import re

from hatchery.errors import ConfigError
from hatchery.evaluation.tasks.formats import FORMATS
from hatchery.evaluation.tasks.layouts import layout_called
from hatchery.evaluation.tasks.layouts.segments import PLACEHOLDER
from hatchery.evaluation.tasks.settings import SPAN_HEADS, TaskSettings, label_text
from hatchery.settings.base import RefusedError, require

PROBING_FORMATS = ("jiant", "conllu", "conll2012", "treebanks")
# Heads without a label set.
_REGRESSION, _CHOICE = "regression", "multiple_choice"
_MARKED = "marked_words_classification"


def check_task(task: TaskSettings) -> None:
    """Raise ConfigError naming task, key, value and the expected value for settings that exclude each other."""
    try:
        _check_files(task)
        _check_head(task)
        _check_labels(task)
        if task.format not in PROBING_FORMATS:
            _check_layout(task)
    except RefusedError as error:
        raise ConfigError(f"task {task.name!r}: {error}") from None


def _check_files(task: TaskSettings) -> None:
    keys = set(task.files)
    require(
        set(task.expected_rows) <= keys,
        "expected_rows",
        sorted(task.expected_rows),
        f"keys of files: {sorted(keys)}",
    )
    if task.format in FORMATS and FORMATS[task.format].files_by_label:
        names = set(task.label_names)
        require(keys == names, "files", sorted(keys), f"the labels {sorted(names)} as keys")
        require(not task.expected_rows, "expected_rows", task.expected_rows, "none with this format")
        require(not task.scored_rows, "scored_rows", task.scored_rows, "none with this format")
        return
    if task.format == "treebanks":
        reserved = sorted(keys & {"train", "validation"})
        require(not reserved, "files", reserved, "names of languages as keys with the format treebanks")
        return
    scored = keys - {"train"}
    require("train" in keys or task.transfer is not None, "files", sorted(keys), "train, or a transfer")
    require(not scored or "validation" in scored, "files", sorted(keys), "the main scored set to be validation")
    require(bool(scored) or not task.scored_rows, "scored_rows", task.scored_rows, "files of a validation set")


def _check_head(task: TaskSettings) -> None:
    kind = task.head.kind
    spans = task.format in PROBING_FORMATS
    require(
        spans == (kind in SPAN_HEADS),
        "head.kind",
        kind,
        f"{' or '.join(SPAN_HEADS)} with the formats {', '.join(PROBING_FORMATS)} only",
    )
    choice = not spans and layout_called(task.layout).choices is not None
    require(choice == (kind == _CHOICE), "head.kind", kind, f"{_CHOICE} with the layout copa only")
    require(kind != _MARKED or task.layout == "wic", "head.kind", kind, f"{_MARKED} with the layout wic only")


def _check_labels(task: TaskSettings) -> None:
    names, kind = task.label_names, task.head.kind
    require(len(set(names)) == len(names), "labels", task.labels, "labels that differ")
    if kind in (_REGRESSION, _CHOICE):
        require(not names, "labels", task.labels, f"none with the head {kind}")
    elif kind not in SPAN_HEADS:
        fits = task.format == "rows" and task.layout == "segments" and not names and task.transfer is None
        require(fits or not task.sorted_labels, "sorted_labels", True, "false with `labels`, or with another format")
        require(len(names) >= 2 or task.sorted_labels, "labels", task.labels, "two or more")
    if task.layout == "record":
        require(len(names) == 2, "labels", task.labels, "two: not an answer, an answer")
    if names:
        for value in task.label_values.values():
            require(label_text(value) in names, "label_values", value, f"one of {', '.join(names)}")
    if task.transfer is not None:
        mapped = set(task.transfer.labels)
        require(mapped == set(names), "transfer.labels", sorted(mapped), f"the labels {', '.join(names)} as keys")


def _check_layout(task: TaskSettings) -> None:
    segments = task.layout == "segments"
    if not segments:
        require(task.format == "rows", "format", task.format, f"rows with the layout {task.layout}")
        require(not task.fields, "fields", task.fields, f"none: the layout {task.layout} knows its fields")
    else:
        own = FORMATS[task.format].fields
        require(bool(own or task.fields), "fields", task.fields, "one to three fields")
        for field in task.fields:
            rest = PLACEHOLDER.sub("", field)
            require(not re.search("[{}]", rest), "fields", field, "a template whose braces hold names of fields")
    if task.layout == "wic":
        require(task.normalisation == "none", "normalisation", task.normalisation, "none: it would move the words")
    if task.vocabulary is not None:
        require(segments, "vocabulary", task.layout, "the layout segments")
