"""Read a labelled task as lists of examples: convert rows by the task's layout, apply the vocabulary filter and the
limits on the number of examples, and check the rows.

The replicated papers use the validation rows as their test set. Training never reads the validation rows, and model
selection reads these rows only with `selection: scored`. If a task has only training files, the validation rows are
drawn from these files. The `ReadReport` counts four kinds of rows: rows that were read, that are within the vocabulary,
that are used, and that are scored.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from typing import Any, TypeVar, cast

from hatchery.errors import EvaluationError
from hatchery.evaluation.draws import generator, hold_out, input_groups
from hatchery.evaluation.evaluation import MostRows
from hatchery.evaluation.tasks.checks import PROBING_FORMATS
from hatchery.evaluation.tasks.example import Example, SpanExample, TaskData
from hatchery.evaluation.tasks.formats import (
    FORMATS,
    check_disjoint,
    read_records,
    read_rows,
    set_names,
    task_files,
    text_fields,
)
from hatchery.evaluation.tasks.layout import Context, LayOut, check_suite, label_value
from hatchery.evaluation.tasks.layouts import layout_called
from hatchery.evaluation.tasks.layouts.segments import field_names
from hatchery.evaluation.tasks.settings import TaskSettings, label_text
from hatchery.evaluation.tasks.texts import NORMALISATIONS, Within, make_filter
from hatchery.raw.registration import RawSource


@dataclass(frozen=True)
class SetReport:
    """Numbers of examples (sentences in edge probing) of one split of a task: in its files, after the vocabulary
    filter, after the limits on the number of examples, and in the metrics.
    """

    read: int
    """Number of examples in the files; ReCoRD has one example per candidate entity."""
    kept: int
    """Number of examples whose words are in the vocabulary, if the task has a vocabulary filter."""
    used: int = 0
    """Number of examples after the task's limits, without examples that were held out for validation."""
    scored: int = 0
    """Number of used examples that enter the metrics."""


@dataclass(frozen=True)
class ReadReport:
    """Numbers of examples by name of the split, "train" first. For a validation split that is drawn from "train",
    `read` is 0.
    """

    sets: dict[str, SetReport]

    def with_used(self, data: TaskData) -> "ReadReport":
        """Return a copy of the report in which `used` and `scored` are the numbers of examples in `data`, by split."""
        sets = {}
        for name, rows in {"train": data.train, **data.scored}.items():
            if name == "train" and name not in self.sets:
                continue  # A task without training files only scores models fine-tuned on other tasks.
            before = self.sets.get(name, SetReport(0, 0))
            scored = sum(row.scored if isinstance(row, Example) else 1 for row in rows)
            sets[name] = replace(before, used=len(rows), scored=scored if name != "train" else 0)
        return ReadReport(sets)

    def measures(self) -> dict[str, int]:
        """Return the numbers of examples of all splits as one mapping for a manifest: `read_validation`,
        `kept_validation` (kept by the vocabulary filter), `used_validation`, `scored_validation`, …
        """
        return {
            f"{name}_{set_name}": value
            for set_name, report in self.sets.items()
            for name, value in vars(report).items()
        }


Labelled = TypeVar("Labelled", Example, SpanExample)

# Number of normalised texts in the cache. Caching saves time, because a passage occurs again with every question or
# entity.
_REMEMBERED_TEXTS = 20_000


def read_task(source: RawSource, task: TaskSettings, vocabulary: frozenset[str] | None = None) -> TaskData:
    """Return a task's rows that remain after the vocabulary filter and the limits on the number of rows.

    Raises EvaluationError naming file and line for wrong data: missing fields; unknown, hidden or null labels; a file
    of another suite. Also raises EvaluationError for a split with a wrong number of rows, without rows or without
    scored rows, for training rows that all have one label, and for training files in which a label of the task does not
    occur.
    """
    return read_task_with_report(source, task, vocabulary)[0]


def read_task_with_report(
    source: RawSource, task: TaskSettings, vocabulary: frozenset[str] | None = None
) -> tuple[TaskData, ReadReport]:
    """Return a task's rows, and a report on the number of rows in each split. Raises the errors of `read_task`."""
    if task.vocabulary is not None and vocabulary is None:
        raise EvaluationError(
            f"{source.root}: the task {task.name!r} filters rows by a vocabulary, but no vocabulary was given"
        )
    task = with_sorted_labels(source, task)
    data, report = _probing(source, task) if task.format in PROBING_FORMATS else _texts(source, task, vocabulary)
    data = _with_validation(data, task, str(source.root))
    data = _limited(data, task)
    report = report.with_used(data)
    _check(data, task, report, str(source.root))
    return data, report


def _probing(source: RawSource, task: TaskSettings) -> tuple[TaskData, ReadReport]:
    from hatchery.evaluation.probing.formats import READERS

    data = READERS[task.format](source, task)
    sets = {**({"train": data.train} if data.train else {}), **data.scored}
    report = ReadReport({name: SetReport(len(rows), len(rows)) for name, rows in sets.items()})
    _check_expected(report, task, str(source.root))
    return data, report


def _texts(source: RawSource, task: TaskSettings, vocabulary: frozenset[str] | None) -> tuple[TaskData, ReadReport]:
    within = make_filter(task.vocabulary, vocabulary) if task.vocabulary and vocabulary is not None else None
    if not FORMATS[task.format].files_by_label:
        check_disjoint(source, task)
    sets: dict[str, list[Example]] = {"train": []}
    reports: dict[str, SetReport] = {}
    found_labels: set[object] = set()
    for name in set_names(task):
        sets[name], n_read, labels = _read_set(source, task, name, within)
        reports[name] = SetReport(n_read, len(sets[name]))
        if name == "train":
            found_labels = labels
    report = ReadReport(reports)
    _check_expected(report, task, str(source.root))
    if sets["train"]:
        check_label_set(found_labels, task, str(source.root))
    train = sets.pop("train")
    return TaskData(train, {**sets}, task.label_names), report


def _read_set(
    source: RawSource, task: TaskSettings, name: str, within: Within | None
) -> tuple[list[Example], int, set[object]]:
    """Return the examples of a split that are within the vocabulary. Also return the number and the labels of all
    examples of the split, before filtering.
    """
    used = used_fields(task)
    lay_out = make_layout(task, scored_set=name != "train")
    checked = task.vocabulary.fields if task.vocabulary else ()
    kept: list[Example] = []
    dropped, dropped_labels = 0, set()
    for records in read_records(source, task, name, used):
        for index, record in enumerate(records):
            if index == 0:
                check_suite(record, used, task.name)
            if within is not None and not within([record.string(field) for field in checked]):
                for example in lay_out(record):
                    dropped += 1
                    dropped_labels.add(example.label)
            else:
                kept.extend(lay_out(record))
    return kept, len(kept) + dropped, dropped_labels | {example.label for example in kept}


def read_through(source: RawSource, task: TaskSettings, most_rows: MostRows = lambda name: None) -> None:
    """Read and check the rows of a task's files without storing the rows, and without the vocabulary filter.

    `most_rows` returns the number of rows to read from a file, None for all rows. Raises the EvaluationErrors of
    `read_task`; missing training labels and wrong numbers of rows are errors only if all rows were read.
    """
    used = used_fields(task)
    by_label = FORMATS[task.format].files_by_label
    task = with_sorted_labels(source, task, most_rows)
    if not by_label:
        check_disjoint(source, task)
    for name in set_names(task):
        lay_out, labels, number, is_whole = make_layout(task, scored_set=name != "train"), set[object](), 0, True
        for key in task.label_names if by_label else (name,):
            for file in task_files(source, task, key):
                limit = most_rows(file)
                is_whole = is_whole and limit is None
                records = FORMATS[task.format].read(source, task, key, file, used)
                for index, record in enumerate(islice(records, limit)):
                    if index == 0:
                        check_suite(record, used, task.name)
                    for field in task.vocabulary.fields if task.vocabulary else ():
                        record.string(field)
                    examples = list(lay_out(record))
                    number += len(examples)
                    labels |= {example.label for example in examples}
        if is_whole:
            _check_number(task, name, number, str(source.root))
            if name == "train":
                check_label_set(labels, task, str(source.root))


def with_sorted_labels(source: RawSource, task: TaskSettings, most_rows: MostRows = lambda name: None) -> TaskSettings:
    """Return the task. If `sorted_labels` is set, its labels are replaced by the labels of the training rows, sorted as
    texts.

    If `most_rows` limits the number of rows to read from a file, the labels of all splits are used, so that no row has
    an unknown label. Raises EvaluationError naming file and line for a label that is neither a non-empty text nor a
    whole number.
    """
    if not task.sorted_labels:
        return task
    files = {set_name: task_files(source, task, set_name) for set_name in set_names(task)}
    is_whole = all(most_rows(file) is None for names in files.values() for file in names)
    labels: dict[str, None] = {}
    for file in [file for name, names in files.items() if name == "train" or not is_whole for file in names]:
        for record in islice(read_rows(source, file, task.columns, {task.label_field}), most_rows(file)):
            value = label_value(record, task)
            if not isinstance(value, str | int) or isinstance(value, bool) or value == "":
                expected = "a text or a whole number"
                raise EvaluationError(f"{record.where}: got the label {value!r}, expected {expected}")
            labels.setdefault(label_text(task.label_values.get(str(value), value)))
    return replace(task, labels=tuple(sorted(labels)), sorted_labels=False)


def check_rows(source: RawSource, task: TaskSettings, most_rows: MostRows) -> None:
    """Check the rows of a task: with `read_task` for the formats of edge probing (`PROBING_FORMATS`), and with
    `read_through` for all other formats. For a format other than `rows`, the check runs only if `most_rows` limits none
    of the files.
    """
    if task.format == "rows":
        read_through(source, task, most_rows)
    elif all(most_rows(name) is None for key in task.files for name in task_files(source, task, key)):
        (read_task if task.format in PROBING_FORMATS else read_through)(source, task)


def used_fields(task: TaskSettings) -> frozenset[str]:
    """Return the names of the fields of a record that the task may need. For a name with dots (`idx.question`), the
    top-level field (`idx`) is added.
    """
    own = layout_called(task.layout).fields or [name for field in text_fields(task) for name in field_names(field)]
    checked = task.vocabulary.fields if task.vocabulary else ()
    names = {*own, task.label_field, *task.scored_rows, *task.group_fields, *task.facts, *checked}
    return frozenset(names | {name.split(".")[0] for name in names})


def make_layout(task: TaskSettings, scored_set: bool) -> LayOut:
    """Return the function that converts a record to examples, including the task's normalisation. Normalised texts are
    cached. `scored_set` is true unless the records are training rows.
    """
    normalise = NORMALISATIONS[task.normalisation]
    if task.normalisation != "none":
        normalise = lru_cache(_REMEMBERED_TEXTS)(normalise)
    layout = layout_called(task.layout)
    return layout.make(Context(task, normalise, scored_set, layout.choices))


def _with_validation(data: TaskData, task: TaskSettings, where: str) -> TaskData:
    if data.scored or not data.train:
        return data
    random = generator(task.split_seed, "validation")
    kept, held = hold_out(input_groups(data.train), task.validation_fraction, random, where)
    train = cast("list[Any]", data.train)
    return TaskData([train[index] for index in kept], {"validation": [train[index] for index in held]}, data.labels)


def _limited(data: TaskData, task: TaskSettings) -> TaskData:
    def cut(rows: Any, name: str, limit: int | None) -> Any:
        return limited(rows, limit, task.split_seed, f"{name} limit")

    scored = {name: cut(rows, name, task.validation_limit) for name, rows in data.scored.items()}
    return TaskData(cut(data.train, "train", task.train_limit), scored, data.labels)


def limited(examples: Sequence[Labelled], limit: int | None, seed: int, purpose: str) -> list[Labelled]:
    """Return at most `limit` examples, drawn at random, in their original order. `seed` and `purpose` select the random
    numbers. With the same seed, a smaller limit yields a subset of the examples of a larger limit.

    A group (the answers to a question) is drawn completely or not at all. At least one group is drawn, even if it
    exceeds the limit.
    """
    if limit is None or limit >= len(examples):
        return list(examples)
    groups: dict[object, list[int]] = {}
    for index, example in enumerate(examples):
        group = example.group if isinstance(example, Example) else ""
        groups.setdefault(group or index, []).append(index)
    members = list(groups.values())
    chosen: list[int] = []
    for number in generator(seed, purpose).permutation(len(members)).tolist():
        if chosen and len(chosen) + len(members[number]) > limit:
            break
        chosen.extend(members[number])
    return [examples[index] for index in sorted(chosen)]


def _check_expected(report: ReadReport, task: TaskSettings, where: str) -> None:
    for name in task.expected_rows:
        _check_number(task, name, report.sets[name].read if name in report.sets else 0, where)


def _check_number(task: TaskSettings, name: str, n_rows: int, where: str) -> None:
    expected = task.expected_rows.get(name, n_rows)
    if n_rows != expected:
        raise EvaluationError(
            f"{where}: the {name!r} set of the task {task.name!r} has {n_rows} rows, expected {expected}"
        )


def check_label_set(labels: set[object], task: TaskSettings, where: str) -> None:
    """Raise EvaluationError if the training files contain only one label, or not all labels of the task. For example,
    RTE's files contain only two of MNLI's three labels.
    """
    if len(labels) == 1:
        raise _one_label(labels, task, where)
    missing = [name for index, name in enumerate(task.label_names) if index not in labels]
    if missing:
        raise EvaluationError(
            f"{where}: no training row of the task {task.name!r} has the label {missing[0]!r}; "
            f"is this a file of another task?"
        )


def _check(data: TaskData, task: TaskSettings, report: ReadReport, where: str) -> None:
    for name, counts in report.sets.items():
        called = "training" if name == "train" else name
        if not counts.used:
            lost = f"; the vocabulary filter kept none of {counts.read} rows" if counts.read and not counts.kept else ""
            raise EvaluationError(f"{where}: the task {task.name!r} has no {called} rows{lost}")
        if name != "train" and counts.scored == 0:
            wanted = ", ".join(f"{key} == {label_text(value)}" for key, value in task.scored_rows.items())
            raise EvaluationError(f"{where}: no row of the {name!r} set of the task {task.name!r} has {wanted}")
    if not data.train:
        return
    labels = {label for row in data.train for label in _labels(row)}
    if len(labels) < 2:
        raise _one_label(labels, task, where)


def _one_label(labels: set[object], task: TaskSettings, where: str) -> EvaluationError:
    only = next(iter(labels), None)
    shown = task.label_names[only] if isinstance(only, int) and task.labels else only
    return EvaluationError(f"{where}: all training rows of the task {task.name!r} have the label {shown!r}")


def _labels(row: Example | SpanExample) -> Sequence[object]:
    if isinstance(row, SpanExample):
        return [label for target in row.targets for label in target.labels]
    return [row.label]
