"""Atomic writing: a file is written under a temporary name in the target's folder, and then renamed.

A rename within one file system is atomic, so a reader never sees a half-written file. A killed job leaves at most a
file whose name starts with a dot and ends in `.partial`; the next run of the job removes this file.
"""

import glob
import json
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hatchery.errors import HatcheryError, error_number


@contextmanager
def atomic_path(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path next to `path`, to which the caller writes the file.

    After success, the temporary file is synchronised with the disk and renamed to `path`. After an exception, the
    temporary file is removed. If writing fails (disk full, no permission), raises an OSError that names `path`,
    whatever exception a library raised.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.parent / f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.partial"
    try:
        # Record the default file mode and restore it after writing, because some libraries replace the temporary file
        # by a file that only its owner may read.
        partial.touch()
        mode = stat.S_IMODE(partial.stat().st_mode)
        yield partial
        partial.chmod(mode)
        with partial.open("rb+") as handle:
            os.fsync(handle.fileno())
        partial.replace(path)
    except OSError as error:
        if error.errno is not None and error.filename in (None, partial, str(partial)):
            error.filename, error.filename2 = str(path), None
        raise
    except Exception as error:
        number = error_number(error)
        if number is None or isinstance(error, HatcheryError):
            raise
        raise OSError(number, os.strerror(number), str(path)) from error
    finally:
        partial.unlink(missing_ok=True)


_LEFTOVER = re.compile(r"\..+\.(\d+)-[0-9a-f]{8}\.partial")


def leftovers(folder: Path, beginning: str = "") -> Iterator[tuple[Path, int]]:
    """Yield (path, process id of the writing process) of each temporary file in a folder and its subfolders.

    A temporary file is yielded only if its final name would begin with `beginning`.
    """
    for path in sorted(folder.rglob(f".{glob.escape(beginning)}*.partial")):
        if found := _LEFTOVER.fullmatch(path.name):
            yield path, int(found[1])


def remove_leftovers(folder: Path, beginning: str = "") -> None:
    """Remove temporary files that were left by processes that have ended.

    The function only recognises running processes of this machine. Call the function only if no process of another
    machine is writing into the folder.
    """
    for path, process in leftovers(folder, beginning):
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            path.unlink(missing_ok=True)
        except OSError:  # PermissionError: the process is running, and belongs to another user.
            continue


def write_bytes(path: str | Path, content: bytes) -> None:
    """Write `content` to `path` atomically."""
    with atomic_path(path) as partial:
        partial.write_bytes(content)


def write_text(path: str | Path, text: str) -> None:
    """Write `text` to `path` atomically, as UTF-8 with unchanged newlines."""
    write_bytes(path, text.encode("utf-8"))


def write_json(path: str | Path, value: Any) -> None:
    """Write `value` to `path` atomically as indented JSON with sorted keys."""
    write_text(path, json_text(value))


def json_value(text: str | bytes) -> Any:
    """Return the value of a JSON text. Raises JSONDecodeError, also if the nesting is too deep for Python.

    Raises UnicodeDecodeError for bytes that are not text.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise json.JSONDecodeError("nested too deeply", "", 0) from None


def json_text(value: Any) -> str:
    """Return `value` as indented JSON with sorted keys, the format of most JSON files that Hatchery writes."""
    return json.dumps(value, sort_keys=True, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
