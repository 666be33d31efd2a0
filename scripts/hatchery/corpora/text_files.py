"""Raw text as lines or whole: compressed files by their suffix, decoded with errors that say where.

Lines are streamed, so that a file of any size passes in flat memory.
"""

import bz2
import codecs
import gzip
import lzma
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import PurePosixPath
from typing import IO, Any

import pyarrow as pa

from hatchery.errors import ConfigError, SourceError
from hatchery.storage.sources import RawSource


def where_in(source: RawSource, name: str) -> str:
    """How messages call a member of a source: by its path, inside the archive where there is one."""
    if source.kind == "file":
        return str(source.root)
    return f"{source.root}:{name}" if source.kind == "zip" else str(source.root / name)


def _zstd(raw: IO[bytes]) -> Any:
    return pa.CompressedInputStream(raw, "zstd")


_OPENERS: dict[str, Callable[[IO[bytes]], Any]] = {
    ".gz": lambda raw: gzip.GzipFile(fileobj=raw),
    ".bz2": bz2.BZ2File,
    ".xz": lzma.LZMAFile,
    ".zst": _zstd,
}
_DAMAGED = (OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, pa.ArrowException)
_BLOCK_BYTES = 1 << 20
_NAMES_SHOWN = 8


def uncompressed_suffix(name: str) -> str:
    """The suffix of a file's name without that of a compression: `.json` for `c4.json.gz`."""
    path = PurePosixPath(name)
    return PurePosixPath(path.stem).suffix if path.suffix in _OPENERS else path.suffix


@contextmanager
def open_binary(source: RawSource, name: str) -> Iterator[IO[bytes]]:
    """A member as a stream of bytes, decompressed when it ends in .gz, .bz2, .xz or .zst."""
    opener = _OPENERS.get(PurePosixPath(name).suffix)
    with source.open(name) as raw:
        if opener is None:
            yield raw
        else:
            with opener(raw) as handle:
                yield handle


def blocks(source: RawSource, name: str, start: int = 0) -> Iterator[bytes]:
    """The decompressed bytes of a member from `start` on, in blocks of about a megabyte.

    Raises SourceError naming the file and the byte after which it cannot be read.
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


@cache
def is_direct(encoding: str) -> bool:
    """Whether an ASCII byte of this encoding stands for its character wherever it is found: UTF-8 and single bytes.

    Raises ConfigError for an unknown encoding.
    """
    try:
        if codecs.lookup(encoding).name in ("utf-8", "utf-8-sig"):
            return True
        characters = bytes(range(256)).decode(encoding, "replace")
    except LookupError as error:
        raise _unknown_encoding(encoding) from error
    except UnicodeError:
        return False
    return len(characters) == 256 and characters[:128].isascii()


def text_blocks(source: RawSource, name: str, encoding: str, start: int = 0, end: int | None = None) -> Iterator[bytes]:
    """The bytes of a text from `start` to before `end`, in blocks: as they are in a direct encoding, else in UTF-8.

    Raises SourceError and ConfigError as `open_lines`, but leaves it to the caller to decode a direct encoding.
    """
    if is_direct(encoding):
        stream = blocks(source, name, start)
    else:
        stream = _after((text.encode() for text in _decoded(source, name, encoding)), start)
    left = None if end is None else end - start
    for block in stream:
        if left is not None and len(block) >= left:
            yield block[:left]
            return
        yield block
        left = None if left is None else left - len(block)


def _after(stream: Iterator[bytes], start: int) -> Iterator[bytes]:
    for block in stream:
        if len(block) > start:
            yield block[start:]
        start = max(0, start - len(block))


def decoded_lines(source: RawSource, name: str, encoding: str, offset: int, content: bytes) -> list[str]:
    """The lines of a stretch of `text_blocks` that begins at `offset`, without their ends and a byte-order mark.

    Raises SourceError naming the file and the offset of the first byte that the encoding cannot have.
    """
    try:
        text = content.decode(encoding if is_direct(encoding) else "utf-8")
    except UnicodeDecodeError as error:
        raise _wrong_encoding(source, name, encoding, offset + error.start, error.reason) from error
    return _unified(text if offset else text.removeprefix("\ufeff")).split("\n")


def open_lines(source: RawSource, name: str, encoding: str = "utf-8") -> Iterator[str]:
    """The lines of a member without their ends (\\n, \\r\\n or \\r), without a byte-order mark, in flat memory.

    Raises SourceError naming the file and the offset of the first byte that the encoding cannot have, or the place
    where a compressed file is damaged; ConfigError for an unknown encoding.
    """
    # What has come of the line at hand; joined once, or a file without line ends would be copied again and again.
    begun: list[str] = []
    held = ""
    for text in _decoded(source, name, encoding):
        # A \r at the end of a block may be half of \r\n.
        text = held + text
        held = "\r" if text.endswith("\r") else ""
        first, *others = _unified(text[: len(text) - len(held)]).split("\n")
        begun.append(first)
        if others:
            yield "".join(begun)
            yield from others[:-1]
            begun = [others[-1]]
    last = "".join(begun)
    if last or held:
        yield last


def _decoded(source: RawSource, name: str, encoding: str) -> Iterator[str]:
    try:
        decoder = codecs.getincrementaldecoder(encoding)()
    except LookupError as error:
        raise _unknown_encoding(encoding) from error
    offset, first = 0, True
    final = False
    stream = blocks(source, name)
    while not final:
        block = next(stream, b"")
        final = not block
        pending = len(decoder.getstate()[0])
        try:
            text = decoder.decode(block, final)
        except UnicodeDecodeError as error:
            raise _wrong_encoding(source, name, encoding, offset - pending + error.start, error.reason) from error
        offset += len(block)
        if first and text:
            text, first = text.removeprefix("\ufeff"), False
        if text:
            yield text


def _unified(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def _unknown_encoding(encoding: str) -> ConfigError:
    return ConfigError(f"encoding: there is no encoding called {encoding!r}")


def _wrong_encoding(source: RawSource, name: str, encoding: str, byte: int, reason: str) -> SourceError:
    return SourceError(
        f"{where_in(source, name)}: byte {byte} is not {encoding} ({reason}); "
        "set the option `encoding` if the file has another one"
    )


def read_text(source: RawSource, name: str, encoding: str = "utf-8") -> str:
    """The text of a member with newlines as `\\n`, without a byte-order mark.

    Raises SourceError naming the file and the byte offset of the first byte that the encoding cannot have, and
    ConfigError for an unknown encoding.
    """
    content = source.read_bytes(name)
    try:
        text = content.decode(encoding)
    except LookupError as error:
        raise _unknown_encoding(encoding) from error
    except UnicodeDecodeError as error:
        raise _wrong_encoding(source, name, encoding, error.start, error.reason) from error
    return _unified(text.removeprefix("\ufeff"))


def matching_names(source: RawSource, patterns: tuple[str, ...], exclude: tuple[str, ...] = ()) -> list[str]:
    """Sorted names that match one of `patterns` and none of `exclude`.

    Raises SourceError, which lists what there is, when there is none.
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
    shown = ", ".join(names[:_NAMES_SHOWN])
    return shown if len(names) <= _NAMES_SHOWN else f"{shown} and {len(names) - _NAMES_SHOWN:,} more"
