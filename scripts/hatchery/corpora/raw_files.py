"""Raw files as bytes: reading by name, decompression by suffix, and division into pieces. A member is a file in the
folder or archive of a source.

A text without marked documents is divided into documents. A document ends at the first blank line after SHORTEST bytes.
If there is no blank line, the document ends at the first line end after LONGEST bytes. If a line is too long for this
rule, the document ends at white space or, in text without white space, between two characters. The division depends
only on the bytes that follow the beginning of the current document, so files of any size are read in constant memory.
Every piece of a file begins where a document begins, so the documents are the same for any division into pieces.
"""

import bz2
import gzip
import lzma
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import PurePosixPath
from typing import IO, Any, NamedTuple

from hatchery.errors import SourceError
from hatchery.raw.registration import RawSource
from hatchery.sanitize import plain_name


def where_in(source: RawSource, name: str) -> str:
    """Return the path of a member (a file in the folder or archive of a source) on one line, for messages."""
    return plain_name(str(source.path(name)))


@contextmanager
def _zstd(raw: IO[bytes]) -> Iterator[Any]:
    # Import pyarrow here, because planning imports this module and does not need pyarrow.
    import pyarrow as pa

    try:
        with pa.CompressedInputStream(raw, "zstd") as handle:
            yield handle
    except pa.ArrowException as error:
        raise OSError(str(error)) from error


_OPENERS: dict[str, Callable[[IO[bytes]], Any]] = {
    ".gz": lambda raw: gzip.GzipFile(fileobj=raw),
    ".bz2": bz2.BZ2File,
    ".xz": lzma.LZMAFile,
    ".zst": _zstd,
}
_DAMAGED = (OSError, EOFError, zlib.error, lzma.LZMAError)
_BLOCK_BYTES = 1 << 20
_NAMES_SHOWN = 8


def uncompressed_suffix(name: str) -> str:
    """Return the suffix of a file name, without a compression suffix: `.json` for `c4.json.gz`."""
    path = PurePosixPath(name)
    return PurePosixPath(path.stem).suffix if path.suffix in _OPENERS else path.suffix


def is_packed(name: str) -> bool:
    """Return whether a member (a file of the source) is compressed."""
    return PurePosixPath(name).suffix in _OPENERS


def unpacked_bytes(source: RawSource, name: str) -> int:
    """Return the approximate size in bytes of a member (a file of the source) after decompression. A compressed member
    is estimated as four times its size.
    """
    return source.size(name) * (4 if is_packed(name) else 1)


@contextmanager
def open_binary(source: RawSource, name: str) -> Iterator[IO[bytes]]:
    """Yield a member (a file of the source), opened as a stream of bytes. The bytes are decompressed if its name ends
    in .gz, .bz2, .xz or .zst.
    """
    opener = _OPENERS.get(PurePosixPath(name).suffix)
    with source.open(name) as raw:
        if opener is None:
            yield raw
        else:
            with opener(raw) as handle:
                yield handle


def blocks(source: RawSource, name: str, start: int = 0) -> Iterator[bytes]:
    """Yield the decompressed bytes of a member (a file of the source) from byte `start` on, in blocks of about a
    megabyte.

    Raises SourceError with the file's name and with the last byte that could be read.
    """
    done = start
    try:
        with open_binary(source, name) as handle:
            if start and handle.seekable():
                handle.seek(start)
            else:
                _skip(handle, start)
            while block := handle.read(_BLOCK_BYTES):
                done += len(block)
                yield block
    except _DAMAGED as error:
        raise SourceError(f"{where_in(source, name)}: damaged after byte {done}: {error}") from error


def _skip(handle: IO[bytes], count: int) -> None:
    while count > 0 and (block := handle.read(min(count, _BLOCK_BYTES))):
        count -= len(block)


def matching_names(source: RawSource, patterns: tuple[str, ...], exclude: tuple[str, ...] = ()) -> list[str]:
    """Return the sorted names of the source's files that match at least one of `patterns`, but none of the patterns in
    `exclude`.

    Raises SourceError, which lists the files of the source, if no name remains.
    """
    excluded = {name for pattern in exclude for name in source.names(pattern)}
    names = sorted({name for pattern in patterns for name in source.names(pattern)} - excluded)
    if not names:
        but = f" without {', '.join(exclude)}" if exclude else ""
        raise SourceError(
            f"{source.root}: no file matches {', '.join(patterns)}{but}; there are: {_listed(source.names())}; "
            "set the option `files`"
        )
    return names


def _listed(names: list[str]) -> str:
    shown = ", ".join(map(plain_name, names[:_NAMES_SHOWN]))
    return shown if len(names) <= _NAMES_SHOWN else f"{shown} and {len(names) - _NAMES_SHOWN:,} more"


# Files with more than this number of bytes are divided, so that all processes finish at nearly the same time and
# progress is visible.
PIECE_BYTES = 8 << 20
SHORTEST = 4_000
LONGEST = 16_000
_LINES_UNTIL = 4 * LONGEST
_SPACES_UNTIL = 5 * LONGEST
# The longest document ends at the first character that begins at or after `_SPACES_UNTIL` bytes. Four more bytes always
# contain the first byte of a character, because a character has at most four bytes in UTF-8.
_SEEN = _SPACES_UNTIL + 4

_BLANK_LINES = re.compile(rb"(?>\r\n?|\n)(?:[ \t\f\v]*(?>\r\n?|\n))+")
_LINE_END = re.compile(rb"\r\n?|\n")
_SPACE = re.compile(rb"[ \t]")
_CHARACTER = re.compile(rb"(?=[\x00-\x7f\xc0-\xff])")


class Cut(NamedTuple):
    """A document inside a text: the offset of its first byte, and its bytes."""

    offset: int
    content: bytes


@dataclass(frozen=True)
class Piece:
    """A part of a file: consecutive documents, which one process reads."""

    start: int
    end: int
    """End of the piece in bytes of the decompressed text (exclusive). For a Parquet file, the numbers of bytes are
    estimated: the file's size times the share of its rows.
    """
    line: int
    """Number of lines of the file before the piece; 0 for Parquet, and for text that is divided by size."""
    first: int
    """Number of records in the file before the piece, without the records that the reader rejects; a record is a
    document, row, text or paragraph. In Parquet files, and in tables with `document_column`, rejected rows are also
    counted.
    """
    count: int
    """Number of records in the piece, counted as for `first`."""


def cut_text(blocks: Iterable[bytes], offset: int = 0) -> Iterator[Cut]:
    """Yield the documents of a text given in blocks of any size; the first block begins at `offset`.

    The encoding must be direct (`is_direct`): every ASCII byte represents its character. White space between documents
    is dropped. An empty text yields one empty document.
    """
    buffer, begin, has_document = b"", 0, False
    for block in chain(blocks, [None]):
        buffer += block or b""
        # Before the end of the text, take a document from the buffer only if the buffer contains enough text to find
        # the document's end.
        enough = 1 if block is None else _SEEN
        while len(buffer) - begin >= enough:
            end = _end(buffer, begin)
            content = buffer[begin:end]
            if not content.isspace():
                has_document = True
                yield Cut(offset + begin, content)
            begin = end
        buffer, offset, begin = buffer[begin:], offset + begin, 0
    if not has_document:
        yield Cut(offset, b"")


def _end(buffer: bytes, begin: int) -> int:
    """Return the index of the first byte after the document that begins at `begin`, by the rules in this module's
    docstring.
    """
    blank = _BLANK_LINES.search(buffer, begin + SHORTEST, begin + LONGEST)
    if blank is not None:
        return blank.end()
    line = _LINE_END.search(buffer, begin + LONGEST, begin + _LINES_UNTIL)
    if line is not None:
        return line.end()
    space = _SPACE.search(buffer, begin + _LINES_UNTIL, begin + _SPACES_UNTIL)
    if space is not None:
        return space.end()
    character = _CHARACTER.search(buffer, begin + _SPACES_UNTIL)
    return len(buffer) if character is None else character.start()


def pieces_of(blocks: Iterable[bytes], piece_bytes: int) -> Iterator[Piece]:
    """Yield the pieces of a text. Each piece has about `piece_bytes` and ends after a document; `blocks` are the
    consecutive parts of the text.

    Together the pieces cover the text up to the end of its last document.
    """
    start = end = first = number = 0
    for number, cut in enumerate(cut_text(blocks)):
        # Begin a new piece only if the current piece has a document, even if much white space precedes the next
        # document.
        if number > first and cut.offset - start >= piece_bytes:
            yield Piece(start, end, 0, first, number - first)
            start, first = cut.offset, number
        end = cut.offset + len(cut.content)
    yield Piece(start, end, 0, first, number + 1 - first)
