"""Check suites, tasks, texts and human data before the first training by reading them as evaluations do.

`check_first_rows` runs during planning and reads files and folders on this machine: small files completely, and only
the first rows of large files. `check_registered` runs when a raw input is registered. It reads everything that
evaluations will read, so it also finds a mistake near the end of a file. Each kind of evaluation defines the check of
its data (`DataCheck`).
"""

import io
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from hatchery.errors import HatcheryError, SourceError
from hatchery.evaluation.evaluation import DataCheck, MostRows
from hatchery.evaluation.kinds import evaluations
from hatchery.raw.registration import RawSource, open_source, unregistered
from hatchery.settings.base import Settings
from hatchery.typed import build

SMALL_BYTES = 1 << 20
"""Maximum size, in bytes, of a text file that is opened completely, and maximum total size of the files whose rows are
all checked.
"""

HEAD_BYTES = 64 << 10
"""Number of bytes that are read from a text file of more than SMALL_BYTES; see `FirstLines.open` for exceptions."""

MOST_ROWS = 500
"""Largest number of rows that are read from each file beyond the total size SMALL_BYTES."""

MOST_FILES = 20_000
"""Largest number of files in a folder that is checked. A folder with more files is skipped, because listing these files
would take longer than planning.
"""


class FirstLines(RawSource):
    """A raw input that is not registered yet. Of its large text files, only the first lines are read."""

    def open(self, name: str) -> IO[bytes]:
        """Open a file. If a text file has more than SMALL_BYTES, only the complete lines in its first HEAD_BYTES are
        read. The whole file is read if there is no complete line, or if the file is one JSON list. Raises SourceError
        if the file cannot be read.
        """
        handle = super().open(name)
        if self.size(name) <= SMALL_BYTES or name.endswith(".parquet"):
            return handle
        with handle:
            data = handle.read(HEAD_BYTES)
        if b"\n" not in data or data.lstrip().startswith(b"["):
            # The beginning of a file cannot be parsed alone if its first line is longer than HEAD_BYTES or if the file
            # is one JSON list. Open the whole file in these two cases.
            return super().open(name)
        lines = data[: data.rfind(b"\n") + 1]
        return io.BytesIO(_with_whole_cells(lines) if name.lower().endswith(".csv") else lines)


def _with_whole_cells(lines: bytes) -> bytes:
    """Remove lines from the end of a CSV table until the last line does not end inside quotes. If no line would remain,
    return the table unchanged.
    """
    whole = lines
    while whole and whole.count(b'"') % 2:
        whole = whole[: whole.rfind(b"\n", 0, -1) + 1]
    return whole or lines


def check_first_rows(kind: str, settings: Settings, root: str | Path) -> tuple[str, ...]:
    """Check those files below `root` that evaluations of the kind `kind` read, and return notes on surprising
    properties of the data.

    Archives, missing paths and folders with more than MOST_FILES files are skipped. Raises HatcheryError naming the
    file and the row of a mistake.
    """
    try:
        found = unregistered(Path(root), MOST_FILES)
        if found is None or found.kind == "zip":
            return ()
        source = FirstLines(found.manifest, found.name, found.kind, found.root, found.files)
        return tuple(_check_of(kind).check(source, settings, _first_rows(source)))
    except OSError as error:
        raise SourceError(f"{error.filename or root}: cannot be read: {error.strerror}") from error


def _check_of(kind: str) -> DataCheck:
    data = evaluations()[kind].data
    assert data is not None
    return data


def _first_rows(source: RawSource) -> MostRows:
    """Return the function that limits the rows to read. A file is read completely if this file and the earlier
    completely read files have at most SMALL_BYTES in total. Of every other file, the first MOST_ROWS rows are read.
    """
    sizes: dict[str, int] = {}

    def most_rows(name: str) -> int | None:
        if name not in sizes and sum(sizes.values()) + source.size(name) <= SMALL_BYTES:
            sizes[name] = source.size(name)
        return None if name in sizes else MOST_ROWS

    return most_rows


def check_registered(manifest: Path, readings: Mapping[str, Mapping[str, Any]]) -> None:
    """Read a registered raw input as evaluations will read it, and raise an error for wrong data.

    `readings` has an entry for each place (configuration file and key) that names the input. Each entry contains a kind
    of evaluation, and the settings with which this kind reads the input. Filters by vocabulary are not applied, because
    vocabularies may not exist yet. Raises HatcheryError naming file and key of the configuration, and the file and line
    of the data.
    """
    source = open_source(manifest)
    for where, reading in readings.items():
        try:
            data = _check_of(reading["kind"])
            data.check(source, build(data.settings, reading["settings"]), lambda name: None)
        except HatcheryError as error:
            raise type(error)(f"{where}: {error}") from None
