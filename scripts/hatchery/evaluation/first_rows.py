"""Files of suites, tasks, texts and of people, read as evaluations will read them, before the first training.

While the workflow is planned, `first_problem` looks into what lies on this machine as a file or a folder: at all of
small files, and at the beginning of large ones. When a raw input is registered, `check_registered`
reads all that suites and tasks will take from it, so that a mistake deep in a file is known, too.
"""

import io
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import IO, Any

from hatchery.errors import HatcheryError
from hatchery.evaluation.minimal_pairs.pairs import check_size, pair_files, read_minimal_pairs, read_pairs
from hatchery.evaluation.settings import ScoringSettings
from hatchery.evaluation.surprisal.human_data import read_children, read_contexts, read_words
from hatchery.evaluation.surprisal.settings import AcquisitionSettings, ReadingSettings, SurprisalSettings
from hatchery.evaluation.surprisal.texts import Survey, read_texts
from hatchery.evaluation.tasks.checks import PROBING_FORMATS
from hatchery.evaluation.tasks.settings import TaskSettings
from hatchery.evaluation.tasks.task_rows import read_task, read_through
from hatchery.raw.registration import RawSource, open_source, unregistered
from hatchery.typed import build

SMALL_BYTES = 1 << 20
"""A file of a task is read whole up to this size, and the files of a suite up to this size together."""

HEAD_BYTES = 64 << 10
"""So much of a larger text file is looked at."""

FileSettings = ScoringSettings | TaskSettings | SurprisalSettings | ReadingSettings | AcquisitionSettings

KINDS: dict[str, type[FileSettings]] = {
    "suite": ScoringSettings,
    "task": TaskSettings,
    "texts": SurprisalSettings,
    "reading": ReadingSettings,
    "acquisition": AcquisitionSettings,
}
"""By what `readings` calls them."""

MOST_ROWS = 500
"""So many rows of a larger file."""

MOST_FILES = 20_000
"""A folder with more files is not looked into: listing it would take longer than planning."""


class FirstLines(RawSource):
    """A raw input that was not registered yet, of whose large text files only the first lines are read."""

    def open(self, name: str) -> IO[bytes]:
        """The first whole lines of a member of text. Raises SourceError when it cannot be read."""
        handle = super().open(name)
        if self.is_whole(name) or name.endswith(".parquet"):
            return handle
        with handle:
            data = handle.read(HEAD_BYTES)
        if b"\n" not in data or data.lstrip().startswith(b"["):
            # A single long line or JSON list can be parsed only as a whole.
            return super().open(name)
        lines = data[: data.rfind(b"\n") + 1]
        return io.BytesIO(_with_whole_cells(lines) if name.lower().endswith(".csv") else lines)

    def is_whole(self, name: str) -> bool:
        """Whether all lines are read."""
        return self.size(name) <= SMALL_BYTES


def _with_whole_cells(lines: bytes) -> bytes:
    """The lines of a table up to the last one that does not end inside quotes, if there is such a line."""
    whole = lines
    while whole and whole.count(b'"') % 2:
        whole = whole[: whole.rfind(b"\n", 0, -1) + 1]
    return whole or lines


def notes_of_texts(settings: SurprisalSettings, root: str | Path) -> list[str]:
    """Notes on surprising properties of the texts below `root`; none for large texts and for texts with mistakes."""
    try:
        survey = _survey_of_first_texts(settings, Path(root))
        return [] if survey is None else list(survey.notes(settings))
    except (HatcheryError, OSError):
        return []


def _first_lines(root: str | Path) -> FirstLines | None:
    """Return the files below `root` that planning reads; None for an archive and for a missing path."""
    found = unregistered(Path(root), MOST_FILES)
    if found is None or found.kind == "zip":
        return None
    return FirstLines(found.manifest, found.name, found.kind, found.root, found.files)


@cache
def _survey_of_first_texts(settings: SurprisalSettings, root: Path) -> Survey | None:
    """Return the survey of the texts below `root`; None if nothing is looked into.

    Planning asks for problems and for notes of each experiment of a study, and the texts are read once.
    """
    source = _first_lines(root)
    if source is None:
        return None
    return read_texts(source, settings, lambda name: None if source.is_whole(name) else MOST_ROWS)


def first_problem(settings: FileSettings, root: str | Path) -> str | None:
    """What is wrong with the files of a suite, a task and so on below `root`, as far as they are small, or else None.

    One line with file and row. Of tasks, only `rows` (JSON lines, Parquet, tables) are looked into; no archives.
    """
    try:
        if isinstance(settings, SurprisalSettings):
            _survey_of_first_texts(settings, Path(root))
            return None
        source = _first_lines(root)
        if source is None:
            return None
        if isinstance(settings, ScoringSettings):
            _read_small_files(source, settings)
        elif isinstance(settings, ReadingSettings):
            read_words(source, settings.files, None if source.is_whole(source.one_name(settings.files)) else MOST_ROWS)
        elif isinstance(settings, AcquisitionSettings):
            read_children(source, settings.children)
            if source.is_whole(source.one_name(settings.contexts)):
                read_contexts(source, settings.contexts)
        elif settings.format == "rows":
            read_through(source, settings, lambda name: None if source.is_whole(name) else MOST_ROWS)
    except HatcheryError as error:
        return str(error)
    except OSError as error:
        return f"{error.filename or root}: cannot be read: {error.strerror}"
    return None


def check_registered(manifest: Path, readings: Mapping[str, Mapping[str, Any]]) -> None:
    """Read a registered raw input as suites and tasks will read it.

    `readings` are their files in `config/`, each with its kind and its settings. A filter by vocabulary is left out,
    because vocabularies may not be made yet. Raises HatcheryError naming that file, and the file and line of the data.
    """
    source = open_source(manifest)
    for where, reading in readings.items():
        try:
            settings = build(KINDS[reading["kind"]], reading["settings"])
            if isinstance(settings, SurprisalSettings):
                read_texts(source, settings)
            elif isinstance(settings, ReadingSettings):
                read_words(source, settings.files)
            elif isinstance(settings, AcquisitionSettings):
                read_children(source, settings.children)
                read_contexts(source, settings.contexts)
            elif isinstance(settings, ScoringSettings):
                pairs = read_minimal_pairs(source, settings)
                if settings.expected is not None:
                    check_size(pairs, settings.suite, settings.expected)
            elif settings.format in PROBING_FORMATS:
                read_task(source, settings)
            else:
                read_through(source, settings)
        except HatcheryError as error:
            raise type(error)(f"{where}: {error}") from None


def _read_small_files(source: FirstLines, suite: ScoringSettings) -> None:
    left = SMALL_BYTES
    for name in pair_files(source, suite):
        left -= source.size(name)
        if left < 0:
            return
        for _ in read_pairs(source, suite, name):
            pass
