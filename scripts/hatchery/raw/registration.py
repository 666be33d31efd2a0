"""Registered raw inputs: a file or a folder whose files are read in place.

Registration writes a manifest with names, sizes and checksums of the files, so that changes are noticed and results can
be traced to raw files. A file with unchanged size and modification time is not read again (see `listings`). A second
file stores location, origin, licence and terms of the input. Because the manifest does not contain this information,
its digest depends only on the names and contents of the files, and not on folder or description. Errors are
SourceErrors that name source and file.
"""

import fnmatch
import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from hatchery.artifacts.atomic import json_value, write_json, write_text
from hatchery.artifacts.checksums import Expected, check_file, sha256_file
from hatchery.errors import SourceError
from hatchery.raw.archives import is_archive, is_zip, zipped_sizes
from hatchery.raw.listings import (
    REGISTERED,
    Listing,
    listing_of,
    location_of,
    read_listing,
    unpacked,
    with_checksums,
    write_listing,
)

BUFFER_BYTES = 256 << 10
# Name of the file that marks a complete folder of downloaded or unpacked files, the stamp file (see `fetched_folder`).
STAMP = ".fetched.json"


@dataclass(frozen=True)
class RawSource:
    """A registered raw input. `files` maps the names of the files, relative to `root` and sorted, to (size in bytes,
    SHA-256).
    """

    manifest: Path
    name: str
    kind: str
    root: Path
    files: dict[str, tuple[int, str]]
    licence: str = ""
    terms: str = ""

    def names(self, pattern: str = "*") -> list[str]:
        """Return the sorted names of the files whose relative path or file name matches a shell pattern."""
        if pattern == "*":
            return list(self.files)
        return [
            name
            for name in self.files
            if fnmatch.fnmatchcase(name, pattern) or fnmatch.fnmatchcase(name.rpartition("/")[2], pattern)
        ]

    def one_name(self, *patterns: str) -> str:
        """Return the name of the only file that matches a pattern. If there are several patterns, the first pattern
        that matches any file is used.

        Raises SourceError if no file or several files match.
        """
        names: list[str] = next(filter(None, map(self.names, patterns)), [])
        if len(names) != 1:
            matches = f"{len(names)} ({', '.join(names[:3])}{', ...' if names[3:] else ''})" if names else "none"
            wanted = " or ".join(map(repr, patterns))
            raise SourceError(f"{self.root}: expected one file that matches {wanted}, found {matches}")
        return names[0]

    def only(self, names: Iterable[str]) -> "RawSource":
        """Return a copy of this source that contains only the files `names`."""
        return replace(self, files={name: self.files[name] for name in sorted(set(names))})

    @property
    def digest(self) -> str:
        """SHA-256 of a source manifest that would list exactly the files of this object."""
        entries = [{"path": name, "bytes": size, "sha256": sha256} for name, (size, sha256) in self.files.items()]
        text = _manifest_text({"kind": self.kind, "name": self.name}, entries)
        return hashlib.sha256(text.encode("utf-8")).hexdigest()

    def size(self, name: str) -> int:
        """Return the registered size of a file in bytes. Raises SourceError for an unknown file."""
        return self._entry(name)[0]

    def sha256(self, name: str) -> str:
        """Return the registered SHA-256 (hexadecimal) of a file. Raises SourceError for an unknown file."""
        return self._entry(name)[1]

    def path(self, name: str) -> Path:
        """Return the path of a file. Raises SourceError for an unknown file."""
        self._entry(name)
        return self.root if self.kind == "file" else self.root / name

    def open(self, name: str) -> IO[bytes]:
        """Open a file for reading bytes. Raises SourceError if the file is unknown or cannot be read."""
        try:
            return self.path(name).open("rb", BUFFER_BYTES)
        except OSError as error:
            raise SourceError(f"{self.root}: {name!r} cannot be read: {error.strerror}") from error

    def read_bytes(self, name: str) -> bytes:
        """Return all bytes of a file. Raises SourceError if the file is unknown or cannot be read."""
        with self.open(name) as handle:
            return handle.read()

    def verify(self) -> None:
        """Check all files, and raise SourceError, which names the file, for a file that differs from its registration.

        A file with unchanged size and modification time is not read again.
        """
        found, registered = (
            listing_of(self.root, follow_links=True),
            read_listing(self.manifest) | read_listing(unpacked(self.manifest)),
        )
        for name, (size, sha256) in self.files.items():
            seen = found.get(name)
            if seen is None or seen._replace(sha256=sha256) != registered.get(name) or seen.bytes != size:
                self.check(name)

    def check(self, name: str) -> None:
        """Read a file and compare its content with its registered checksum. Raises SourceError if the file has
        changed.
        """
        size, sha256 = self._entry(name)
        place = f"{self.root}: {name!r}"
        check_file(self.path(name), Expected(place, size, sha256, str(self.manifest), self._remedy(), SourceError))

    def _remedy(self) -> str:
        """Return the end of a message about a changed file, with advice to generate, download or register the file
        again.
        """
        if self.manifest.name.startswith("embedded_"):
            return f"remove {self.root.parent}/manifest.json to have the file generated again"
        for folder in (self.root, self.root.parent):
            if (folder / STAMP).is_file():
                return f"to download the file again: rm -r {folder} && snakemake --cores 1 --force {self.manifest}"
        return f"to register the changed file: snakemake --cores 1 --force {self.manifest}"

    def _entry(self, name: str) -> tuple[int, str]:
        if name not in self.files:
            raise SourceError(f"{self.root}: the registered source contains no file {name!r}")
        return self.files[name]


def open_source(manifest_path: str | Path) -> RawSource:
    """Return the registered source that the manifest at `manifest_path` describes.

    Raises SourceError if the manifest is missing, is damaged, or names another source than its file name.
    """
    path, remedy = Path(manifest_path), "remove this manifest to have the source registered again"
    try:
        content = path.read_bytes()
        value = json_value(content.decode("utf-8"))
        about = json_value(location_of(path).read_text(encoding="utf-8"))
        if checksum := about.get("manifest_sha256"):
            expected = Expected(str(path), None, str(checksum), str(location_of(path)), remedy, SourceError)
            expected.check_digest(hashlib.sha256(content).hexdigest())
        if path.parent.name == Path(REGISTERED).name and value["name"] != path.stem:
            raise SourceError(
                f"{path}: got the manifest of the source {value['name']!r}, expected the manifest of {path.stem!r}; "
                f"{remedy}"
            )
        if value["kind"] == "zip" and Path(about["root"]).is_file():
            remedy = f"to unpack the archive: snakemake --cores 1 --force {path}"
            raise SourceError(f"{path}: was registered by an earlier version that did not unpack archives; {remedy}")
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
        raise SourceError(
            f"{path}: this source manifest, or the file with its location, is missing; to register the source: "
            f"snakemake --cores 1 --force {path}"
        ) from error
    except (OSError, UnicodeDecodeError, json.JSONDecodeError, KeyError, TypeError, ValueError) as error:
        raise SourceError(f"{path}: cannot be read as a source manifest: {error}") from error


def unregistered(root: Path, most_files: int) -> RawSource | None:
    """Return an unregistered source with the files at `root`, or in the zip archive at `root`. The source contains the
    sizes of the files, but no checksums.

    The result is None in three cases: `root` does not exist; it is an archive that is not a zip archive or is damaged;
    or it is a folder that contains no files or more than `most_files` files.
    """
    if is_archive(root):
        kind, sizes = "zip", zipped_sizes(root)
    else:
        kind = "folder" if root.is_dir() else "file"
        sizes = {name: entry.bytes for name, entry in listing_of(root, most=most_files + 1).items()}
    if not sizes or (kind == "folder" and len(sizes) > most_files):
        return None
    return RawSource(root, root.name, kind, root, {name: (size, "") for name, size in sorted(sizes.items())})


def present(manifest: str | Path, root: Path, listing: Listing) -> RawSource:
    """Return a registered source with the sizes and checksums of the files that are now at `root`; `listing` is the
    listing of these files.

    The checksum is empty for a file that is not registered or differs in size from the registered file. A file of equal
    size is read only if its modification time differs from the time in the listing that the registration stored. Raises
    SourceError if the manifest cannot be opened, and OSError for an unreadable file.
    """
    registered, before = open_source(manifest), read_listing(manifest)
    folder = root if root.is_dir() else root.parent
    files = {}
    for name, entry in listing.items():
        size, sha256 = registered.files.get(name, (None, ""))
        if size != entry.bytes:
            sha256 = ""
        elif not entry.looks_like(before.get(name)):
            sha256 = sha256_file(folder / name)
        files[name] = (entry.bytes, sha256)
    return replace(registered, kind="folder" if root.is_dir() else "file", root=root, files=files)


def register_source(
    name: str,
    root: str | Path,
    output: str | Path,
    *,
    licence: str = "",
    terms: str = "",
    origin: dict[str, object] | None = None,
    archive: Path | None = None,
    follow_links: bool = False,
) -> None:
    """Write the source manifest of the file or folder at `root` to `output`.

    Location, `origin`, licence and terms are written to a second file (see `location_of`). If the files were unpacked
    from an archive, `archive` is its path. Raises SourceError if `root` does not exist or contains no files. Also
    raises SourceError for an unreadable file, for a file name that is not UTF-8 and, unless `follow_links` is true, for
    a link.
    """
    root = Path(root)
    if not root.exists():
        state = f"is a link to {root.readlink()}, which does not exist" if root.is_symlink() else "does not exist"
        raise SourceError(f"source {name!r}: {root} {state}")
    if not (root.is_file() or root.is_dir()):
        raise SourceError(f"source {name!r}: {root} is a device or a pipe, expected a file or a folder")
    try:
        listed = output if archive is None else unpacked(output)
        listing = with_checksums(root, listing_of(root, strict=True, follow_links=follow_links), read_listing(listed))
    except OSError as error:
        raise SourceError(f"source {name!r}: {error.filename or root}: {error.strerror or error}") from error
    if not listing:
        raise SourceError(f"source {name!r}: {root} contains no files")
    entries = [
        {"path": _checked(root, path), "bytes": entry.bytes, "sha256": entry.sha256} for path, entry in listing.items()
    ]
    # The kind of files that were unpacked from a zip archive is "zip".
    kind = "zip" if archive is not None and is_zip(archive) else "folder" if root.is_dir() else "file"
    text = _manifest_text({"kind": kind, "name": name}, entries)
    checksum = hashlib.sha256(text.encode("utf-8")).hexdigest()
    about = {
        "manifest_sha256": checksum,
        "root": root.as_posix(),
        "origin": origin or {},
        "licence": licence,
        "terms": terms,
    }
    write_listing(listed, listing)
    if archive is not None:
        write_listing(output, listing_of(archive))
    write_json(location_of(output), about)
    write_text(output, text)


def _manifest_text(head: dict[str, str], entries: Iterable[dict[str, object]]) -> str:
    """Return the manifest as JSON with one line per file, which is faster to write than indented JSON."""
    lines = [f" {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)},\n" for key, value in head.items()]
    files = ",\n".join(f"  {json.dumps(entry, sort_keys=True, ensure_ascii=False)}" for entry in entries)
    return "{\n" + "".join(lines) + ' "files": [\n' + files + "\n ]\n}\n"


def _checked(root: Path, name: str) -> str:
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        raise SourceError(f"{root}: the file name {name!r} is not UTF-8; rename the file") from None
    return name
