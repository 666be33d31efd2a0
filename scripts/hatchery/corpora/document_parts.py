"""One part of a conversion: some files of a source, read to one file of documents in one process.

Files are grouped to about GROUP_BYTES, so that four thousand small texts are not four thousand tasks, and a large file
that its reader can divide is several tasks. A part holds the documents in reading order without their splits where the
source does not say them.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from hatchery.artifacts.checksums import digest
from hatchery.artifacts.parallel_map import Facts
from hatchery.artifacts.parquet import TableWriter
from hatchery.corpora.corpus_writer import SCHEMA, document_row
from hatchery.corpora.cutting import PIECE_BYTES, Piece
from hatchery.corpora.documents import ReaderContext, Rejections
from hatchery.corpora.packed_files import unpacked_bytes
from hatchery.corpora.reader import Reader
from hatchery.corpora.readers import reader_and_options
from hatchery.corpora.sentences import open_splitter
from hatchery.corpora.settings import ENGLISH, ConvertSettings, SourceSettings
from hatchery.corpora.splits import point, smallest
from hatchery.errors import CorpusError
from hatchery.progress import Progress
from hatchery.raw.registration import RawSource, open_source

GROUP_BYTES = 16 << 20


@cache
def opened(manifest: Path) -> RawSource:
    """The source of a manifest, read once per process: some have a hundred thousand entries."""
    return open_source(manifest)


@dataclass(frozen=True)
class FileGroup:
    """A task: files of one source, and how to read them."""

    source: SourceSettings
    settings: ConvertSettings
    manifest: Path
    sentence_model: Path | None
    files: tuple[str, ...]
    files_digest: str
    """Digest of the names of all files that are read of this source: a reader may look at which there are."""
    count: int
    """How many files of the source are read."""
    piece: Piece | None = None
    """The part of its one file that is read; None for whole files."""

    @property
    def bytes(self) -> int:
        """How much there is to read."""
        if self.piece is not None:
            return self.piece.end - self.piece.start
        return sum(size for _, size, _ in self._content())

    def _content(self) -> list[tuple[str, int, str]]:
        """Name, size and checksum of the files, and of what is read together with them."""
        raw = opened(self.manifest)
        reader, options = reader_of(self.source)
        beside = reader.beside
        others = [] if beside is None else [other for file in self.files for other in beside(raw, file, options)]
        return [(file, *raw.files[file]) for file in (*self.files, *others)]

    def key(self) -> list[Any]:
        """What determines the part: the reader's settings and the content of the files."""
        split = self.settings.split
        return [
            asdict(self.source),
            self._content(),
            self.files_digest,
            None if self.sentence_model is None else opened(self.sentence_model).files,
            self.settings.sentence_reading,
            self.settings.languages,
            [split.seed, split.development_documents, split.development_fraction > 0],
            None if self.piece is None else asdict(self.piece),
        ]


def reader_of(source: SourceSettings) -> tuple[Reader, Any]:
    """The reader of a source and its checked options. Raises ConfigError naming the source."""
    return reader_and_options(source.reader, source.options, f"source {source.name!r}")


def file_groups(
    source: SourceSettings, settings: ConvertSettings, manifest: Path, sentence_model: Path | None = None
) -> Iterator[FileGroup]:
    """The tasks of one source, in reading order. Raises SourceError when the reader finds no file in it."""
    raw = opened(manifest)
    reader, options = reader_of(source)
    names = reader.files(raw, options)
    group = partial(FileGroup, source, settings, manifest, sentence_model, files_digest=digest(names), count=len(names))
    files: list[str] = []
    size = 0
    for file in names:
        bytes_of_file = raw.files[file][0]
        if reader.divide is not None and bytes_of_file > PIECE_BYTES:
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

    Returns the number of documents, how many of them the source gives to the development split, what was rejected and
    assumed, and the draws that could decide which documents are for development. Raises CorpusError when two documents
    of one file have the same name.
    """
    source, split = group.source, group.settings.split
    raw = opened(group.manifest)
    reader, options = reader_of(source)
    model = None if group.sentence_model is None else opened(group.sentence_model)
    language = getattr(options, "punkt_language", None) or ENGLISH
    splitter = open_splitter(model, group.settings.sentence_reading, language)
    rejections = Rejections()
    english = group.settings.languages == ("en",)
    context = ReaderContext(source.name, options, rejections, splitter.split, group.count, group.piece, english)
    points: list[int] = []
    development = 0
    with TableWriter(path, SCHEMA) as table:
        for file in group.files:
            seen: set[str] = set()
            for document in reader.read(raw, file, context):
                if document.doc_id in seen:
                    raise CorpusError(
                        f"source {source.name!r}: {file}: the document name {document.doc_id!r} occurs twice"
                    )
                seen.add(document.doc_id)
                table.write(document_row(document.doc_id, document.source, document.split, document.text))
                development += document.split == "dev"
                if document.split is None:
                    points = smallest([*points, point(split.seed, document.doc_id)], split)
        written = table.rows
    return {
        "documents": written,
        "development": development,
        "points": points,
        "rejected": dict(sorted(rejections.counts.items())),
        "samples": dict(sorted(rejections.samples.items())),
        "assumed": dict(sorted(context.assumed.items())),
    }
