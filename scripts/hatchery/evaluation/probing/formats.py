"""Read the formats of edge probing: jiant's JSON lines, CoNLL-U for dependencies and parts of speech, and OntoNotes.

Source: docs/papers/ltg-bert.md, "Records of edge probing". The label set is the task's `labels` or, if the task lists
no labels, the sorted labels of the training rows. All other labels get the index -1, which no prediction can equal.

For each probe, tables also show a baseline that always predicts the most frequent label of the training rows. Without
this baseline, a coreference score says little: about 85 % of the pairs of mentions have the same class.
"""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hatchery.errors import ConfigError, EvaluationError
from hatchery.evaluation.draws import generator, hold_out
from hatchery.evaluation.json_lines import Record, checked_text, read_json_lines, shorten
from hatchery.evaluation.probing.conll2012_targets import TARGETS, TaskName, sentences_of
from hatchery.evaluation.probing.conllu import ROOT, ConlluSentence, read_sentences
from hatchery.evaluation.tasks.example import Example, SpanExample, SpanTarget, TaskData
from hatchery.evaluation.tasks.formats import task_files
from hatchery.evaluation.tasks.settings import Format, TaskSettings, label_text
from hatchery.raw.registration import RawSource

UNKNOWN_LABEL = -1
# Number of spans per target, for each CoNLL-U column that can hold the labels.
SPANS_OF_COLUMN = {"UPOS": 1, "XPOS": 1, "DEPREL": 2}
# Number of spans per target, for each annotation layer of OntoNotes.
SPANS_OF_LAYER: dict[TaskName, int] = {"pos": 1, "ner": 1, "srl": 2, "coref": 2}


@dataclass(frozen=True)
class NamedTarget:
    """A target whose labels are names, not yet indices in the label set."""

    spans: tuple[tuple[int, int], ...]
    labels: tuple[str, ...]


@dataclass(frozen=True)
class NamedExample:
    """A sentence with its targets, whose labels are names, not yet indices in the label set."""

    words: tuple[str, ...]
    targets: tuple[NamedTarget, ...]
    where: str


def read_jiant(source: RawSource, task: TaskSettings) -> TaskData:
    """Return the sentences of a task in jiant's JSON lines; sentences without targets are dropped.

    Raises EvaluationError naming file and line for a text whose words are not separated by single blanks, a span that
    is reversed, empty or outside of the text, a number of spans that the head does not accept, and a label that is
    neither a text nor a list of texts.
    """
    n_spans = spans_per_target(task)
    return _task_data(source, task, lambda name: _jiant_examples(source, name, task.label_field, n_spans))


def read_conllu(source: RawSource, task: TaskSettings) -> TaskData:
    """Return the sentences of CoNLL-U files. `label_field` is XPOS or UPOS (each target is one word) or DEPREL (each
    target is a word and its syntactic head).

    Raises ConfigError for another column, and if the setting `head.options.n_spans` does not fit the column. Raises
    EvaluationError naming file and line for malformed rows.
    """
    column = _column(task)
    return _task_data(
        source, task, lambda name: (_conllu_example(sentence, column) for sentence in read_sentences(source, name))
    )


def _column(task: TaskSettings) -> str:
    """Return the CoNLL-U column with the task's labels. Raises ConfigError as `read_conllu` does."""
    column, allowed = task.label_field, ", ".join(SPANS_OF_COLUMN)
    if column not in SPANS_OF_COLUMN:
        raise ConfigError(f"task {task.name!r}: label_field is {column!r}, expected a column of CoNLL-U: {allowed}")
    if spans_per_target(task) != SPANS_OF_COLUMN[column]:
        wanted = SPANS_OF_COLUMN[column]
        raise ConfigError(
            f"task {task.name!r}: head.options.n_spans is {spans_per_target(task)}, expected {wanted} for {column}"
        )
    return column


def read_conll2012(source: RawSource, task: TaskSettings) -> TaskData:
    """Return the sentences of OntoNotes from column files of CoNLL-2012 or Parquet files of the Hugging Face hub.
    `label_field` is the annotation layer with the labels.

    As in jiant's format, a sentence is one example or, for semantic roles, one example per predicate. Raises
    ConfigError for an unknown layer, and if the setting `head.options.n_spans` does not fit the layer. Raises
    EvaluationError naming file and line for malformed rows.
    """
    layer = task.label_field
    if layer not in TARGETS:
        raise ConfigError(f"task {task.name!r}: label_field is {layer!r}, expected one of {', '.join(TARGETS)}")
    if spans_per_target(task) != SPANS_OF_LAYER[layer]:
        raise ConfigError(
            f"task {task.name!r}: head.options.n_spans is {spans_per_target(task)}, expected {SPANS_OF_LAYER[layer]} "
            f"for {layer}"
        )
    return _task_data(source, task, lambda name: _layer_examples(source, name, layer))


SENTENCES_OF_A_TREEBANK = 4000


def read_treebanks(source: RawSource, task: TaskSettings) -> TaskData:
    """Return the sentences of treebanks in CoNLL-U with new random splits; each key in the task's `files` is a
    language.

    All files of a language are pooled and shuffled with `split_seed`. Of the first 4,000 sentences, or of all if there
    are fewer, 80 % are for training, 10 % for validation and 10 % for testing. The training set contains the same
    number of sentences of each language, shuffled together. The scored sets are `validation` (of all languages),
    `<language>` (the validation sentences of one language) and `test_<language>`. Source: docs/papers/babylm-2026.md,
    "The multilingual track". Raises ConfigError as `read_conllu` does. Raises EvaluationError naming file and line for
    malformed rows, and for a language with fewer than 10 sentences.
    """
    column = _column(task)
    parts: dict[str, tuple[list[NamedExample], ...]] = {}
    for language in task.files:
        names = task_files(source, task, language)
        pooled = [_conllu_example(sentence, column) for name in names for sentence in read_sentences(source, name)]
        random.Random(task.split_seed).shuffle(pooled)
        chosen = pooled[:SENTENCES_OF_A_TREEBANK]
        tenth = len(chosen) // 10
        if tenth == 0:
            raise EvaluationError(f"{source.root}: {language}: {len(chosen)} sentences, expected at least 10")
        ends = len(chosen) - 2 * tenth, len(chosen) - tenth
        parts[language] = chosen[: ends[0]], chosen[ends[0] : ends[1]], chosen[ends[1] :]
    least = min(len(train) for train, _, _ in parts.values())
    together = [example for train, _, _ in parts.values() for example in train[:least]]
    random.Random(task.split_seed).shuffle(together)
    sets = {"validation": [example for _, validation, _ in parts.values() for example in validation]}
    sets |= {language: validation for language, (_, validation, _) in parts.items()}
    sets |= {f"test_{language}": test for language, (_, _, test) in parts.items()}
    return indexed_task_data(together, sets, task)


READERS: dict[Format, Callable[[RawSource, TaskSettings], TaskData]] = {
    "jiant": read_jiant,
    "conllu": read_conllu,
    "conll2012": read_conll2012,
    "treebanks": read_treebanks,
}


def spans_per_target(task: TaskSettings) -> int:
    """Return the number of spans that a task's head reads for each target (the head's option `n_spans`, default 1)."""
    return int(task.head.options.get("n_spans", 1))


def _task_data(source: RawSource, task: TaskSettings, examples_of: Callable[[str], Iterator[NamedExample]]) -> TaskData:
    sets = {
        key: [example for name in task_files(source, task, key) for example in examples_of(name)] for key in task.files
    }
    for key, examples in sets.items():
        if not any(example.targets for example in examples):
            raise EvaluationError(f"{source.root}: the {key!r} files of {task.name!r} contain no target")
    train = sets.pop("train", [])
    if not sets:
        random = generator(task.split_seed, "validation")
        groups = [example.words for example in train]
        kept, held = hold_out(groups, task.validation_fraction, random, str(source.root))
        train, sets = [train[i] for i in kept], {"validation": [train[i] for i in held]}
    return indexed_task_data(train, sets, task)


def indexed_task_data(
    train: Sequence[NamedExample], sets: Mapping[str, Sequence[NamedExample]], task: TaskSettings
) -> TaskData:
    """Return the sentences of the training set and of the scored sets, with labels as indices into the task's label
    set.
    """
    labels = _label_set(train, task)
    indices = {label: index for index, label in enumerate(labels)}
    # A set named "validation" is always the first scored set, even if its file is not the first.
    names = sorted(sets, key=lambda name: name != "validation")
    scored: dict[str, list[Example] | list[SpanExample]] = {
        name: [_indexed(example, indices, task) for example in sets[name]] for name in names
    }
    return TaskData([_indexed(example, indices, task) for example in train], scored, labels)


def _label_set(train: Sequence[NamedExample], task: TaskSettings) -> tuple[str, ...]:
    """Return the label set: the task's `labels`, by default the sorted labels of the training rows. Raises
    EvaluationError for a training label that the task does not list.
    """
    if not task.labels:
        return tuple(sorted({_spelled(n, task) for example in train for t in example.targets for n in t.labels}))
    known = set(task.label_names)
    for example in train:
        for target in example.targets:
            for name in target.labels:
                if _spelled(name, task) not in known:
                    listed = ", ".join(task.label_names)
                    raise EvaluationError(f"{example.where}: the label {name!r} is unknown; the task lists {listed}")
    return task.label_names


def _spelled(name: str, task: TaskSettings) -> str:
    return label_text(task.label_values.get(name, name))


def _indexed(example: NamedExample, indices: dict[str, int], task: TaskSettings) -> SpanExample:
    targets = tuple(
        SpanTarget(
            target.spans, tuple(sorted({indices.get(_spelled(name, task), UNKNOWN_LABEL) for name in target.labels}))
        )
        for target in example.targets
    )
    return SpanExample(example.words, targets, example.where)


def _layer_examples(source: RawSource, name: str, layer: TaskName) -> Iterator[NamedExample]:
    spans = ("span1", "span2")[: SPANS_OF_LAYER[layer]]
    for sentence in sentences_of(source, name):
        for targets in TARGETS[layer](sentence):
            named = (
                NamedTarget(tuple((target[span][0], target[span][1]) for span in spans), (target["label"],))
                for target in targets
            )
            yield NamedExample(sentence.words, tuple(named), sentence.where)


def _conllu_example(sentence: ConlluSentence, column: str) -> NamedExample:
    heads = sentence.heads() if column == "DEPREL" else None
    targets = []
    for position, word in enumerate(sentence.words):
        spans: tuple[tuple[int, int], ...] = ((position, position + 1),)
        label = word.label(column)
        if heads is not None:
            spans += ((heads[position], heads[position] + 1),)
            label = ROOT if heads[position] == position else label
        targets.append(NamedTarget(spans, (label,)))
    return NamedExample(tuple(word.form for word in sentence.words), tuple(targets), sentence.where)


def _jiant_examples(source: RawSource, name: str, label_field: str, n_spans: int) -> Iterator[NamedExample]:
    for record in read_json_lines(source, name):
        words = tuple(record.text("text").split(" "))
        if not all(words):
            raise EvaluationError(
                f"{record.where}: the text begins or ends with a blank or contains two blanks in a row, expected "
                "single blanks between words"
            )
        targets = record.values.get("targets")
        if not isinstance(targets, list):
            raise EvaluationError(f"{record.where}: the field 'targets' must be a list, got {shorten(targets)}")
        if targets:
            named = tuple(_target(record, target, label_field, n_spans, len(words)) for target in targets)
            yield NamedExample(words, named, record.where)


def _target(record: Record, target: object, label_field: str, n_spans: int, n_words: int) -> NamedTarget:
    if not isinstance(target, dict):
        raise EvaluationError(f"{record.where}: a target must be an object, got {shorten(target)}")
    if n_spans == 1 and target.get("span2") is not None:
        raise EvaluationError(f"{record.where}: a target has the field 'span2', but the task labels single spans")
    spans = tuple(_span(record, target, f"span{number}", n_words) for number in range(1, n_spans + 1))
    if label_field not in target:
        raise EvaluationError(f"{record.where}: the field {label_field!r} of a target is missing")
    value = target[label_field]
    labels = value if isinstance(value, list) else [value]
    if not labels or not all(isinstance(label, str) and label for label in labels):
        raise EvaluationError(f"{record.where}: a label must be a text or a list of texts, got {shorten(value)}")
    where = f"{record.where}: a label"
    return NamedTarget(spans, tuple(checked_text(label, where) for label in labels))


def _span(record: Record, target: Mapping[str, object], name: str, n_words: int) -> tuple[int, int]:
    if name not in target:
        raise EvaluationError(f"{record.where}: the field {name!r} of a target is missing")
    span = target[name]
    if not isinstance(span, list) or len(span) != 2 or not all(type(edge) is int for edge in span):
        raise EvaluationError(f"{record.where}: {name} must be two whole numbers, got {shorten(span)}")
    start, end = span
    if not 0 <= start < end <= n_words:
        raise EvaluationError(
            f"{record.where}: {name} is [{start}, {end}), expected 0 <= start < end <= {n_words}, the words of the text"
        )
    return start, end


class MajorityBaseline(NamedTuple):
    """Accuracy and micro F1, as fractions, of the constant prediction `label`."""

    label: int
    accuracy: float
    micro_f1: float


def majority_baseline(train: np.ndarray, scored: np.ndarray) -> MajorityBaseline:
    """Return the scores of the baseline that always predicts the most frequent training label, or the first of several
    equally frequent labels.

    The labels `train` and `scored` have a row for each target (a labelled span): bool [targets, K] for K possible
    labels, or int64 [targets] with -1 for an unknown label. Accuracy and micro F1 are computed as by the metrics
    `accuracy` and `micro_f1`. Raises EvaluationError if `train` or `scored` has no rows.
    """
    if len(train) == 0 or len(scored) == 0:
        raise EvaluationError(
            f"majority baseline: got {len(train)} training and {len(scored)} scored units, expected at least 1 of each"
        )
    counts = train.sum(axis=0) if train.ndim == 2 else np.bincount(train[train >= 0])
    label = int(counts.argmax())
    if scored.ndim == 1:
        # With one label and one prediction per unit, micro F1 equals accuracy.
        accuracy = float((scored == label).mean())
        return MajorityBaseline(label, accuracy, accuracy)
    hits = scored[:, label]
    # As in `micro_f1`, a unit without known labels counts as one missed label.
    missed = (~scored.any(axis=1)).sum()
    f1 = 2 * float(hits.sum()) / float(len(scored) + scored.sum() + missed)
    return MajorityBaseline(label, float(hits.mean()), f1)
