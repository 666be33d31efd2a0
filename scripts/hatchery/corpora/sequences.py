"""Conversion of selections of text to a corpus of sequences. The settings determine quotas of texts, the grouping of
texts into sequences, and exact numbers of held-out sequences.

Source: the reduced-vocabulary paper (docs/papers/reduced-vocabulary.md, "Grouping", "Sequences" and "Unconstrained
windows"). There are two levels of text: sentences and spans. Each level is grouped separately. The development split
and the test split each contain exactly 75,000 sequences of sentences and 25,000 sequences of spans, which are drawn at
random. For comparison, there is an unconstrained corpus, whose words are not limited to a vocabulary. It has a quota
for each selection, and uses the development and test sequences of the constrained corpus (`held_out`). The sequences
stay in the order of grouping; pretraining shuffles the sequences later. Memory holds a few numbers per item or
sequence, but only some of the texts at a time; no output depends on the division of the selections into shards.
"""

import shutil
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from hatchery.artifacts.manifests import Manifest, StageRun
from hatchery.artifacts.parquet import TableWriter, read_batches, read_rows
from hatchery.artifacts.records import Record, read_records
from hatchery.corpora.corpus_writer import CorpusWriter, document_row, point, write_csv
from hatchery.corpora.documents import SPLITS, Rejections
from hatchery.corpora.grouping import Item, drawn, grouped, point_of_the_last, shuffled_units
from hatchery.corpora.settings import SequenceGroup, SequenceSettings, number_of
from hatchery.errors import ConfigError, CorpusError, ManifestError
from hatchery.progress import Progress
from hatchery.settings.base import Natural

_GROUPED = pa.schema([("selection", pa.string()), ("text", pa.string())])
_ROWS_PER_BATCH = 2000
_CODES = ("train", "dev", "test", None)
_PARTIAL = "in the last, partial sequence"
_EMPTY = "without a word"
_SET_ASIDE = "set aside"
_SAMPLES_OFFERED = 50
_NOT_IN_QUOTA = "not drawn for the quota"
_AFTER_MAXIMUM = "after the last sequence that was wanted"


def group(
    settings: SequenceSettings, selection: Mapping[str, Manifest], held_out: Manifest | None, run: StageRun
) -> None:
    """Group the selected texts into sequences and write the corpus; the stage `group_sequences` calls this function."""
    names = settings.selections
    if set(names) != set(selection):
        raise ConfigError(
            f"--selection: got {', '.join(sorted(selection))}, expected the selections of the settings: "
            f"{', '.join(names)}"
        )
    if held_out is not None and any(group.development or group.test for group in settings.groups):
        raise ConfigError(
            "development, test: got a number above 0, expected 0 with held_out_from, which names the held-out sequences"
        )
    folder = run.folder / ".grouping"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        groups = [_Grouping(group, settings, selection, folder) for group in settings.groups]
        for group in groups:
            group.group()
        _write(settings, groups, held_out, run)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    rows = [row for group in groups for row in group.table()]
    write_csv(run, "selections.csv", ("selection", "source", "level", "texts", "words", "counted_words"), rows)
    run.measures["levels"] = {group.level: {"texts": group.texts, "sequences": group.sequences} for group in groups}


class _Grouping:
    """Groups all sentences or all spans into sequences, stores the sequences in a file, and counts the rejected
    sentences or spans.
    """

    def __init__(
        self, group: SequenceGroup, settings: SequenceSettings, selections: Mapping[str, Manifest], folder: Path
    ) -> None:
        self.level = group.level
        self.texts = 0
        self.rejections = {name: Rejections() for name in group.selections}
        self._group = group
        self._settings = settings
        self.selections = selections
        self._folder = folder / group.level
        self._file = self._folder / "sequences.parquet"
        self._counts: dict[tuple[str, str], Counter[str]] = {}
        self._numbers: Counter[str] = Counter()
        self._points = array("Q")

    @property
    def sequences(self) -> int:
        """Return the number of grouped sequences."""
        return len(self._points)

    def group(self) -> None:
        """Group all texts of the level (sentences or spans) into sequences, and write the sequences to the level's
        file.
        """
        self._folder.mkdir()
        seed, level, maximum = self._settings.seed, self.level, self._group.maximum_sequences
        items = self._items()
        with TableWriter(self._file, _GROUPED) as table:
            for sequence in grouped(items, self._settings.length, self._settings.reading, self._lose):
                if len(self._points) == maximum:
                    left_out(self.rejections[sequence.selection], _AFTER_MAXIMUM, sequence.text, sequence.items)
                    continue
                table.write({"selection": sequence.selection, "text": sequence.text})
                self._points.append(point("split", seed, level, len(self._points)))

    def _lose(self, item: Item) -> None:
        reason = _PARTIAL if item.text.strip() else _EMPTY
        left_out(self.rejections[item.selection], reason, item.text)

    def _items(self) -> Iterator[Item]:
        for name in self._group.selections:
            texts = self._selected(name)
            if self._settings.reading == "as_published":
                ordered = shuffled_units(texts, self._settings.seed, name, self._folder)
            else:
                ordered = (text for _, text in texts)
            for text in ordered:
                yield Item(name, text)

    def _selected(self, name: str) -> Iterator[tuple[int, str]]:
        """Yield (index of the save unit, text) of each text that is drawn from the selection `name`, in document order.
        A save unit consists of the texts that the code of the reduced-vocabulary paper writes together. If the
        selection has no quota (number of texts to draw), all its texts are drawn.
        """
        manifest, quota = self.selections[name], self._group.quotas.get(name)
        last_point = None if quota is None else self._last_point(name, quota)
        taken = index = 0
        with Progress(_rows(manifest), f"group {name}", "texts") as progress:
            for batch in _batches(manifest, ["source", "unit", "text", "n_words", "n_counted"]):
                columns = [column.to_pylist() for column in batch.columns]
                for source, unit, text, words, counted in zip(*columns, strict=True):
                    index += 1
                    if last_point is not None and (taken == quota or self._quota_point(name, index) > last_point):
                        left_out(self.rejections[name], _NOT_IN_QUOTA, text)
                        continue
                    taken += 1
                    counts = self._counts.setdefault((name, source), Counter())
                    counts["texts"] += 1
                    counts["words"] += words
                    counts["counted"] += counted
                    yield unit, text
                progress.update(batch.num_rows)
        self.texts += taken

    def _quota_point(self, name: str, index: int) -> int:
        return point("quota", self._settings.seed, name, index)

    def _last_point(self, name: str, quota: int) -> int:
        rows = _rows(self.selections[name])
        if rows < quota:
            raise CorpusError(
                f"selection {name!r}: got the quota {quota:,}, expected at most {rows:,}, the number of texts in the "
                "selection"
            )
        return point_of_the_last((self._quota_point(name, index) for index in range(1, rows + 1)), quota)

    def documents(self) -> Iterator[tuple[str, str, str | None, str]]:
        """Yield (name, selection, split, text) of every sequence; `selection` is the text selection of the sequence's
        first text. The split is None for the sequences that `set_aside` excludes from all splits.
        """
        total = self.sequences
        amounts = {key: getattr(self._group, key) for key in ("development", "test", "set_aside")}
        numbers = {key: number_of(amount, total) for key, amount in amounts.items()}
        if sum(numbers.values()) >= total:
            wanted = " + ".join(f"{number:,} ({key.replace('_', ' ')})" for key, number in numbers.items())
            raise CorpusError(
                f"level {self.level!r}: got {wanted} of {total:,} sequences, which leaves no sequence for training; "
                "set smaller numbers, or shares such as 0.01"
            )
        codes = drawn(self._points, *numbers.values())
        for row, code in zip(read_rows(self._file), codes, strict=True):
            name = row["selection"]
            yield f"{name}/{self._numbers[name]:08d}", name, _CODES[code], row["text"]
            self._numbers[name] += 1

    def table(self) -> Iterator[tuple[str, str, str, int, int, int]]:
        """Yield the rows of `selections.csv`. A row contains the names of a text selection and of a source, the level
        of the texts (sentence or span), the number of drawn texts, the number of their words, and the number of those
        words that the vocabulary filter counted (`n_counted`). If the selection has no quota (number of texts to draw),
        all texts are drawn. Drawn texts that are not in any sequence are included.
        """
        for (name, source), counts in self._counts.items():
            yield name, source, self.level, counts["texts"], counts["words"], counts["counted"]


def _write(settings: SequenceSettings, groups: list[_Grouping], held_out: Manifest | None, run: StageRun) -> None:
    taken_over = [] if held_out is None else _held_out_sources(held_out, settings.selections)
    total = sum(group.sequences for group in groups)
    with (
        CorpusWriter(run, [*settings.selections, *taken_over], settings.documents_per_shard) as corpus,
        Progress(total, "write sequences", "sequences") as progress,
    ):
        for group in groups:
            for doc_id, selection, split, text in group.documents():
                if split is None:
                    left_out(corpus.rejections[selection], _SET_ASIDE, text)
                else:
                    corpus.write(document_row(doc_id, selection, split, text))
                progress.update(1)
            for selection, rejections in group.rejections.items():
                corpus.rejections[selection].merge(rejections)
                corpus.rejections[selection].merge(rejections_of_selection(group.selections[selection]))
        if held_out is not None:
            for path in _held_out_shards(held_out):
                for row in read_rows(path):
                    corpus.write(row)


def left_out(rejections: Rejections, reason: str, text: str, number: int = 1) -> None:
    """Count texts that are left out. Only the first few texts are candidates for samples, because a choice among
    millions is slow.
    """
    rejections.count(reason, number, sample=text if rejections.counts[reason] < _SAMPLES_OFFERED else None)


def _held_out_shards(held_out: Manifest) -> list[Path]:
    return [path for split in SPLITS[1:] for path in held_out.files(".parquet", f"{split}-")]


def _held_out_sources(held_out: Manifest, selections: list[str]) -> list[str]:
    names: dict[str, None] = {}
    for path in _held_out_shards(held_out):
        for row in read_rows(path):
            names[row["source"]] = None
    both = sorted(set(names) & set(selections))
    if both:
        raise ConfigError(
            f"held_out_from: the selection {both[0]!r} is in this corpus and in the corpus of held_out_from; rename "
            "the selection in one of the two corpora"
        )
    if not names:
        raise CorpusError(f"{held_out.path}: held_out_from: this corpus has no development and test sequences")
    return list(names)


def _rows(manifest: Manifest) -> int:
    return sum(batch.num_rows for path in _item_files(manifest) for batch in read_batches(path, 1 << 20, []))


def _item_files(manifest: Manifest) -> list[Path]:
    paths = manifest.files(".parquet", "items-")
    if not paths:
        raise ManifestError(f"{manifest.path}: not the manifest of a selection: the manifest names no items-*.parquet")
    return paths


def _batches(manifest: Manifest, columns: list[str]) -> Iterator[pa.RecordBatch]:
    """Yield the given columns of a selection's items in batches, in the order of the items."""
    for path in _item_files(manifest):
        for batch in read_batches(path, _ROWS_PER_BATCH, columns):
            missing = sorted(set(columns) - set(batch.schema.names))
            if missing:
                raise ManifestError(
                    f"{path}: the file does not contain the items of a text selection (stage `select_text`): the "
                    f"column {missing[0]!r} is missing"
                )
            yield batch.select(columns)


REASONS = ("hyperlink", "out_of_vocabulary", "too_short", "duplicate")


@dataclass(frozen=True)
class _Count(Record):
    measure: str
    value: Natural


@dataclass(frozen=True)
class _Sample(Record):
    outcome: str
    reason: str
    text: str


def rejections_of_selection(manifest: Manifest) -> Rejections:
    """Return the rejections of a selection: counts by reason from `counts.csv`, and rejected texts from `samples.csv`.

    Raises ManifestError if the manifest does not name these tables, and EvaluationError if a table has other columns.
    """
    rejections = Rejections()
    for counted in read_records(manifest.file("counts.csv"), _Count, may_be_empty=True):
        if counted.measure in REASONS and counted.value:
            rejections.count(_named(counted.measure), counted.value)
    for sample in read_records(manifest.file("samples.csv"), _Sample, may_be_empty=True):
        if sample.outcome == "rejected":
            rejections.count(_named(sample.reason), 0, sample=sample.text)
    return rejections


def _named(reason: str) -> str:
    return f"not selected: {reason.replace('_', ' ')}"
