"""Unpacking zip and tar archives that come from outside.

Nothing is written outside the target folder, no link or device is made, no file takes the place of another, and the
limits hold for what is really written, so that a bomb stops early. The target folder is the caller's to remove after
an error: it makes it under a temporary name.
"""

import bz2
import gzip
import lzma
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, Self

from hatchery.errors import SourceError
from hatchery.raw.archive_members import ArchiveLimits, MemberChecks, is_hidden

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
