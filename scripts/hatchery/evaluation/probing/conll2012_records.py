"""CoNLL-2012 (OntoNotes 5) as jiant records for four edge-probing tasks, a file per task and split.

Source: docs/papers/ltg-bert.md, "Records of edge probing". Parts of speech are pre-terminals; a predicate frame is a
record, its own V span no target; coreference asks about all pairs of mentions inside one sentence. Records without
targets are left out.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import combinations
from pathlib import Path
from typing import Any

from hatchery.artifacts.atomic import atomic_path
from hatchery.artifacts.manifests import StageRun
from hatchery.errors import ConfigError, EvaluationError
from hatchery.evaluation.probing.conll2012 import AnnotatedSentence, LabelledSpan, read_gold_conll, read_hub_rows
from hatchery.evaluation.stages.convert_conll2012 import Conll2012Settings, TaskName
from hatchery.raw.registration import RawSource, open_source

Target = dict[str, Any]

# The folders of Tenney et al.'s conversion; a split is one file in each.
FOLDERS: dict[TaskName, str] = {"pos": "const/pos", "ner": "ner", "srl": "srl", "coref": "coref"}
PREDICATE = "V"
SAME_CLUSTER, OTHER_CLUSTER = "1", "0"


def convert(settings: Conll2012Settings, source: Path, run: StageRun) -> None:
    """Write the records; see `convert_conll2012`."""
    if not settings.splits or not settings.tasks:
        raise ConfigError("splits, tasks: expected one or more of both")
    raw = open_source(source)
    for split, patterns in settings.splits.items():
        counts: Counter[str] = Counter()
        paths = {task: run.folder / FOLDERS[task] / f"{split}.json" for task in settings.tasks}
        with ExitStack() as stack:
            handles = {}
            for task, path in paths.items():
                path.parent.mkdir(parents=True, exist_ok=True)
                partial = stack.enter_context(atomic_path(path))
                handles[task] = stack.enter_context(Path(partial).open("w", encoding="utf-8", newline="\n"))
            for sentence in _sentences(raw, patterns, split):
                counts["sentences"] += 1
                counts["frames_without_predicate"] += sum(_predicate(frame) is None for frame in sentence.frames)
                for task in settings.tasks:
                    for targets in TARGETS[task](sentence):
                        handles[task].write(_record(sentence, targets))
                        counts[f"{task}_records"] += 1
                        counts[f"{task}_targets"] += len(targets)
        for path in paths.values():
            run.add_output(path)
        run.measures[split] = dict(sorted(counts.items()))


def _sentences(source: RawSource, patterns: str | tuple[str, ...], split: str) -> Iterator[AnnotatedSentence]:
    for pattern in (patterns,) if isinstance(patterns, str) else patterns:
        names = source.names(pattern)
        if not names:
            raise EvaluationError(f"{source.root}: no file matches {pattern!r}, the split {split!r}")
        for name in names:
            yield from sentences_of(source, name)


def sentences_of(source: RawSource, name: str) -> Iterator[AnnotatedSentence]:
    """The sentences of a file in columns or of a Parquet file. Raises EvaluationError naming the place."""
    return (read_hub_rows if name.endswith(".parquet") else read_gold_conll)(source, name)


def part_of_speech_targets(sentence: AnnotatedSentence) -> Iterator[list[Target]]:
    """One record: the tag of every word."""
    yield [{"span1": [i, i + 1], "label": tag} for i, tag in enumerate(sentence.parts_of_speech)]


def entity_targets(sentence: AnnotatedSentence) -> Iterator[list[Target]]:
    """One record where there is an entity: the type of every given mention."""
    if sentence.entities:
        yield [{"span1": _edges(entity), "label": entity.label} for entity in sentence.entities]


def role_targets(sentence: AnnotatedSentence) -> Iterator[list[Target]]:
    """A record per predicate that has arguments: predicate, argument, role."""
    for frame in sentence.frames:
        predicate = _predicate(frame)
        arguments = [span for span in frame if span.label != PREDICATE]
        if predicate is not None and arguments:
            first = _edges(predicate)
            yield [{"span1": first, "span2": _edges(span), "label": span.label} for span in arguments]


def coreference_targets(sentence: AnnotatedSentence) -> Iterator[list[Target]]:
    """One record where there are two mentions: whether the two of every pair name the same."""
    pairs = [(a, b) for a, b in combinations(sentence.mentions, 2) if _edges(a) != _edges(b)]
    if pairs:
        yield [
            {
                "span1": _edges(first),
                "span2": _edges(second),
                "label": SAME_CLUSTER if first.label == second.label else OTHER_CLUSTER,
            }
            for first, second in pairs
        ]


TARGETS: dict[TaskName, Callable[[AnnotatedSentence], Iterator[list[Target]]]] = {
    "pos": part_of_speech_targets,
    "ner": entity_targets,
    "srl": role_targets,
    "coref": coreference_targets,
}


def _predicate(frame: tuple[LabelledSpan, ...]) -> LabelledSpan | None:
    return next((span for span in frame if span.label == PREDICATE), None)


def _edges(span: LabelledSpan) -> list[int]:
    return [span.start, span.end]


def _record(sentence: AnnotatedSentence, targets: list[Target]) -> str:
    info = {"document": sentence.document, "part": sentence.part, "where": sentence.where}
    targets = [{**target, "info": {}} for target in targets]
    return json.dumps({"text": " ".join(sentence.words), "targets": targets, "info": info}, ensure_ascii=False) + "\n"
