"""Safe unpacking of zip and tar archives from untrusted sources.

Nothing is written outside of the target folder, no link or device is created, no file is replaced, and the number of
written bytes is limited. Each error message names the archive and, if known, its member. After an error, the caller
removes the target folder.
"""

import bz2
import gzip
import lzma
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from tarfile import EOFHeaderError, HeaderError, ReadError  # type: ignore[attr-defined]
from typing import Any, NamedTuple, Self

from hatchery.errors import SourceError
from hatchery.settings.base import Count, Settings

HIDDEN = (".", "__MACOSX")


@dataclass(frozen=True)
class ArchiveLimits(Settings):
    """Limits for the unpacking of an archive."""

    unpacked_bytes: Count = 200_000_000_000
    """Maximum size of all unpacked files of an archive together, in bytes. The largest archives of the papers have 20
    GB after unpacking.
    """


def is_hidden(path: str) -> bool:
    """Return True if a component of a relative path is hidden, such as `.DS_Store` or `__MACOSX/`."""
    return any(part.startswith(HIDDEN) for part in PurePosixPath(path).parts)


_TAR_OPENERS: dict[str, Callable[[Path], Any]] = {
    ".tar": lambda path: path.open("rb"),
    ".tar.gz": gzip.open,
    ".tgz": gzip.open,
    ".tar.bz2": bz2.open,
    ".tar.xz": lzma.open,
}
SUFFIXES = (".zip", *_TAR_OPENERS)

# zipfile raises RuntimeError for an encrypted member or an unknown compression. It raises ValueError for a name that is
# marked as UTF-8, but is not valid UTF-8.
_DAMAGED = (tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, ValueError, RuntimeError)
_BLOCK_BYTES = 1 << 20


def archive_suffix(name: str) -> str | None:
    """Return the archive suffix of a file name, such as `.zip` or `.tar.gz`; None if the name has no suffix of a
    supported archive format.
    """
    return next((suffix for suffix in SUFFIXES if name.lower().endswith(suffix)), None)


def is_zip(path: Path) -> bool:
    """Return True if a file has the suffix `.zip`, or if it has no archive suffix and its content is a zip archive."""
    return archive_suffix(path.name) == ".zip" or (archive_suffix(path.name) is None and zipfile.is_zipfile(path))


def is_archive(path: Path) -> bool:
    """Return True if a file has an archive suffix, or if its content is a zip archive."""
    return path.is_file() and (archive_suffix(path.name) is not None or is_zip(path))


def zipped_sizes(archive: Path) -> dict[str, int]:
    """Return the unpacked size in bytes of each file in a zip archive, by name of the file; hidden files are left out.

    The result is empty if the archive is damaged or not a zip archive.
    """
    try:
        with zipfile.ZipFile(archive) as opened:
            sizes = {info.filename: info.file_size for info in opened.infolist()}
    except (OSError, *_DAMAGED):
        return {}
    return {name: size for name, size in sizes.items() if not name.endswith("/") and not is_hidden(name)}


class _Member(NamedTuple):
    """A member of an archive: a file, link or device, but not a folder."""

    name: str
    is_file: bool
    unpacked_bytes: int
    open: Callable[[], Any]
    """Function that opens a stream with the content of the member."""


def unpack(archive: Path, target: Path, limits: ArchiveLimits) -> None:
    """Unpack the files of `archive`, except for hidden files, into the folder `target`.

    Raises SourceError, which names the archive and, if known, the member. Reasons are an unknown suffix, a damaged
    archive, a member that is unsafe, exceeds the limits or has the name of an existing file, and a file that cannot be
    written.
    """
    suffix = ".zip" if is_zip(archive) else archive_suffix(archive.name)
    if suffix is None:
        raise SourceError(f"{archive}: not an archive that can be unpacked; expected one of {', '.join(SUFFIXES)}")
    target.mkdir(parents=True, exist_ok=True)
    total, place = 0, ""
    try:
        for member in _zip_members(archive) if suffix == ".zip" else _tar_members(archive, _TAR_OPENERS[suffix]):
            place = f"the member {member.name!r}: "
            total += member.unpacked_bytes
            _check(archive, member, total, limits)
            path = target / member.name
            if not is_hidden(member.name):
                path.parent.mkdir(parents=True, exist_ok=True)
                with member.open() as content, path.open("xb") as output:
                    shutil.copyfileobj(content, output, _BLOCK_BYTES)
            place = f"after the member {member.name!r}: "
    except _DAMAGED as error:
        raise SourceError(f"{archive}: is damaged: {place}{str(error) or 'the archive ends too early'}") from error
    except OSError as error:
        # An OSError without an error number comes from bz2 or gzip, and means that the data are damaged.
        state = "is damaged" if error.errno is None else f"cannot be unpacked into {target}"
        raise SourceError(f"{archive}: {state}: {place}{error.strerror or error}") from error


def _check(archive: Path, member: _Member, total: int, limits: ArchiveLimits) -> None:
    """Raise SourceError if a member is not a file, if its path leads outside of the target folder, if `total` exceeds
    the limit on unpacked bytes, or if the member's name is not UTF-8.

    `total` is the number of unpacked bytes of all members up to and including this member.
    """
    path, reason = PurePosixPath(member.name), ""
    if path.is_absolute() or ".." in path.parts:
        reason = "has a path that leads outside the archive"
    elif not member.is_file:
        reason = "is a link or a device, not a file"
    elif total > limits.unpacked_bytes:
        allowed = f"{limits.unpacked_bytes:,} bytes (limits.unpacked_bytes)"
        reason = f"makes the unpacked files larger than {allowed}"
    elif not member.name.isascii() and member.name != member.name.encode("utf-8", "replace").decode():
        reason = "has a name that is not UTF-8"
    if reason:
        raise SourceError(f"{archive}: the member {member.name!r} {reason}")


def _zip_members(archive: Path) -> Iterator[_Member]:
    with zipfile.ZipFile(archive) as opened:
        for info in opened.infolist():
            is_file = stat.S_IFMT(info.external_attr >> 16) in (0, stat.S_IFREG)
            if not info.is_dir():
                yield _Member(info.filename, is_file, info.file_size, partial(opened.open, info))


class _TarHeader(tarfile.TarInfo):
    """A tar header that raises an error if it is damaged. With the standard library's header, `tarfile` would treat a
    damaged header as the end of the archive.
    """

    @classmethod
    def fromtarfile(cls, tarfile: tarfile.TarFile) -> Self:
        """Return the next header. Raises ReadError for a damaged header."""
        try:
            return super().fromtarfile(tarfile)
        except EOFHeaderError:
            raise
        except HeaderError as error:
            raise ReadError(f"expected the header of a member or the end of the archive: {error}") from error


def _tar_members(archive: Path, opener: Callable[[Path], Any]) -> Iterator[_Member]:
    with opener(archive) as stream:
        # Open with the mode "r|", which reads the stream once, without seeking, so that a compressed archive is
        # decompressed only once.
        with tarfile.open(fileobj=stream, mode="r|", tarinfo=_TarHeader) as opened:
            for info in opened:
                if not info.isdir():
                    yield _Member(info.name, info.isreg(), info.size, partial(opened.extractfile, info))
        # Read the compressed stream to its end, because only then is its checksum verified.
        while stream.read(_BLOCK_BYTES):
            pass
