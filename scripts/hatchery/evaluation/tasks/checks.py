"""Check the settings of a task for conflicts between its format, layout and head, before any data is read."""

import re

from hatchery.errors import ConfigError
from hatchery.evaluation.tasks.formats import FORMATS
from hatchery.evaluation.tasks.layouts import layout_called
from hatchery.evaluation.tasks.layouts.segments import PLACEHOLDER
from hatchery.evaluation.tasks.settings import SPAN_HEADS, TaskSettings, label_text
from hatchery.settings.base import RefusedError, require

PROBING_FORMATS = ("jiant", "conllu", "conll2012", "treebanks")
# The two kinds of heads without a label set.
_REGRESSION, _CHOICE = "regression", "multiple_choice"
_MARKED = "marked_words_classification"


def check_task(task: TaskSettings) -> None:
    """Raise ConfigError for settings of a task that exclude each other. The error names the task, the key, its value
    and the expected value.
    """
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
        f"only keys of `files`: {sorted(keys)}",
    )
    if task.format in FORMATS and FORMATS[task.format].files_by_label:
        names = set(task.label_names)
        require(keys == names, "files", sorted(keys), f"one key for each label: {sorted(names)}")
        empty = f"an empty mapping with the format {task.format}, whose files are not divided into sets"
        require(not task.expected_rows, "expected_rows", task.expected_rows, empty)
        require(not task.scored_rows, "scored_rows", task.scored_rows, empty)
        return
    if task.format == "treebanks":
        reserved = sorted(keys & {"train", "validation"})
        require(not reserved, "files", reserved, "languages as the keys of `files` with the format treebanks")
        return
    scored = keys - {"train"}
    trained = "the key `train`, or a `transfer` from another task"
    require("train" in keys or task.transfer is not None, "files", sorted(keys), trained)
    main = "the main scored set under the key `validation`"
    require(not scored or "validation" in scored, "files", sorted(keys), main)
    empty = "an empty mapping, because `files` has no scored set (the key `validation` of `files` is missing)"
    require(bool(scored) or not task.scored_rows, "scored_rows", task.scored_rows, empty)


def _check_head(task: TaskSettings) -> None:
    kind = task.head.kind
    spans = task.format in PROBING_FORMATS
    span_heads = " or ".join(SPAN_HEADS)
    fitting = span_heads if spans else "another head"
    only = f"because {span_heads} is for the formats {', '.join(PROBING_FORMATS)} and for no other format"
    expected = f"{fitting} with the format {task.format}, {only}"
    require(spans == (kind in SPAN_HEADS), "head.kind", kind, expected)
    choice = not spans and layout_called(task.layout).choices is not None
    fitting = _CHOICE if choice else "another head"
    only = f"because {_CHOICE} is for the layout copa and for no other layout"
    expected = f"{fitting} with the layout {task.layout}, {only}"
    require(choice == (kind == _CHOICE), "head.kind", kind, expected)
    expected = f"another head with the layout {task.layout}, because {_MARKED} is only for the layout wic"
    require(kind != _MARKED or task.layout == "wic", "head.kind", kind, expected)


def _check_labels(task: TaskSettings) -> None:
    names, kind = task.label_names, task.head.kind
    require(len(set(names)) == len(names), "labels", task.labels, "different labels")
    if kind in (_REGRESSION, _CHOICE):
        require(not names, "labels", task.labels, f"no labels with the head {kind}, which has no label set")
    elif kind not in SPAN_HEADS:
        fits = task.format == "rows" and task.layout == "segments" and not names and task.transfer is None
        expected = "false; true requires the format rows, the layout segments, and neither `labels` nor `transfer`"
        require(fits or not task.sorted_labels, "sorted_labels", True, expected)
        require(len(names) >= 2 or task.sorted_labels, "labels", task.labels, "two or more labels")
    if task.layout == "record":
        expected = (
            "two labels, because of `layout: record`: the label of wrong answers, then the label of right answers"
        )
        require(len(names) == 2, "labels", task.labels, expected)
    if names:
        for value in task.label_values.values():
            require(label_text(value) in names, "label_values", value, f"one of the labels {', '.join(names)}")
    if task.transfer is not None:
        mapped = set(task.transfer.labels)
        expected = f"one key for each label of this task: {', '.join(names)}"
        require(mapped == set(names), "transfer.labels", sorted(mapped), expected)


def _check_layout(task: TaskSettings) -> None:
    segments = task.layout == "segments"
    if not segments:
        require(task.format == "rows", "format", task.format, f"rows with the layout {task.layout}")
        expected = f"no fields, because the layout {task.layout} determines the fields"
        require(not task.fields, "fields", task.fields, expected)
    else:
        own = FORMATS[task.format].fields
        expected = f"one to three fields, because the format {task.format} has no default fields"
        require(bool(own or task.fields), "fields", task.fields, expected)
        for field in task.fields:
            rest = PLACEHOLDER.sub("", field)
            expected = "a field name, or a template with field names in braces, such as {question}"
            require(not re.search("[{}]", rest), "fields", field, expected)
    if task.layout == "wic":
        expected = "none with the layout wic, because normalisation would change the positions of the marked words"
        require(task.normalisation == "none", "normalisation", task.normalisation, expected)
    if task.vocabulary is not None:
        expected = (
            "segments, because the key `vocabulary` filters rows by their text fields, which only this layout has"
        )
        require(segments, "layout", task.layout, expected)
