"""One part of a selection: one process selects texts from some files of a source, by a filter or by drawing windows.

Only the first of equal texts is kept in each unit, a group of `documents_per_unit` documents. Units and texts never
extend over two files, so the division of files into parts, and thus the number of processes, does not change the
result. If the whole corpus is one unit, the parts store digests of the texts, and equal texts are removed when the
parts are joined.

Documents come from a raw source, and Punkt divides them into sentences; or they come from a corpus, whose documents
already have one sentence per line.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from hatchery.artifacts.manifests import OutputFile, read_manifest
from hatchery.artifacts.parallel_map import Facts
from hatchery.artifacts.parquet import read_groups
from hatchery.corpora.documents import Rejections, chosen_samples
from hatchery.corpora.file_groups import opened
from hatchery.corpora.raw_texts import RawTextOptions, raw_text_files, raw_texts
from hatchery.corpora.sentences import open_splitter
from hatchery.raw.registration import RawSource
from hatchery.vocabulary.comparison import (
    COMPARISONS,
    HYPERLINK,
    REASONS,
    KnownWords,
    Outcome,
    Rule,
    counted_words,
    plain_sentences,
)
from hatchery.vocabulary.filters import (
    Marked,
    SentenceFilter,
    SpanFilter,
    drawn_windows,
    marked_windows,
    smallest_marks,
)
from hatchery.vocabulary.items import MARK_BYTES, PartWriter, without_surrogates
from hatchery.vocabulary.settings import SelectionSettings
from hatchery.vocabulary.word_lists import read_vocabulary

DUPLICATE = "duplicate"
# Choosing samples costs more than filtering. Accepted and rejected samples are therefore taken only from the first
# documents of a file, and from every hundredth later document.
_FIRST_SAMPLED = 100
_SAMPLED_EVERY = 100


@dataclass(frozen=True)
class Texts:
    """The input files, and a function that reads a file.

    `files` maps the names of the files, in reading order, to (size in bytes, SHA-256).
    """

    name: str
    """Name of the raw source or the corpus."""
    files: dict[str, tuple[int, str]]
    read: Callable[[str], Iterator[tuple[str, str]]]
    """Function that yields (name, text) of each document of a file, and raises SourceError or ManifestError if the file
    is damaged.
    """


@cache
def opened_texts(manifest: Path, options: RawTextOptions | None) -> Texts:
    """Return the input files of a raw source or, if `options` is None, of a corpus. A process reads `manifest` only
    once.

    Raises SourceError or ManifestError for a damaged manifest, and SourceError if no file matches the options.
    """
    if options is None:
        corpus = read_manifest(manifest)
        shards = {shard.path.name: shard for shard in corpus.listed(".parquet")}
        files = {name: (shard.bytes, shard.sha256) for name, shard in shards.items()}
        return Texts(corpus.folder.name, files, lambda file: _documents(shards[file]))
    source = opened(manifest)
    names = raw_text_files(source, options)
    return Texts(source.name, {name: source.files[name] for name in names}, partial(_raw_documents, source, options))


def _documents(shard: OutputFile) -> Iterator[tuple[str, str]]:
    for table in read_groups(shard.path, ["doc_id", "text"]):
        yield from zip(*(column.to_pylist() for column in table.columns), strict=True)


def _raw_documents(source: RawSource, options: RawTextOptions, file: str) -> Iterator[tuple[str, str]]:
    for key, text, _ in raw_texts(source, file, options):
        yield f"{file}/{key}" if key else file, text


def source_of(document: str) -> str:
    """Return the source of a document of a corpus, which is the document's name up to the first slash."""
    return document.partition("/")[0]


@dataclass(frozen=True)
class Task:
    """The task of one process: to select texts from `files`, which are consecutive files of a source.

    `first_file` is the index of the first of these files in the source.
    """

    settings: SelectionSettings
    source: Path
    """Manifest of a raw source, or of a corpus if `settings.options` is None."""
    vocabulary: Path
    sentence_model: Path | None
    files: tuple[str, ...]
    first_file: int

    @property
    def texts(self) -> Texts:
        """All input files of the source."""
        return opened_texts(self.source, self.settings.options)


Select = Callable[[str, bool], Outcome]


@cache
def _filter(settings: SelectionSettings, vocabulary: Path, model: Path | None) -> Select:
    rule = Rule(
        read_vocabulary(vocabulary),
        COMPARISONS[settings.reading],
        # `SelectionKeys` replaces None by a default, so `minimum_counted_words` is never None here.
        settings.minimum_counted_words or 0,
        settings.lower_case,
    )
    if settings.level == "spans":
        return SpanFilter(rule, settings.window_words, settings.stride_words).select
    if settings.options is None:
        # In a corpus, each line of a document is one sentence.
        return lambda document, examples: plain_sentences(document, rule, lambda text: filter(None, text.split("\n")))
    return SentenceFilter(rule, open_splitter(None if model is None else opened(model)).punkt).select


def select_part(task: Task, path: Path) -> Facts:
    """Select texts from the task's files, and write them to `path`. Return the counts of documents and texts, the
    number of units (groups of `documents_per_unit` documents or, for windows, of `documents_per_text` documents), and
    samples of accepted and rejected texts.
    """
    record = _Record()
    with PartWriter(path) as part:
        if task.settings.level != "windows":
            _filter_files(task, part, record)
        elif task.settings.documents_per_text is None:
            _draw_from_corpus(task, part, record)
        else:
            _draw_from_texts(task, part, record, task.settings.documents_per_text)
    return record.facts()


class _Record:
    """Collector of the facts on one part of a selection: counts of documents and texts, number of units (groups of
    documents, see `select_part`), and samples of accepted and rejected texts.
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.units = 0
        self.rejections = Rejections()
        self._accepted: list[str] = []

    def documents(self, task: Task, file: str) -> Iterator[tuple[str, str]]:
        """Yield (name, text) of each document of a file. At the end of the file, add its numbers of documents and
        characters to `counts`.
        """
        documents = characters = 0
        for name, text in task.texts.read(file):
            documents += 1
            characters += len(text)
            yield name, text
        self.counts.update(documents=documents, characters=characters)

    def sample(self, accepted: str | None, rejected: dict[str, str]) -> None:
        """Offer an accepted text, and rejected texts by reason, as samples; only some offered texts are kept."""
        if accepted is not None:
            self._accepted = chosen_samples([*self._accepted, without_surrogates(accepted)])
        for reason, text in rejected.items():
            self.rejections.count(reason, 0, without_surrogates(text))

    def facts(self) -> Facts:
        return {
            "counts": dict(sorted(self.counts.items())),
            "units": self.units,
            "accepted": self._accepted,
            "rejected": dict(sorted(self.rejections.samples.items())),
        }


def sampled(index: int) -> bool:
    """Return True if samples are taken from the document with this index in its file."""
    return index < _FIRST_SAMPLED or index % _SAMPLED_EVERY == 0


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=MARK_BYTES).digest()


def _filter_files(task: Task, part: PartWriter, record: _Record) -> None:
    select = _filter(task.settings, task.vocabulary, task.sentence_model)
    per_unit = task.settings.documents_per_unit
    rejected = dict.fromkeys((*REASONS, DUPLICATE), 0)
    accepted = unit = 0
    for file in task.files:
        seen: set[bytes] = set()
        first_unit = unit
        for index, (name, document) in enumerate(record.documents(task, file)):
            if per_unit is not None and index % per_unit == 0:
                unit = first_unit + index // per_unit
                seen.clear()
            examples = sampled(index)
            outcome = select(document, examples)
            for reason, number in outcome.rejected.items():
                rejected[reason] += number
            for text, counted in outcome.accepted:
                accepted += 1
                mark = _digest(text)
                if per_unit is None:
                    part.write(name, 0, text, counted, mark)
                elif mark in seen:
                    rejected[DUPLICATE] += 1
                else:
                    seen.add(mark)
                    part.write(name, unit, text, counted)
            if examples:
                record.sample(outcome.accepted[0][0] if outcome.accepted else None, outcome.examples)
        unit += per_unit is not None
    record.units = unit
    record.counts.update(rejected, candidates=accepted + sum(rejected.values()) - rejected[DUPLICATE])


def _draw_from_texts(task: Task, part: PartWriter, record: _Record, documents_per_text: int) -> None:
    settings = task.settings
    write = _WindowWriter(task, part, record)
    for file in task.files:
        texts = 0
        for window in drawn_windows(
            record.documents(task, file),
            documents_per_text,
            settings.windows_per_text,
            settings.window_words,
            settings.stride_words,
            _seed(task, file),
        ):
            if window.text_number == texts:
                texts += 1
                record.counts["candidates"] += window.windows
            write(window.document, record.units + window.text_number, window.text, None)
        record.units += texts


def _draw_from_corpus(task: Task, part: PartWriter, record: _Record) -> None:
    settings = task.settings
    write = _WindowWriter(task, part, record)

    def windows() -> Iterator[Marked]:
        for number, file in enumerate(task.files, task.first_file):
            documents = record.documents(task, file)
            for window in marked_windows(
                documents, settings.window_words, settings.stride_words, _seed(task, file), number
            ):
                record.counts["candidates"] += 1
                yield window

    for window in smallest_marks(windows(), settings.windows_per_text):
        write(window.document, 0, window.text, window.mark)


def _seed(task: Task, file: str) -> str:
    return f"{task.settings.seed}/{task.texts.name}/{file}"


class _WindowWriter:
    """Writes randomly drawn windows (consecutive words of a text) with the number of their counted words, and keeps
    some windows as samples of the result. The windows are lower-cased if the settings request lower case.
    """

    def __init__(self, task: Task, part: PartWriter, record: _Record) -> None:
        self._part, self._record = part, record
        self._lower_case = task.settings.lower_case
        self._comparison = COMPARISONS[task.settings.reading]
        self._known = KnownWords(read_vocabulary(task.vocabulary), self._comparison)
        self._number = 0

    def __call__(self, document: str, unit: int, text: str, mark: bytes | None) -> None:
        if self._lower_case:
            text = text.lower()
        counted = counted_words(text, self._comparison)
        within = HYPERLINK not in text.lower() and self._known.contains(text)
        self._part.write(document, unit, text, counted, mark, within)
        if sampled(self._number):
            self._record.sample(text, {})
        self._number += 1
