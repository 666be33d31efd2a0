"""What a member of an archive may be called and how large it may be, before a byte of it is read.

Archives come from outside: a member must not leave the folder that it is unpacked into, must not hide another one,
and must not be a bomb. Zip and tar archives share these checks; every refusal names the archive and the member.
"""

import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

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
