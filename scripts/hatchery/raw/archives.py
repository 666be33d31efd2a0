"""Unpacking zip and tar archives that come from outside.

Nothing is written outside the target folder, no link or device is made, no file takes the place of another, and the
limits hold for what is really written, so that a bomb stops early. Zip and tar archives share the checks of a member's
name and size; every refusal names the archive and the member. The target folder is the caller's to remove after an
error: it makes it under a temporary name.
"""

import bz2
import gzip
import lzma
import re
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any, Self

from hatchery.errors import SourceError
from hatchery.settings.base import Count, Positive, Settings

HIDDEN = (".", "__MACOSX")

# Below this size a high ratio is harmless, and short repetitive files do reach it.
HARMLESS_BYTES = 10 << 20

_DRIVE = re.compile(r"[A-Za-z]:")


@dataclass(frozen=True)
class ArchiveLimits(Settings):
    """How much an archive may hold."""

    unpacked_bytes: Count = 200_000_000_000
    """Bytes of all members together once they are unpacked; the largest archives of the papers hold 20 GB."""
    members: Count = 1_000_000
    """Number of members."""
    ratio: Positive = 200
    """Unpacked bytes for every packed byte, of a member and of the archive; text in XML reaches about 20."""


class MemberChecks:
    """The members of one archive seen so far; `check` is called for each, in the order of the archive.

    `packed_bytes` is the size of the archive file.
    """

    def __init__(self, archive: Path, packed_bytes: int, limits: ArchiveLimits) -> None:
        self.archive, self.packed_bytes, self.limits = archive, packed_bytes, limits
        self._total_bytes = 0
        self._count = 0
        self._files: set[str] = set()

    def check_name(self, name: str) -> str:
        """The relative path that a member is unpacked to. Raises SourceError when it would lie elsewhere."""
        if not name or "\0" in name:
            raise self.refusal(name, "has no name")
        if "\\" in name:
            raise self.refusal(name, "has a backslash in its name")
        if name.startswith("/") or _DRIVE.match(name):
            raise self.refusal(name, "has an absolute path")
        parts = PurePosixPath(name).parts
        if ".." in parts:
            raise self.refusal(name, "has a path that leads outside the archive")
        try:
            name.encode("utf-8")
        except UnicodeEncodeError:
            raise self.refusal(name, "has a name that is not UTF-8") from None
        return "/".join(parts)

    def check_count(self) -> None:
        """Count one more member of any kind. Raises SourceError when there are too many."""
        self._count += 1
        if self._count > self.limits.members:
            raise SourceError(f"{self.archive}: has more than {self.limits.members:,} members (limits.members)")

    def check_file(self, name: str, unpacked_bytes: int, packed_bytes: int | None = None) -> str:
        """The relative path of a regular file of this size.

        Raises SourceError for a name that leads outside or comes twice, or when a limit is passed.
        """
        path = self.check_name(name)
        if path in self._files:
            raise self.refusal(name, "comes twice")
        self._files.add(path)
        self._total_bytes += unpacked_bytes
        if self._total_bytes > self.limits.unpacked_bytes:
            allowed = f"{self.limits.unpacked_bytes:,} bytes (limits.unpacked_bytes)"
            raise self.refusal(name, f"makes the unpacked files larger than {allowed}")
        self._check_ratio(name, self._total_bytes, self.packed_bytes)
        if packed_bytes is not None:
            self._check_ratio(name, unpacked_bytes, packed_bytes)
        return path

    def _check_ratio(self, name: str, unpacked_bytes: int, packed_bytes: int) -> None:
        if unpacked_bytes > HARMLESS_BYTES and unpacked_bytes > self.limits.ratio * packed_bytes:
            said = f"{unpacked_bytes:,} bytes out of {packed_bytes:,} is more than {self.limits.ratio:g} to 1"
            raise self.refusal(name, f"looks like a decompression bomb: {said} (limits.ratio)")

    def refusal(self, name: str, reason: str) -> SourceError:
        """The error for a member."""
        return SourceError(f"{self.archive}: the member {name!r} {reason}")


def is_hidden(path: str) -> bool:
    """Whether a relative path is a system's own file or lies in such a folder (`.DS_Store`, `__MACOSX/`)."""
    return any(part.startswith(HIDDEN) for part in PurePosixPath(path).parts)


_TAR_OPENERS: dict[str, Callable[[Path], Any]] = {
    ".tar": lambda path: path.open("rb"),
    ".tar.gz": gzip.open,
    ".tgz": gzip.open,
    ".tar.bz2": bz2.open,
    ".tar.xz": lzma.open,
}
SUFFIXES = (".zip", *_TAR_OPENERS)

_DAMAGED = (tarfile.TarError, EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile, ValueError, RecursionError)
# zipfile raises NotImplementedError for a compression or a version that it does not know, and ValueError for a name
# that is said to be UTF-8 and is not.
_DAMAGED_ZIP = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, NotImplementedError, ValueError)
_ENCRYPTED = 0x1
_EXTENDED_HEADERS = (
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)
_BLOCK_BYTES = 1 << 20
# Extended headers hold long names; tarfile reads them whole, so a large one would fill the memory.
_LARGEST_HEADER_BYTES = 1 << 20
# What may follow the end mark: the padding of a tape record.
_LARGEST_PADDING_BYTES = 16 << 20


def archive_suffix(name: str) -> str | None:
    """The suffix by which `name` is an archive, one of SUFFIXES, or None when it is none."""
    return next((suffix for suffix in SUFFIXES if name.lower().endswith(suffix)), None)


def is_zip(path: Path) -> bool:
    """Whether a file is called like a zip archive, or is one and called like no other archive."""
    return archive_suffix(path.name) == ".zip" or (archive_suffix(path.name) is None and zipfile.is_zipfile(path))


def is_archive(path: Path) -> bool:
    """Whether a path is a file called like an archive, or a zip archive of any name."""
    return path.is_file() and (archive_suffix(path.name) is not None or is_zip(path))


def zipped_sizes(archive: Path) -> dict[str, int]:
    """The sizes of a zip archive's files by their names, hidden ones left out; none where it is none, or damaged."""
    try:
        with zipfile.ZipFile(archive) as opened:
            sizes = {info.filename: info.file_size for info in opened.infolist()}
    except (OSError, *_DAMAGED_ZIP):
        return {}
    return {name: size for name, size in sizes.items() if not name.endswith("/") and not is_hidden(name)}


def unpack(archive: Path, target: Path, limits: ArchiveLimits) -> None:
    """Unpack the files of `archive` into the folder `target`.

    Files that are there already are never replaced. Raises SourceError naming the archive and the member for
    anything unsafe, damaged or too large, for a name that is taken, and when the disk is full.
    """
    suffix = ".zip" if is_zip(archive) else archive_suffix(archive.name)
    if suffix is None:
        raise SourceError(f"{archive}: not an archive that can be unpacked; expected one of {', '.join(SUFFIXES)}")
    target.mkdir(parents=True, exist_ok=True)
    try:
        if suffix == ".zip":
            _unpack_zip(archive, target, limits)
        else:
            _unpack_tar(archive, _TAR_OPENERS[suffix], target, limits)
    except OSError as error:
        # bz2 and gzip say with a bare OSError that the data is bad.
        state = "is damaged" if error.errno is None else f"cannot be unpacked into {target}"
        raise SourceError(f"{archive}: {state}: {error.strerror or error}") from error


def _unpack_zip(archive: Path, target: Path, limits: ArchiveLimits) -> None:
    member = ""
    try:
        with zipfile.ZipFile(archive) as opened:
            for info, path in _checked_members(archive, opened, limits):
                member = f"the member {info.filename!r}: "
                with opened.open(info) as content:
                    _write(content, _free_place(archive, info.filename, target, path))
    except _DAMAGED_ZIP as error:
        raise SourceError(f"{archive}: is damaged: {member}{str(error) or 'it ends too early'}") from error


def _checked_members(
    archive: Path, opened: zipfile.ZipFile, limits: ArchiveLimits
) -> list[tuple[zipfile.ZipInfo, str]]:
    """The files of a zip archive that are not hidden, each with the relative path that it is unpacked to."""
    checks = MemberChecks(archive, archive.stat().st_size, limits)
    members = []
    for info in opened.infolist():
        checks.check_count()
        path = checks.check_name(info.filename)
        if stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG, stat.S_IFDIR):
            raise checks.refusal(info.filename, "is a link or a device, not a file")
        if info.is_dir():
            continue
        if info.flag_bits & _ENCRYPTED:
            raise checks.refusal(info.filename, "is encrypted; unpack the archive yourself and give the folder")
        checks.check_file(info.filename, info.file_size, info.compress_size)
        if not is_hidden(path):
            members.append((info, path))
    return members


def _unpack_tar(archive: Path, opener: Callable[[Path], Any], target: Path, limits: ArchiveLimits) -> None:
    checks = MemberChecks(archive, archive.stat().st_size, limits)
    member = "the first member"
    try:
        with opener(archive) as stream:
            header = _headers(checks)
            # A stream ("r|") is read once from front to back, so a bomb is met before what comes after it.
            with tarfile.open(fileobj=stream, mode="r|", tarinfo=header) as opened:
                while (info := opened.next()) is not None:
                    member = f"the member {info.name!r}"
                    _unpack_member(opened, info, checks, target)
                    # Otherwise tarfile remembers every header.
                    opened.members.clear()  # type: ignore[attr-defined]
                    member = f"what follows the member {info.name!r}"
            if not header.ended:
                raise SourceError(f"{archive}: is damaged: {member}: the archive ends without its end mark")
            _drain(archive, stream)
    except _DAMAGED as error:
        reason = str(error) or "it ends too early"
        raise SourceError(f"{archive}: is damaged: {member}: {reason}") from error


def _headers(checks: MemberChecks) -> Any:
    """A TarInfo class for one archive: refuses headers that fill the memory, and notes the end mark in `ended`."""

    class Header(tarfile.TarInfo):
        ended = False

        @classmethod
        def frombuf(cls, buf: Any, encoding: str, errors: str) -> Self:
            cls.ended = cls.ended or (len(buf) > 0 and not any(buf))
            info = super().frombuf(buf, encoding, errors)
            if info.type in _EXTENDED_HEADERS and info.size > _LARGEST_HEADER_BYTES:
                raise checks.refusal(info.name, f"has an extended header of {info.size:,} bytes")
            if info.type == tarfile.GNUTYPE_SPARSE:
                raise checks.refusal(info.name, "is a sparse file")
            return info

    return Header


def _unpack_member(opened: tarfile.TarFile, info: tarfile.TarInfo, checks: MemberChecks, target: Path) -> None:
    checks.check_count()
    path = checks.check_name(info.name)
    if info.isdir():
        return
    if not info.isreg() or info.issparse():
        raise checks.refusal(info.name, "is a link or a device, not a file")
    checks.check_file(info.name, info.size)
    if is_hidden(path):
        return
    content = opened.extractfile(info)
    assert content is not None  # None for links and folders only
    with content:
        _write(content, _free_place(checks.archive, info.name, target, path))


def _drain(archive: Path, stream: IO[bytes]) -> None:
    """Read the padding behind the end mark, so that the checksum of the compression is compared, too."""
    rest = 0
    while block := stream.read(_BLOCK_BYTES):
        rest += len(block)
        if rest > _LARGEST_PADDING_BYTES:
            raise SourceError(f"{archive}: is damaged: more than {_LARGEST_PADDING_BYTES:,} bytes follow the end mark")


def _write(content: IO[bytes], path: Path) -> None:
    with path.open("xb") as output:
        shutil.copyfileobj(content, output, _BLOCK_BYTES)


def _free_place(archive: Path, member: str, target: Path, name: str) -> Path:
    path = target / name
    # The checked name leads outside only through a link that lay in the target before.
    if not path.resolve().is_relative_to(target.resolve()):
        raise SourceError(f"{archive}: the member {member!r} would be written outside {target}, through a link in it")
    if path.exists():
        raise SourceError(f"{archive}: the member {member!r} would replace a file of the same name")
    path.parent.mkdir(parents=True, exist_ok=True)
    return path
