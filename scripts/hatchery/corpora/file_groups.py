"""Tasks of a conversion: a task reads a group of a source's files, of about GROUP_BYTES, or a piece of a large file.

The key of a task contains the values that determine the task's documents: the settings, and the content of the files.
So a conversion that was killed recognises finished tasks when it continues.
"""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from hatchery.artifacts.checksums import digest
from hatchery.corpora.documents import Reader
from hatchery.corpora.raw_files import PIECE_BYTES, Piece, unpacked_bytes
from hatchery.corpora.readers import reader_and_options
from hatchery.corpora.settings import ConvertSettings, SourceSettings
from hatchery.progress import Progress
from hatchery.raw.registration import RawSource, open_source

GROUP_BYTES = 16 << 20


@cache
def opened(manifest: Path) -> RawSource:
    """Return the raw files that a manifest lists. Each process reads a manifest only once, because some manifests have
    a hundred thousand entries.
    """
    return open_source(manifest)


@dataclass(frozen=True)
class FileGroup:
    """Files of one source that one process reads as a unit of work (task), and the options of their reader."""

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
    """Piece of the file to read, if the group is a part of one file; None if complete files are read."""

    @property
    def bytes(self) -> int:
        """Return the number of bytes to read in this group."""
        if self.piece is not None:
            return self.piece.end - self.piece.start
        return sum(size for _, size, _ in self._content())

    def _content(self) -> list[tuple[str, int, str]]:
        """Return (name, size, checksum) of each file and of its companion files, such as translations."""
        raw = opened(self.manifest)
        return [(file, *raw.files[file]) for file in _with_others(self.source, raw, self.files)]

    def key(self) -> list[Any]:
        """Return the values that determine the documents read from this group: the settings of the reader and of the
        conversion, and the content of the files.
        """
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
    """Return two values: whether the reader's options name a column of licences, and the numeric columns that the
    options name.
    """
    return getattr(options, "licence_column", None) is not None, getattr(options, "numeric_columns", ())


def files_of(source: SourceSettings, raw: RawSource) -> list[str]:
    """Return the names of all files that the reader of a source reads. Raises SourceError if there is no file."""
    reader, options = reader_of(source)
    return _with_others(source, raw, reader.files(raw, options))


def _with_others(source: SourceSettings, raw: RawSource, files: Iterable[str]) -> list[str]:
    """Return `files`, followed by their companion files, such as translations."""
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
    """Yield the file groups of one source, in reading order; one process reads a group. Raises SourceError if the
    reader finds no file in the source.

    If `may_divide` is False, no file is divided. Dividing a file needs a further pass over the file, to count the
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
