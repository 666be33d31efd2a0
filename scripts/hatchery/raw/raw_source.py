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
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from hatchery.artifacts.atomic import json_value
from hatchery.artifacts.verified import Expected, VerifiedStream, is_sound, remember, status
from hatchery.errors import SourceError

BUFFER_BYTES = 256 << 10
# The stamp in a folder that we fetched or unpacked.
FETCHED = ".fetched.json"
# Where the workflow keeps source manifests, each under the name of its source.
SOURCES = "sources"

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
        with self.open(name) as handle:
            while handle.read(BUFFER_BYTES):
                pass

    def open(self, name: str) -> IO[bytes]:
        """Open a member for reading; the stream is buffered and can be rewound.

        Its bytes are compared with the registered checksum as they are read (see `artifacts.verified`). Raises
        SourceError when the member is unknown, gone or changed, damaged, or ends too early.
        """
        expected = self._expected(name)
        path = self.root / name if self.kind == "folder" else self.root
        with self._readable(name):
            before = status(path)
            if self.kind == "zip":
                archive = self._archive()
                expected.check_size(archive.getinfo(name).file_size)
                handle: IO[bytes] = archive.open(name)
            else:
                expected.check_size(before.st_size)
                handle = path.open("rb", buffering=0)
            known = self._is_known(path, expected)
        stream = VerifiedStream(
            handle, expected, lambda: self._readable(name), lambda: remember(path, expected, before), known
        )
        return io.BufferedReader(stream, BUFFER_BYTES)

    def read_bytes(self, name: str) -> bytes:
        """All bytes of a member. Raises SourceError when it cannot be read, or has changed."""
        with self.open(name) as handle:
            return handle.read()

    def _is_known(self, path: Path, expected: Expected) -> bool:
        """Whether the bytes need not be compared again."""
        return is_sound(path, expected)

    def _expected(self, name: str) -> Expected:
        size, sha256 = self._entry(name)
        place = f"{self.root}: {name!r}"
        return Expected(place, size, sha256, str(self.manifest), self._remedy(), SourceError)

    def _remedy(self) -> str:
        """What to do about a file that has changed: generated and fetched ones are made again, others registered."""
        if self.manifest.name.startswith("embedded_"):
            return f"remove {self.root.parent}/manifest.json to have it made again"
        for folder in (self.root, self.root.parent):
            if (folder / FETCHED).is_file():
                return f"to fetch it again: rm -r {folder} && snakemake --cores 1 --force {self.manifest}"
        return f"to register it as it is now: snakemake --cores 1 --force {self.manifest}"

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
        except FileNotFoundError as error:
            raise self._expected(name).differs("is missing") from error
        except _UNREADABLE as error:
            reason = getattr(error, "strerror", None) or str(error) or "it ends too early"
            raise SourceError(f"{self.root}: {name!r} cannot be read: {reason}") from error


def location_of(manifest_path: str | Path) -> Path:
    """The file beside a source manifest that says where the raw input lies, and on which terms it may be used."""
    path = Path(manifest_path)
    return path.with_name(f"{path.stem}.location.json")


def open_source(manifest_path: str | Path) -> RawSource:
    """Open a registered source. Raises SourceError when the manifest is missing, damaged or that of another source."""
    path, remedy = Path(manifest_path), "remove it to have the source registered again"
    try:
        content = path.read_bytes()
        value = json_value(content.decode("utf-8"))
        about = json_value(location_of(path).read_text(encoding="utf-8"))
        if checksum := about.get("manifest_sha256"):
            expected = Expected(str(path), None, str(checksum), str(location_of(path)), remedy, SourceError)
            expected.check_digest(hashlib.sha256(content).hexdigest())
        if path.parent.name == SOURCES and value["name"] != path.stem:
            raise SourceError(f"{path}: is that of the source {value['name']!r}; {remedy}")
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
