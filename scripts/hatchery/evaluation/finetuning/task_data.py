"""A task that is read and encoded once for all runs of a job: its training items, and the splits on which runs are
scored.

Tasks on texts and tasks on spans of sentences differ only in their encoding; the training loop treats both alike.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from hatchery.errors import ConfigError, EvaluationError
from hatchery.evaluation.draws import input_groups
from hatchery.evaluation.finetuning.batches import EncodedData
from hatchery.evaluation.finetuning.encoding import encode_texts
from hatchery.evaluation.finetuning.framing import TextTokenizer
from hatchery.evaluation.finetuning.scored_sets import ScoredSet, label_mapping, scored_set, whole_batches
from hatchery.evaluation.probing.encoding import EncodedSpans, encode_spans
from hatchery.evaluation.probing.formats import majority_baseline
from hatchery.evaluation.tasks.example import Example, SpanExample
from hatchery.evaluation.tasks.settings import SPAN_HEADS, FinetuneSettings, settings_of
from hatchery.evaluation.tasks.task_rows import read_task_with_report
from hatchery.modeling.heads.registry import HEADS
from hatchery.modeling.heads.span_classifier import ProbeOptions
from hatchery.raw.registration import RawSource
from hatchery.typed import build

Rows = Sequence[Example] | Sequence[SpanExample]


@dataclass(frozen=True)
class EncodedTask:
    """The encoded task that all runs share. Training items with the same group index in `groups` are held out together
    (see `input_groups`).

    `sets` are the splits on which runs are scored; splits with the same `data` object are predicted once. `counts`, for
    the manifest, contain four numbers for each split: rows read, rows that the vocabulary filter kept, rows used, and
    rows scored.
    """

    train: ScoredSet
    groups: list[int]
    sets: tuple[ScoredSet, ...]
    n_labels: int | None
    pad_id: int
    counts: dict[str, int]


def encode_task(
    settings: FinetuneSettings,
    sources: Mapping[str, RawSource],
    vocabulary: frozenset[str] | None,
    tokenizer: TextTokenizer,
) -> EncodedTask:
    """Read and encode the task, and the tasks of `settings.transfer`, on which the fine-tuned models are only scored.
    `sources` maps each task's name to its raw input.

    Raises ConfigError for a missing or superfluous source, for two scored sets with the same name and for an unusable
    label mapping. Raises EvaluationError naming file and line for wrong data, and EvaluationError for a task without
    training rows.
    """
    task = settings.task
    names = [task.name, *(other.name for other in settings.transfer)]
    if sorted(names) != sorted(sources):
        raise ConfigError(
            f"sources: got {', '.join(sorted(sources))}, expected one source for each of the tasks {', '.join(names)}"
        )
    data, report = read_task_with_report(sources[task.name], task, vocabulary)
    if not data.train:
        raise EvaluationError(
            f"{task.name}: got no training rows, expected at least one; without training rows, the task can only be "
            "scored with another task's model"
        )
    n_labels = len(data.labels) if HEADS[task.head.kind].has_label_set else None
    train = _encode(settings, data.train, tokenizer, n_labels)
    kept = train.examples if isinstance(train, EncodedSpans) else data.train
    sets = [
        scored_set(name, task, data.labels, _encode(settings, rows, tokenizer, n_labels), rows)
        for name, rows in data.scored.items()
    ]
    sets += _transferred(settings, sources, vocabulary, tokenizer, data.labels)
    if len({scored.name for scored in sets}) < len(sets):
        raise ConfigError(
            f"finetune.transfer: got scored sets with the names {', '.join(scored.name for scored in sets)}, expected "
            "each name only once"
        )
    counts = report.measures()
    if settings.protocol.official:
        sets = [whole_batches(scored) for scored in sets]
        counts |= {f"scored_{scored.name}": int(scored.is_scored.sum()) for scored in sets}
    train_set = scored_set("train", task, data.labels, train, data.train)
    return EncodedTask(train_set, input_groups(kept), tuple(sets), n_labels, tokenizer.pad_id, counts)


def measures(task: EncodedTask) -> dict[str, float]:
    """Return measurements for the manifest.

    They contain `task.counts`. For each split, they contain the number of rows and the number of truncated rows or, for
    sentences with spans, the number of targets and the number of dropped sentences. For each scored split, they contain
    the scores of a majority baseline, unless the task is a regression.
    """
    measures: dict[str, float] = dict(task.counts)
    for name, data in ((scored.name, scored.data) for scored in (task.train, *task.sets)):
        measures[f"{name}_rows"] = data.n_units
        if isinstance(data, EncodedSpans):
            measures[f"dropped_{name}_sentences"] = data.dropped
        else:
            measures[f"truncated_{name}_rows"] = cast("Any", data).truncated
    for scored in task.sets:
        if isinstance(scored.data, EncodedSpans):
            baseline = majority_baseline(task.train.labels, scored.labels)
            measures[f"majority_accuracy_{scored.name}"] = baseline.accuracy
            measures[f"majority_micro_f1_{scored.name}"] = baseline.micro_f1
        elif (majority := scored.majority_accuracy) is not None:
            measures[f"majority_accuracy_{scored.name}"] = majority
    return measures


def _transferred(
    settings: FinetuneSettings,
    sources: Mapping[str, RawSource],
    vocabulary: frozenset[str] | None,
    tokenizer: TextTokenizer,
    model_labels: tuple[str, ...],
) -> list[ScoredSet]:
    """Return the first scored split of each task in `settings.transfer`. The model is scored on these tasks without
    training on them.

    Splits that differ only in the label mapping share their encoded rows.
    """
    sets, known = list[ScoredSet](), list[tuple[object, Rows, EncodedData]]()
    for task in settings.transfer:
        mapping = label_mapping(task, model_labels)
        identity = (dict(settings_of(task)), sources[task.name])
        shared = next(((rows, data) for other, rows, data in known if other == identity), None)
        if shared is None:
            data, _ = read_task_with_report(sources[task.name], task, vocabulary)
            rows = next(iter(data.scored.values()))
            shared = rows, _encode(settings, rows, tokenizer, len(task.labels))
            known.append((identity, *shared))
        sets.append(scored_set(task.name, task, task.label_names, shared[1], shared[0], mapping))
    return sets


def _encode(settings: FinetuneSettings, rows: Rows, tokenizer: TextTokenizer, n_labels: int | None) -> EncodedData:
    max_length, task = settings.protocol.max_length, settings.task
    if isinstance(rows[0], Example):
        in_front = settings.protocol.edition == 2026 and settings.protocol.track is None
        return encode_texts(cast("Sequence[Example]", rows), tokenizer, max_length, pads_in_front=in_front)
    if task.head.kind not in SPAN_HEADS or n_labels is None:
        expected = " or ".join(SPAN_HEADS)
        raise ConfigError(f"finetune.task.head.kind: got {task.head.kind!r}, expected {expected} for rows with spans")
    options: Any = build(HEADS[task.head.kind].options, task.head.options, f"head.{task.head.kind}")
    multi_label = isinstance(options, ProbeOptions) and options.multi_label
    spans = cast("Sequence[SpanExample]", rows)
    return encode_spans(spans, tokenizer, max_length, n_labels, multi_label, task.normalisation)
