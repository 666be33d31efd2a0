"""Reading only what is vouched for: bytes are compared with their registered SHA-256 while they are read.

Manifests, source manifests and the `.sha256` files beside views say what a file holds; what they say goes through
here. A stream that is read to its end is hashed as it passes. Who jumps about in a file (Parquet, memory maps) has it
hashed once, from its beginning, before the first byte is handed out. What was found sound stays so for this process as
long as size and modification time stay the same. Every refusal is one line: the file, what was expected and found.
"""

import hashlib
import io
import os
import stat
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from hatchery.artifacts.atomic import write_text
from hatchery.artifacts.checksums import sha256_file
from hatchery.errors import HatcheryError, ManifestError

# So many digits of a checksum tell two apart, and two of them fit into a line.
SHOWN_DIGITS = 16
# A file changed within the tick of the clock in which it was hashed looks unchanged, so fresh files are not remembered.
_FRESH_SECONDS = 2.0
_DRAIN_BYTES = 1 << 20

Result = TypeVar("Result")
_sound: set[tuple[Any, ...]] = set()


@dataclass(frozen=True)
class Expected:
    """What a file must be: its size and checksum, who says so, and what to do when it is not.

    `name` is how messages call it and tells the members of an archive apart; `bytes` is None where only the checksum
    is known.
    """

    name: str
    bytes: int | None
    sha256: str
    told_by: str
    remedy: str
    error: type[HatcheryError] = ManifestError

    def differs(self, found: str) -> HatcheryError:
        """The error for a file that is `found` instead."""
        return self.error(f"{self.name}: {found} ({self.told_by}); {self.remedy}")

    def check_size(self, size: int) -> None:
        """Raise where a file has another size."""
        if self.bytes is not None and size != self.bytes:
            raise self.differs(f"has {size:,} bytes, expected {self.bytes:,}")

    def check_digest(self, found: str) -> None:
        """Raise where a file has another SHA-256 (hexadecimal)."""
        if found != self.sha256:
            raise self.differs(f"has the SHA-256 {found[:SHOWN_DIGITS]}, expected {self.sha256[:SHOWN_DIGITS]}")


def status(path: Path) -> os.stat_result:
    """The status of a regular file. Raises OSError where there is none, and for a folder, a device or a pipe."""
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        kind = "a folder" if stat.S_ISDIR(found.st_mode) else "a device or a pipe"
        raise OSError(0, f"{kind}, expected a file", str(path))
    return found


def is_sound(path: Path, expected: Expected) -> bool:
    """Whether this process has read the file already and found it right, and it has not been touched since."""
    return _key(status(path), expected) in _sound


def remember(path: Path, expected: Expected, before: os.stat_result) -> None:
    """Note that the file, whose status was `before` when reading began, has been found right."""
    if time.time() - before.st_mtime > _FRESH_SECONDS and _key(status(path), expected) == _key(before, expected):
        _sound.add(_key(before, expected))


def _key(found: os.stat_result, expected: Expected) -> tuple[Any, ...]:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, expected.name, expected.sha256


def check_file(path: Path, expected: Expected) -> Path:
    """`path`, once its bytes are what is expected. Raises the error of `expected` naming the file otherwise."""
    try:
        before = status(path)
        expected.check_size(before.st_size)
        if _key(before, expected) not in _sound:
            expected.check_digest(sha256_file(path))
            remember(path, expected, before)
    except FileNotFoundError as error:
        raise expected.differs("is missing") from error
    except OSError as error:
        raise expected.differs(f"cannot be read: {error.strerror}") from error
    return path


class VerifiedStream(io.RawIOBase):
    """The bytes of `handle`, hashed as they pass; at their end, or at the first jump, they must be what is expected.

    A stream that is closed early is read to its end, so that no part of an altered file is used; where reading it went
    wrong, that tells whether the file was altered. `guard` is a context in which errors of reading get their words,
    `remember` is called once the bytes are found right; with `is_sound` they are known to be.
    """

    def __init__(
        self,
        handle: Any,
        expected: Expected,
        guard: Callable[[], AbstractContextManager[None]],
        remember: Callable[[], None],
        is_sound: bool = False,
    ) -> None:
        self._handle, self._expected, self._guard, self._remember = handle, expected, guard, remember
        self._hash = hashlib.sha256()
        self._size = 0
        self._done = is_sound

    def readable(self) -> bool:
        """Always."""
        return True

    def seekable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read into `buffer`; at the end of the bytes they are compared."""
        size = self._read(lambda: int(self._handle.readinto(buffer)))
        if not self._done:
            self._note(memoryview(buffer)[:size])
        return size

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go elsewhere; before the first jump all bytes are read and compared."""
        if not self._done:
            here = self.tell()
            if (whence, offset) in ((io.SEEK_SET, here), (io.SEEK_CUR, 0)):
                return here
            self._drain()
            if whence == io.SEEK_CUR:
                offset, whence = here + offset, io.SEEK_SET
        return self._read(lambda: int(self._handle.seek(offset, whence)))

    def tell(self) -> int:
        """The position."""
        return int(self._handle.tell())

    def close(self) -> None:
        """Close the file, after reading what is left of it."""
        if self.closed:
            return
        try:
            # Whoever stops the program does not wait for the rest of a large file.
            if not self._done and not isinstance(sys.exception(), KeyboardInterrupt | SystemExit | GeneratorExit):
                self._drain()
        finally:
            self._handle.close()
            super().close()

    def _drain(self) -> None:
        while not self._done:
            self._note(memoryview(self._read(lambda: bytes(self._handle.read(_DRAIN_BYTES)))))

    def _read(self, step: Callable[[], Result]) -> Result:
        try:
            with self._guard():
                return step()
        except BaseException:
            # What cannot be read is not read again to find out whether it was altered.
            self._done = True
            raise

    def _note(self, data: memoryview) -> None:
        if data:
            self._hash.update(data)
            self._size += len(data)
            return
        self._done = True
        self._expected.check_size(self._size)
        self._expected.check_digest(self._hash.hexdigest())
        self._remember()


def checksums_of(view: str | Path) -> Path:
    """The file with the checksums of a view and of its other forms: `summary.sha256` for `summary.csv`."""
    return Path(view).with_suffix(".sha256")


def write_checksums(paths: Iterable[str | Path]) -> None:
    """Write the checksums of a view's finished files, whose names differ in their suffixes only."""
    files = [Path(path) for path in paths]
    text = "".join(f"{sha256_file(path)}  {path.name}\n" for path in sorted(files))
    write_text(checksums_of(files[0]), text)


def vouched(view: str | Path) -> Path:
    """The path of a view, once its bytes are those in the file of checksums beside it.

    Raises ManifestError naming the view when it is missing or another one, or when nothing vouches for it.
    """
    path, listing = Path(view), checksums_of(view)
    remedy = f"remove {path} to have it made again"
    if not path.exists():
        raise ManifestError(f"{path}: is missing; the same command makes it again")
    try:
        lines = listing.read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not ASCII"
        raise ManifestError(f"{listing}: the checksums of {path.name} cannot be read: {reason}; {remedy}") from error
    checksums = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
    if path.name not in checksums:
        raise ManifestError(f"{listing}: has no line for {path.name}; {remedy}")
    return check_file(path, Expected(str(path), None, checksums[path.name], str(listing), remedy))
