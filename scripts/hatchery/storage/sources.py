"""Raw inputs as the user brings them: a file, a folder or a zip archive, registered once and read safely.

Registering writes a small manifest of names, sizes and checksums, so a changed raw file is noticed by content, and
every number can be followed back to raw bytes. Where the input lies is kept in a second file, so the same data in
another place has the same identity. Members of archives are read in place, never unpacked to disk, which leaves no
room for paths that point outside.
"""

import fnmatch
import hashlib
import json
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, Any

from hatchery.errors import SourceError
from hatchery.storage.atomic import write_json
from hatchery.storage.checksums import sha256_file

HIDDEN = (".", "__MACOSX")


@dataclass(frozen=True)
class RawSource:
    """A registered raw input; `files` maps relative names to (bytes, sha256), sorted by name."""

    manifest: Path
    name: str
    kind: str
    root: Path
    files: dict[str, tuple[int, str]]
    _archives: dict[Path, zipfile.ZipFile] = field(default_factory=dict, compare=False, repr=False)

    def names(self, pattern: str = "*") -> list[str]:
        """Sorted names whose whole relative path, or whose last part, matches the shell pattern."""
        return [
            name
            for name in self.files
            if fnmatch.fnmatchcase(name, pattern) or fnmatch.fnmatchcase(PurePosixPath(name).name, pattern)
        ]

    def open(self, name: str) -> IO[bytes]:
        """Open a member for reading. Raises SourceError when it is unknown, gone, or changed in size."""
        if name not in self.files:
            raise SourceError(f"{self.root}: there is no file {name!r} in this source")
        expected = self.files[name][0]
        try:
            if self.kind == "zip":
                # setdefault would open the archive, and read its directory, for every member.
                if self.root not in self._archives:
                    self._archives[self.root] = zipfile.ZipFile(self.root)
                archive = self._archives[self.root]
                size = archive.getinfo(name).file_size
                handle: IO[bytes] = archive.open(name)
            else:
                path = self.root if self.kind == "file" else self.root / name
                size = path.stat().st_size
                handle = path.open("rb")
        except (OSError, KeyError, zipfile.BadZipFile) as error:
            raise SourceError(f"{self.root}: {name!r} cannot be read: {error}") from error
        if size != expected:
            handle.close()
            raise SourceError(f"{self.root}: {name!r} has {size} bytes, {expected} when it was registered")
        return handle

    def read_bytes(self, name: str) -> bytes:
        """All bytes of a member. Raises SourceError when it cannot be read."""
        try:
            with self.open(name) as handle:
                return handle.read()
        except (OSError, zipfile.BadZipFile) as error:
            raise SourceError(f"{self.root}: {name!r} cannot be read: {error}") from error


def register_source(name: str, root: str | Path, output: str | Path) -> None:
    """Write the source manifest of the file, folder or zip archive at `root` to `output`, and its location beside it.

    Raises SourceError when `root` does not exist, holds no file, or is a damaged archive.
    """
    root = Path(root)
    if not root.exists():
        raise SourceError(f"source {name!r}: {root} does not exist")
    if root.is_dir():
        kind, entries = "folder", list(_folder_entries(root))
    elif zipfile.is_zipfile(root):
        kind, entries = "zip", list(_zip_entries(root))
    elif root.suffix == ".zip":
        raise SourceError(f"source {name!r}: {root} is called .zip but is not a readable zip archive")
    else:
        kind, entries = "file", [{"path": root.name, "bytes": root.stat().st_size, "sha256": sha256_file(root)}]
    if not entries:
        raise SourceError(f"source {name!r}: {root} holds no files")
    entries.sort(key=lambda entry: str(entry["path"]))
    write_json(location_of(output), {"root": root.as_posix()})
    write_json(output, {"name": name, "kind": kind, "files": entries})


def register_settings(settings: Mapping[str, Any], output: str | Path) -> None:
    """Register the source that a stage's settings describe (`name`, `path`, `obtain`).

    Raises SourceError that says where to set the path and where to get the data when it is not here.
    """
    name, path, obtain = settings["name"], settings["path"], settings["obtain"]
    if path is None or not Path(path).exists():
        state = "has no path" if path is None else f"is not at {path}"
        advice = f"; {obtain}" if obtain else ""
        raise SourceError(f"source {name!r} {state}: set data.{name}.path in config/config.yaml{advice}")
    register_source(name, path, output)


def location_of(manifest_path: str | Path) -> Path:
    """The file beside a source manifest that says where the raw input lies."""
    path = Path(manifest_path)
    return path.with_name(f"{path.stem}.location.json")


def _folder_entries(root: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(root.rglob("*")):
        relative = path.relative_to(root)
        if path.is_file() and not relative.parts[-1].startswith(HIDDEN):
            yield {"path": relative.as_posix(), "bytes": path.stat().st_size, "sha256": sha256_file(path)}


def _zip_entries(root: Path) -> Iterator[dict[str, Any]]:
    try:
        with zipfile.ZipFile(root) as archive:
            for info in archive.infolist():
                if info.is_dir() or PurePosixPath(info.filename).parts[0].startswith(HIDDEN):
                    continue
                with archive.open(info) as handle:
                    checksum = hashlib.file_digest(handle, "sha256").hexdigest()  # type: ignore[arg-type]
                yield {"path": info.filename, "bytes": info.file_size, "sha256": checksum}
    except (OSError, zipfile.BadZipFile, RuntimeError) as error:
        raise SourceError(f"{root}: the zip archive is damaged or encrypted: {error}") from error


def open_source(manifest_path: str | Path) -> RawSource:
    """Open a registered source. Raises SourceError when the manifest is missing or damaged."""
    path = Path(manifest_path)
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
        root = Path(json.loads(location_of(path).read_text(encoding="utf-8"))["root"])
        files = {str(e["path"]): (int(e["bytes"]), str(e["sha256"])) for e in value["files"]}
        return RawSource(path, str(value["name"]), str(value["kind"]), root, dict(sorted(files.items())))
    except FileNotFoundError as error:
        raise SourceError(f"{path}: the source is not registered") from error
    except (OSError, UnicodeDecodeError, json.JSONDecodeError, KeyError, TypeError, ValueError) as error:
        raise SourceError(f"{path}: not a source manifest: {error}") from error
