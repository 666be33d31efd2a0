"""Conversion of raw sources to document shards: read files in parallel, merge their documents in order, assign splits,
and count.

Small files are grouped into tasks of about GROUP_BYTES. With several processes, a large file is divided into several
tasks if its reader supports this. Each task writes its documents to one temporary file. Shards contain the documents
ordered by source, as configured, and by file name, so equal sources produce equal bytes for any number of processes.
Memory is constant: a process holds one row group of documents. A killed conversion continues with the missing tasks; a
damaged source leaves no shard and no table.
"""

import shutil
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hatchery.artifacts.checksums import digest
from hatchery.artifacts.manifests import StageRun
from hatchery.artifacts.parallel_map import Facts, Part, make_parts
from hatchery.artifacts.parquet import TableWriter, read_groups
from hatchery.corpora.corpus_writer import SCHEMA, CorpusWriter, Splitter, document_row, point, schema_of
from hatchery.corpora.decontamination import SHARED, Contamination
from hatchery.corpora.documents import Reader, ReaderContext, Rejections
from hatchery.corpora.duplicates import (
    DUPLICATES,
    KEYS,
    Duplicates,
    TextKeys,
    duplicates_note,
    line_keys,
    without_lines,
)
from hatchery.corpora.near_duplicates import NEAR, NEAR_ELSEWHERE, NOT_NEAR, SIGNATURES, near_duplicates, signature_row
from hatchery.corpora.raw_files import PIECE_BYTES, Piece, unpacked_bytes
from hatchery.corpora.readers import reader_and_options
from hatchery.corpora.sentences import open_splitter
from hatchery.corpora.settings import ENGLISH, ConvertSettings, SourceSettings, SplitSettings
from hatchery.errors import ConfigError, CorpusError
from hatchery.progress import Progress
from hatchery.raw.registration import RawSource, open_source

GROUP_BYTES = 16 << 20


@cache
def opened(manifest: Path) -> RawSource:
    """Return the source of a manifest, read once per process, because some manifests have a hundred thousand
    entries.
    """
    return open_source(manifest)


@dataclass(frozen=True)
class FileGroup:
    """A task for one process: files of one source, and the options of their reader."""

    source: SourceSettings
    settings: ConvertSettings
    manifest: Path
    sentence_model: Path | None
    files: tuple[str, ...]
    files_digest: str
    """Digest of the names of all files that the reader reads from this source, because a reader may depend on the list
    of files."""
    count: int
    """Number of files that the reader reads from this source."""
    piece: Piece | None = None
    """The piece of the file to read, if the group is one file; None if complete files are read."""

    @property
    def bytes(self) -> int:
        """Return the number of bytes to read."""
        if self.piece is not None:
            return self.piece.end - self.piece.start
        return sum(size for _, size, _ in self._content())

    def _content(self) -> list[tuple[str, int, str]]:
        """Return (name, size, checksum) of each file and of its companion files."""
        raw = opened(self.manifest)
        return [(file, *raw.files[file]) for file in _with_others(self.source, raw, self.files)]

    def key(self) -> list[Any]:
        """Return the values that determine the task's result: the reader's settings, and the content of the files."""
        return [
            asdict(self.source),
            self._content(),
            self.files_digest,
            None if self.sentence_model is None else opened(self.sentence_model).files,
            self.settings.sentence_reading,
            self.settings.languages or (),
            self.settings.split.seed,
            None if self.settings.near_duplicates is None else asdict(self.settings.near_duplicates),
            None if self.piece is None else asdict(self.piece),
        ]


def reader_of(source: SourceSettings) -> tuple[Reader, Any]:
    """Return the reader of a source and its checked options. Raises ConfigError naming the source."""
    return reader_and_options(source.reader, source.options, f"source {source.name!r}")


def columns_of(options: Any) -> tuple[bool, tuple[str, ...]]:
    """Return whether the options of a reader name a column with the licences of the documents, and the columns of
    numbers that the options name.
    """
    return getattr(options, "licence_column", None) is not None, getattr(options, "numeric_columns", ())


def files_of(source: SourceSettings, raw: RawSource) -> list[str]:
    """Return the names of all files that the reader of a source reads. Raises SourceError if there is no file."""
    reader, options = reader_of(source)
    return _with_others(source, raw, reader.files(raw, options))


def _with_others(source: SourceSettings, raw: RawSource, files: Iterable[str]) -> list[str]:
    """Return `files`, followed by their companion files, such as their translations."""
    reader, options = reader_of(source)
    companions, chosen = reader.companions, list(files)
    if companions is None:
        return chosen
    return [*chosen, *(other for file in chosen for other in companions(raw, file, options))]


def file_groups(
    source: SourceSettings,
    settings: ConvertSettings,
    manifest: Path,
    sentence_model: Path | None = None,
    may_divide: bool = True,
) -> Iterator[FileGroup]:
    """Yield the tasks of one source, in reading order. Raises SourceError if the reader finds no file in the source.

    If `may_divide` is False, a large file is one task; dividing a file costs a further pass over it, to count its
    documents.
    """
    raw = opened(manifest)
    reader, options = reader_of(source)
    names = reader.files(raw, options)
    group = partial(FileGroup, source, settings, manifest, sentence_model, files_digest=digest(names), count=len(names))
    files: list[str] = []
    size = 0
    for file in names:
        bytes_of_file = raw.files[file][0]
        if may_divide and reader.divide is not None and bytes_of_file > PIECE_BYTES:
            pieces = list(_counted(reader.divide(raw, file, options, len(names)), raw, file))
            if pieces:
                if files:
                    yield group(files=tuple(files))
                    files, size = [], 0
                for piece in pieces:
                    yield group(files=(file,), piece=piece)
                continue
        if files and size + bytes_of_file > GROUP_BYTES:
            yield group(files=tuple(files))
            files, size = [], 0
        files.append(file)
        size += bytes_of_file
    if files:
        yield group(files=tuple(files))


def _counted(pieces: Iterator[Piece], source: RawSource, file: str) -> Iterator[Piece]:
    total = unpacked_bytes(source, file) // 1000
    with Progress(total, f"find the documents of {file}", "kB") as progress:
        for piece in pieces:
            progress.update(min((piece.end - piece.start) // 1000, total - progress.done))
            yield piece


def write_documents(group: FileGroup, path: Path) -> Facts:
    """Read the group's files and write their documents to `path`.

    Returns the number of documents, the rejections and the assumptions. Raises CorpusError when two documents of one
    file have the same name.
    """
    source, seed = group.source, group.settings.split.seed
    raw = opened(group.manifest)
    reader, options = reader_of(source)
    model = None if group.sentence_model is None else opened(group.sentence_model)
    language = getattr(options, "punkt_language", None) or ENGLISH
    splitter = open_splitter(model, group.settings.sentence_reading, language)
    rejections = Rejections()
    english = group.settings.languages == ("en",)
    context = ReaderContext(source.name, options, rejections, splitter.split, group.count, group.piece, english)
    near = group.settings.near_duplicates
    schema = pa.schema([*schema_of(*columns_of(options)), *KEYS, *(() if near is None else SIGNATURES)])
    with TableWriter(path, schema, is_temporary=True) as table:
        for file in group.files:
            seen: set[str] = set()
            for document in reader.read(raw, file, context):
                if document.doc_id in seen:
                    raise CorpusError(
                        f"source {source.name!r}: {file}: the document name {document.doc_id!r} occurs twice"
                    )
                seen.add(document.doc_id)
                row = document_row(**asdict(document))
                keys: dict[str, object] = {
                    "point": point(seed, document.text),
                    "long_lines": line_keys(document.text),
                }
                table.write(row | keys | ({} if near is None else signature_row(document.text, near)))
        written = table.rows
    return {
        "documents": written,
        "rejected": dict(sorted(rejections.counts.items())),
        "samples": dict(sorted(rejections.samples.items())),
        "assumed": dict(sorted(context.assumed.items())),
    }


_REASONS_SHOWN = 3
CUTTING = "options of the source: lines_per_document, or cut_files: always"


def convert(
    settings: ConvertSettings,
    source: Mapping[str, Path],
    run: StageRun,
    sentence_model: Path | None = None,
    workers: int = 1,
    evaluation: Mapping[str, Path] = MappingProxyType({}),
) -> None:
    """Convert the sources of a corpus into shards and tables; the stage `convert_corpus` calls this function."""
    names = [each.name for each in settings.sources]
    if set(names) != set(source):
        raise ConfigError(
            f"source: got {', '.join(sorted(source))}, expected the sources of the settings: {', '.join(sorted(names))}"
        )
    if (settings.sentence_model is None) != (sentence_model is None):
        raise ConfigError(
            f"sentence_model: got {sentence_model}, expected {settings.sentence_model}, the value in the settings"
        )
    asked = () if settings.decontamination is None else settings.decontamination.data
    if set(asked) != set(evaluation):
        raise ConfigError(
            f"evaluation: got {', '.join(sorted(evaluation))}, expected the entries of decontamination.data in the "
            f"settings: {', '.join(asked)}"
        )
    for index, each in enumerate(settings.sources):
        reader_and_options(each.reader, each.options, f"sources[{index}]")
    groups = [
        group
        for each in settings.sources
        for group in file_groups(each, settings, source[each.name], sentence_model, may_divide=workers > 1)
    ]
    folder = run.folder / ".parts"
    parts = _read(groups, folder, workers)
    chosen = settings.decontamination
    contamination = None if chosen is None else Contamination.read(evaluation, chosen.words)
    _merge(settings, groups, parts, run, contamination)
    _report_skipped(settings, source)
    shutil.rmtree(folder, ignore_errors=True)


def _read(groups: list[FileGroup], folder: Path, workers: int) -> list[Part]:
    """Read all groups, write the documents of each group to a file in `folder`, and return these files.

    A MemoryError becomes a CorpusError that names source and files.
    """
    sizes = [group.bytes // 1000 for group in groups]
    parts = []
    with Progress(sum(sizes), "read sources", "kB") as progress:
        parts_made = make_parts(groups, write_documents, [group.key() for group in groups], folder, workers)
        try:
            for size, part in zip(sizes, parts_made, strict=True):
                parts.append(part)
                progress.update(size)
        except MemoryError as error:
            group = groups[len(parts)]
            more = f" and {len(group.files) - 1} more files" if len(group.files) > 1 else ""
            raise CorpusError(
                f"source {group.source.name!r}: not enough memory to read {group.files[0]}{more}; run the same "
                "command again with fewer processes (compute.corpus_threads in config/config.yaml) or more memory; "
                "finished parts are kept"
            ) from error
    return parts


def _splits(settings: SplitSettings, keys: TextKeys, remaining: npt.NDArray[np.bool_]) -> list[str]:
    """Return the split of each document. `remaining` is False for a document that is left out of the corpus, so that
    it is no development document. Raises CorpusError if the training or development split would be empty.
    """
    if settings.development_documents is None and any(keys.given):
        splitter = Splitter(settings)
    else:
        undecided = np.array([split is None for split in keys.given], dtype=np.bool_) & remaining
        remedy = f"bring more text, cut it into documents ({CUTTING})"
        splitter = Splitter(settings, keys.points[undecided], remedy)
    places = keys.points.tolist()
    return [split or splitter(place) for split, place in zip(keys.given, places, strict=True)]


def _report_skipped(settings: ConvertSettings, manifests: Mapping[str, Path]) -> None:
    """Report the number of unread files of each source by file suffix, unless options chose the files.

    These numbers are only logged, because a corpus must not depend on unread files.
    """
    for source in settings.sources:
        reader, options = reader_of(source)
        skipped = None if reader.skipped is None else reader.skipped(opened(manifests[source.name]), options)
        if skipped:
            print(f"source {source.name!r}: files not read: {_most_frequent(skipped)}", file=sys.stderr)


def _merge(
    settings: ConvertSettings,
    groups: list[FileGroup],
    parts: list[Part],
    run: StageRun,
    contamination: Contamination | None = None,
) -> None:
    keys = TextKeys.read(part.path for part in parts)
    near = np.full(len(keys.points), NOT_NEAR, dtype=np.int64)
    if settings.near_duplicates is not None:
        near = near_duplicates((part.path for part in parts), len(near), settings.near_duplicates, run.folder)
    duplicates = Duplicates(keys, _splits(settings.split, keys, near == NOT_NEAR))
    columns = {source.name: columns_of(reader_of(source)[1]) for source in settings.sources}
    numeric_columns = list(dict.fromkeys(name for _, numbers in columns.values() for name in numbers))
    with_licences = any(licences for licences, _ in columns.values())
    with (
        CorpusWriter(run, list(columns), settings.documents_per_shard, with_licences, numeric_columns) as corpus,
        Progress(len(duplicates.splits), "write corpus", "documents") as progress,
    ):
        corpus.duplicates = duplicates.rows()
        documents_by_source = Counter[str]()
        index = 0
        for group, part in zip(groups, parts, strict=True):
            documents_by_source[group.source.name] += part.facts["documents"]
            rejected = Rejections(Counter(part.facts["rejected"]), part.facts["samples"])
            corpus.rejections[group.source.name].merge(rejected)
            corpus.assumed[group.source.name].update(part.facts["assumed"])
            for table in read_groups(part.path, schema_of(*columns[group.source.name]).names):
                splits = pa.array(duplicates.splits[index : index + table.num_rows], pa.string())
                rows = table.set_column(table.schema.get_field_index("split"), SCHEMA.field("split"), splits)
                kept = _kept_rows(rows, duplicates, near, index, settings, contamination, corpus.rejections)
                corpus.write_rows(kept)
                index += table.num_rows
                progress.update(table.num_rows)
        for name, rejections in corpus.rejections.items():
            if corpus.assumed[name]:
                progress.note(f"source {name!r}: read as (assumed.csv): {_most_frequent(corpus.assumed[name])}")
            if documents_by_source[name] and rejections.counts:
                progress.note(f"source {name!r}: left out (rejected.csv): {_most_frequent(rejections.counts)}")
            if note := duplicates_note(corpus.duplicates, name):
                progress.note(f"source {name!r}: {note} ({DUPLICATES}; `duplicates` of the corpus leaves them out)")
            if not documents_by_source[name]:
                reasons = ", ".join(f"{count} x {reason}" for reason, count in sorted(rejections.counts.items()))
                raise CorpusError(f"source {name!r}: no document was found ({reasons or 'the files are empty'})")


def _kept_rows(
    table: pa.Table,
    duplicates: Duplicates,
    near: npt.NDArray[np.int64],
    first: int,
    settings: ConvertSettings,
    contamination: Contamination | None,
    rejections: Mapping[str, Rejections],
) -> pa.Table:
    """Return the rows of the kept documents, with their kept text; count removed documents and lines as rejections.

    `near` is the result of `near_duplicates`. `first` is the index of the first document in the corpus.
    """
    has_repeated = settings.duplicates != "keep" and duplicates.any_of(first, first + table.num_rows)
    has_near = bool((near[first : first + table.num_rows] != NOT_NEAR).any())
    if not has_repeated and not has_near and contamination is None:
        return table
    rows = []
    for index, row in enumerate(table.to_pylist(), first):
        rejected = rejections[row["source"]]
        kept = _remaining_text(row["text"], duplicates, index, settings, rejected)
        if kept is not None and near[index] != NOT_NEAR:
            is_elsewhere = duplicates.splits[near[index]] != row["split"]
            rejected.count(NEAR_ELSEWHERE if is_elsewhere else NEAR, sample=row["text"])
            kept = None
        if kept is not None and contamination is not None and row["split"] == "train":
            cleaned, shared = contamination.cleaned(kept)
            if shared:
                rejected.count(SHARED, shared, sample=kept)
                kept = cleaned or None
        # An unchanged document keeps its row, so that its words are not counted again.
        if kept == row["text"]:
            rows.append(row)
        elif kept is not None:
            rows.append(row | document_row(row["doc_id"], row["source"], row["split"], kept, row.get("licence")))
    return pa.Table.from_pylist(rows, schema=table.schema)


def _remaining_text(
    text: str, duplicates: Duplicates, document: int, settings: ConvertSettings, rejections: Rejections
) -> str | None:
    """Return the kept text of a document, None if the whole document is removed; count removed texts as rejections."""
    if settings.duplicates == "keep":
        return text
    if duplicates.documents[document]:
        rejections.count("document that stands in the corpus before", sample=text)
        return None
    if settings.duplicates == "drop_lines" and (lines := sum(duplicates.lines_of(document))):
        rejections.count("long line that stands in the corpus before", lines)
        return without_lines(text, duplicates.lines_of(document)) or None
    return text


def _most_frequent(counts: Counter[str]) -> str:
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    shown = [f"{count:,} x {reason}" for reason, count in ordered[:_REASONS_SHOWN]]
    return ", ".join([*shown, *(["..."] if len(ordered) > len(shown) else [])])
