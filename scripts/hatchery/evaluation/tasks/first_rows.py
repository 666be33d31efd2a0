"""The first rows of a task's files, read as fine-tuning will read them: wrong fields and labels are known at once.

A look of some milliseconds while the workflow is planned, where the raw data lies on this machine as a file, a folder
or a zip archive. What lies deeper in the files, only the stage itself finds.
"""

import zipfile
from itertools import islice
from pathlib import Path

from hatchery.errors import HatcheryError
from hatchery.evaluation.tasks.formats.registry import FORMATS, set_names, task_files
from hatchery.evaluation.tasks.layouts.registry import used_fields
from hatchery.evaluation.tasks.settings import TaskSettings
from hatchery.evaluation.tasks.suites import check_suite
from hatchery.evaluation.tasks.task_rows import check_label_set, make_layout
from hatchery.storage.archive_members import is_hidden
from hatchery.storage.raw_source import RawSource
from hatchery.storage.verified import Expected

HEAD_BYTES = 64 << 10
"""So much of a text file is looked at."""

MOST_ROWS = 500
MOST_FILES = 20_000
"""A folder with more files is not looked into: listing it would take longer than planning."""


class FirstLines(RawSource):
    """A raw input that was not registered yet, of whose text files only the first lines are read."""

    def read_bytes(self, name: str) -> bytes:
        """The first whole lines of a member. Raises SourceError when it cannot be read."""
        with self.open(name) as handle:
            data = handle.read(HEAD_BYTES)
            return data if not handle.read(1) else data[: data.rfind(b"\n") + 1]

    def _is_known(self, path: Path, expected: Expected) -> bool:
        # Nobody has registered a checksum yet.
        return True

    def is_whole(self, name: str) -> bool:
        """Whether the first lines are all."""
        return self.size(name) <= HEAD_BYTES


def first_rows_problem(task: TaskSettings, root: str | Path) -> str | None:
    """What is wrong with the first rows of the task's files below `root`, or None; one line with file and row.

    Only `rows` (JSON lines, Parquet, tables) are looked into, and no tar archives.
    """
    if task.format != "rows":
        return None
    try:
        source = _unregistered(Path(root))
        if source is None:
            return None
        for name in set_names(task):
            _read_first_rows(source, task, name)
    except HatcheryError as error:
        return str(error)
    except OSError as error:
        return f"{error.filename or root}: cannot be read: {error.strerror}"
    return None


def _read_first_rows(source: FirstLines, task: TaskSettings, name: str) -> None:
    used, lay_out = used_fields(task), make_layout(task, scored_set=name != "train")
    files = task_files(source, task, name)
    found: set[object] = set()
    for file in files:
        records = FORMATS[task.format].read(source, task, name, file, used)
        for index, record in enumerate(islice(records, MOST_ROWS)):
            if index == 0:
                check_suite(record, used, task.name)
            for field in task.vocabulary.fields if task.vocabulary else ():
                record.string(field)
            found |= {example.label for example in lay_out(record)}
            if index + 1 == MOST_ROWS:
                return
        if not source.is_whole(file):
            return
    if name == "train":
        check_label_set(found, task, str(source.root))


def _unregistered(root: Path) -> FirstLines | None:
    """The files at `root` with their sizes; None for a tar archive and for very many files."""
    if root.is_dir():
        paths = list(islice((path for path in root.rglob("*") if path.is_file()), MOST_FILES + 1))
        names = {path.relative_to(root).as_posix(): path.stat().st_size for path in paths}
        kind = "folder"
    elif zipfile.is_zipfile(root):
        with zipfile.ZipFile(root) as archive:
            names = {info.filename: info.file_size for info in archive.infolist() if not info.is_dir()}
        kind = "zip"
    elif root.suffix in (".tar", ".gz", ".tgz", ".bz2", ".xz", ".zst"):
        return None
    else:
        names, kind = {root.name: root.stat().st_size}, "file"
    if len(names) > MOST_FILES:
        return None
    files = {name: (size, "") for name, size in sorted(names.items()) if not is_hidden(name)}
    return FirstLines(manifest=root, name=root.name, kind=kind, root=root, files=files)
