"""Zip archives from outside: opened and checked as a whole before a member of them is read.

Every refusal is one SourceError that names the archive and, where there is one, the member.
"""

import lzma
import stat
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hatchery.errors import SourceError
from hatchery.raw.archive_members import ArchiveLimits, MemberChecks, is_hidden

_ENCRYPTED = 0x1
# zipfile raises NotImplementedError for a compression that it does not know, RuntimeError for a missing password.
_DAMAGED = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, NotImplementedError, RuntimeError)


@contextmanager
def open_zip(root: Path) -> Iterator[zipfile.ZipFile]:
    """A zip archive for reading. Raises SourceError when its directory is damaged."""
    try:
        archive = zipfile.ZipFile(root)
    except _DAMAGED as error:
        raise SourceError(f"{root}: the zip archive is damaged: {error}") from error
    with archive:
        yield archive


@contextmanager
def while_reading(root: Path, member: str) -> Iterator[None]:
    """While a member is read: what is wrong with it is a SourceError that names it."""
    try:
        yield
    except _DAMAGED as error:
        reason = str(error) or "it ends too early"
        raise SourceError(f"{root}: the zip archive is damaged: the member {member!r}: {reason}") from error


def checked_members(root: Path, archive: zipfile.ZipFile, limits: ArchiveLimits) -> list[tuple[zipfile.ZipInfo, str]]:
    """The files of a zip archive that are not hidden, each with the relative path that it may be unpacked to.

    Raises SourceError naming the archive and the member for a path that leads outside, a link, an encrypted member,
    two of one name, a bomb, or a passed limit.
    """
    checks = MemberChecks(root, root.stat().st_size, limits)
    members = []
    for info in archive.infolist():
        checks.check_count()
        path = checks.check_name(info.filename)
        kind = stat.S_IFMT(info.external_attr >> 16)
        if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
            raise checks.refusal(info.filename, "is a link or a device, not a file")
        if info.is_dir():
            continue
        if info.flag_bits & _ENCRYPTED:
            raise checks.refusal(info.filename, "is encrypted; unpack the archive yourself and give the folder")
        checks.check_file(info.filename, info.file_size, info.compress_size)
        if not is_hidden(path):
            members.append((info, path))
    return members
