"""Digests of settings (canonical JSON, SHA-256) and of files, and checks of files against recorded checksums.

Checksums are recorded in manifests, source manifests, and `.sha256` files next to summaries and figures. A manifest
also records the size and the modification time of each output. A check reads an output only if its modification time
differs from the recorded time, for example after the file was copied or restored. So a job usually reads only the
metadata of its inputs. If the size of a file differs from the recorded size, the check reports an error without reading
the file. Each error message is one line that names the file.
"""

import hashlib
import json
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hatchery.artifacts.atomic import write_text
from hatchery.errors import HatcheryError, ManifestError


def canonical_json(value: Any) -> str:
    """Return the canonical JSON of `value`: sorted keys, no spaces between elements. Raises ValueError for NaN and
    infinity.

    Settings are passed to Snakemake as one parameter in this form. If each setting were a parameter, Snakemake would
    compare the values as an unordered set, and would not notice that two settings have exchanged their values.
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest(value: Any) -> str:
    """Return the SHA-256 (hexadecimal) of the canonical JSON of `value`."""
    return hashlib.sha256(canonical_json(value).encode("utf-8")).hexdigest()


def sha256_file(path: str | Path) -> str:
    """Return the SHA-256 (hexadecimal) of the bytes of the file at `path`."""
    with Path(path).open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


# Number of digits of a checksum in messages, so that the actual and the expected checksum fit on one line.
SHOWN_DIGITS = 16


@dataclass(frozen=True)
class Expected:
    """The expected size and SHA-256 of a file.

    `name` is the name of the file in messages, `stated_by` is the file in which size and SHA-256 are recorded, and
    `remedy` is the advice in messages. `bytes` is None if only the checksum is known. `modified` is the file's
    modification time, in nanoseconds, when the checksum was recorded. A check does not read a file that still has this
    modification time. If `modified` is None, a check always reads the file.
    """

    name: str
    bytes: int | None
    sha256: str
    stated_by: str
    remedy: str
    error: type[HatcheryError] = ManifestError
    modified: int | None = None

    def differs(self, found: str) -> HatcheryError:
        """Return the error for a file that differs from its expected state; `found` describes the difference."""
        return self.error(f"{self.name}: {found} ({self.stated_by}); {self.remedy}")

    def check_digest(self, found: str) -> None:
        """Raise the error `self.error` if `found`, the SHA-256 (hexadecimal) of a file, differs from the expected
        SHA-256.
        """
        if found != self.sha256:
            raise self.differs(f"has the SHA-256 {found[:SHOWN_DIGITS]}, expected {self.sha256[:SHOWN_DIGITS]}")


def check_file(path: Path, expected: Expected) -> Path:
    """Return `path` if the file has the expected size and SHA-256; otherwise, raise the error `expected.error`."""
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            kind = "a folder" if stat.S_ISDIR(found.st_mode) else "a device or a pipe"
            raise expected.differs(f"cannot be read: {kind}, expected a file")
        if expected.bytes is not None and found.st_size != expected.bytes:
            raise expected.differs(f"has {found.st_size:,} bytes, expected {expected.bytes:,}")
        if expected.modified != found.st_mtime_ns:
            expected.check_digest(sha256_file(path))
    except FileNotFoundError as error:
        raise expected.differs("is missing") from error
    except OSError as error:
        raise expected.differs(f"cannot be read: {error.strerror}") from error
    return path


def checksums_of(view: str | Path) -> Path:
    """Return the path of the file with the checksums of an output, such as `summary.sha256` for `summary.csv`.

    One file contains the checksums of all formats of the output.
    """
    return Path(view).with_suffix(".sha256")


# Beginning of the line in a checksum file that names the folder. `sha256sum --check` ignores this line as a comment.
_PLACE = "# "


def _place(path: Path) -> str:
    """Return the last two components of a file's folder, such as `results/demo`.

    A file of checksums contains this text, which identifies the folder.
    """
    return "/".join(path.absolute().parts[-3:-1])


def write_checksums(paths: Iterable[str | Path]) -> None:
    """Write one file with the checksums of an output's finished files, whose names differ only in their suffixes.

    The file of checksums names the folder, so that outputs of two experiments with equal names cannot be confused.
    """
    files = [Path(path) for path in paths]
    lines = [f"{_PLACE}{_place(files[0])}", *(f"{sha256_file(path)}  {path.name}" for path in sorted(files))]
    write_text(checksums_of(files[0]), "\n".join(lines) + "\n")


def verified_view(view: str | Path) -> Path:
    """Return `view`, the path of a file such as `summary.csv`, if the file matches the checksum recorded next to it.

    Raises ManifestError, which names the file, if the file is missing, was altered, was written for another folder, or
    has no checksum.
    """
    path, listing = Path(view), checksums_of(view)
    remedy = f"remove {path} to have it made again"
    if not path.exists():
        raise ManifestError(f"{path}: the file is missing; run the same command again to make the file")
    try:
        lines = listing.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise ManifestError(f"{listing}: the checksums of {path.name} cannot be read: {reason}; {remedy}") from error
    made_in = next((line.removeprefix(_PLACE) for line in lines if line.startswith(_PLACE)), None)
    # Accept checksum files that name no folder: earlier versions of Hatchery wrote such files.
    if made_in not in (None, _place(path)):
        raise ManifestError(
            f"{path}: the file was made in {made_in}/, expected a file made in {_place(path)}/; {remedy}"
        )
    checksums = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
    if path.name not in checksums:
        raise ManifestError(f"{listing}: has no line for {path.name}; {remedy}")
    return check_file(path, Expected(str(path), None, checksums[path.name], str(listing), remedy))
