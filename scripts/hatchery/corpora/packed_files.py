"""The members of a raw source by name, and their bytes: compressed files by their suffix, in blocks."""

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import PurePosixPath
from typing import IO, Any

from hatchery.errors import SourceError
from hatchery.raw.registration import RawSource


def where_in(source: RawSource, name: str) -> str:
    """How messages call a member of a source: by its path."""
    return str(source.path(name))


@contextmanager
def _zstd(raw: IO[bytes]) -> Iterator[Any]:
    # Whoever plans imports this module and opens nothing.
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
    """The suffix of a file's name without that of a compression: `.json` for `c4.json.gz`."""
    path = PurePosixPath(name)
    return PurePosixPath(path.stem).suffix if path.suffix in _OPENERS else path.suffix


def is_packed(name: str) -> bool:
    """Whether a member has to be decompressed to be read."""
    return PurePosixPath(name).suffix in _OPENERS


def unpacked_bytes(source: RawSource, name: str) -> int:
    """About how many bytes a member has when it is decompressed: text is compressed to a quarter or so."""
    return source.size(name) * (4 if is_packed(name) else 1)


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
