"""Reading registered raw inputs: a file, a folder or a zip archive, member by member, in place.

A source is known by its manifest (names, sizes, checksums); where it lies is in a second file beside it. Members of
a zip archive are never unpacked to disk. Whatever is wrong with a member while it is read is one SourceError that
names the source and the member.
"""

import fnmatch
import hashlib
import io
import json
import lzma
import os
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from hatchery.errors import SourceError

BUFFER_BYTES = 256 << 10

# What reading a damaged, truncated, encrypted or vanished file raises.
_UNREADABLE = (OSError, EOFError, KeyError, RuntimeError, zipfile.BadZipFile, zlib.error, lzma.LZMAError)


@dataclass(frozen=True)
class RawSource:
    """A registered raw input; `files` maps relative names to (bytes, sha256), sorted by name.

    May be sent to other processes: each opens the archive for itself.
    """

    manifest: Path
    name: str
    kind: str
    root: Path
    files: dict[str, tuple[int, str]]
    licence: str = ""
    terms: str = ""
    _archives: dict[int, zipfile.ZipFile] = field(default_factory=dict, compare=False, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_archives": {}}

    def names(self, pattern: str = "*") -> list[str]:
        """Sorted names whose whole relative path, or whose last part, matches the shell pattern."""
        if pattern == "*":
            return list(self.files)
        return [
            name
            for name in self.files
            if fnmatch.fnmatchcase(name, pattern) or fnmatch.fnmatchcase(name.rpartition("/")[2], pattern)
        ]

    def size(self, name: str) -> int:
        """Bytes of a member when it was registered. Raises SourceError when it is unknown."""
        return self._entry(name)[0]

    def sha256(self, name: str) -> str:
        """SHA-256 (hexadecimal) of a member when it was registered. Raises SourceError when it is unknown."""
        return self._entry(name)[1]

    def verify(self, name: str) -> None:
        """Read a member to its end and compare its checksum. Raises SourceError when it has changed."""
        expected = self.sha256(name)
        with self._readable(name), self.open(name) as handle:
            found = hashlib.file_digest(handle, "sha256").hexdigest()  # type: ignore[arg-type]
        if found != expected:
            raise SourceError(
                f"{self.root}: {name!r} has changed since it was registered: sha256 {found}, expected {expected}"
            )

    def open(self, name: str) -> IO[bytes]:
        """Open a member for reading; the stream is buffered and can be rewound.

        Raises SourceError when the member is unknown, gone, or changed in size, and while it is read when it is
        damaged or ends too early.
        """
        expected = self.size(name)
        with self._readable(name):
            if self.kind == "zip":
                archive = self._archive()
                size = archive.getinfo(name).file_size
                member = _Member(archive.open(name), lambda: self._readable(name))
                handle: IO[bytes] = io.BufferedReader(member, BUFFER_BYTES)
            else:
                path = self.root if self.kind == "file" else self.root / name
                size = path.stat().st_size
                handle = path.open("rb")
        if size != expected:
            handle.close()
            raise SourceError(f"{self.root}: {name!r} has {size} bytes, {expected} when it was registered")
        return handle

    def read_bytes(self, name: str) -> bytes:
        """All bytes of a member. Raises SourceError when it cannot be read."""
        with self._readable(name), self.open(name) as handle:
            return handle.read()

    def _entry(self, name: str) -> tuple[int, str]:
        if name not in self.files:
            raise SourceError(f"{self.root}: there is no file {name!r} in this source")
        return self.files[name]

    def _archive(self) -> zipfile.ZipFile:
        # By process: after a fork, an inherited archive would share its position in the file with the parent's.
        process = os.getpid()
        if process not in self._archives:
            self._archives[process] = zipfile.ZipFile(self.root)
        return self._archives[process]

    @contextmanager
    def _readable(self, name: str) -> Iterator[None]:
        try:
            yield
        except _UNREADABLE as error:
            reason = str(error) or "it ends too early"
            raise SourceError(f"{self.root}: {name!r} cannot be read: {reason}") from error


class _Member(io.RawIOBase):
    """The bytes of a zip member; what goes wrong underneath comes out as the error of `guard`."""

    def __init__(self, handle: IO[bytes], guard: Callable[[], Any]) -> None:
        self._handle, self._guard = handle, guard

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        with self._guard():
            data = self._handle.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        with self._guard():
            return self._handle.seek(offset, whence)

    def tell(self) -> int:
        return self._handle.tell()

    def close(self) -> None:
        if not self.closed:
            self._handle.close()
        super().close()


def location_of(manifest_path: str | Path) -> Path:
    """The file beside a source manifest that says where the raw input lies, and on which terms it may be used."""
    path = Path(manifest_path)
    return path.with_name(f"{path.stem}.location.json")


def open_source(manifest_path: str | Path) -> RawSource:
    """Open a registered source. Raises SourceError when the manifest is missing or damaged."""
    path = Path(manifest_path)
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
        about = json.loads(location_of(path).read_text(encoding="utf-8"))
        files = {str(e["path"]): (int(e["bytes"]), str(e["sha256"])) for e in value["files"]}
        return RawSource(
            manifest=path,
            name=str(value["name"]),
            kind=str(value["kind"]),
            root=Path(about["root"]),
            files=dict(sorted(files.items())),
            licence=str(about.get("licence", "")),
            terms=str(about.get("terms", "")),
        )
    except FileNotFoundError as error:
        raise SourceError(f"{path}: the source is not registered") from error
    except (OSError, UnicodeDecodeError, json.JSONDecodeError, KeyError, TypeError, ValueError) as error:
        raise SourceError(f"{path}: not a source manifest: {error}") from error
