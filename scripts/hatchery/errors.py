"""Errors for the user: Hatchery's exceptions, and one-line messages for errors of the machine.

A message is one line that states the problem, its place and the expected value. Programs print these errors without a
traceback; other exceptions are bugs of Hatchery and are shown with a traceback. Errors of the machine are a full disk,
missing write permission and lack of memory. Libraries in Rust or C++ state these causes only in the text of their
exceptions, so this module searches the text.
"""

import errno
import os
import re
from pathlib import Path
from tempfile import gettempdir


def first_line(error: BaseException) -> str:
    """Return the first non-empty line of an exception's message; if the message is empty, the name of the exception's
    class.
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


class HatcheryError(Exception):
    """A mistake in the input or the environment that the user can correct."""


class ConfigError(HatcheryError):
    """A configuration value is unknown, has the wrong type, or contradicts another value."""


class SourceError(HatcheryError):
    """A raw input is missing or unreadable, or differs from its manifest."""


class CorpusError(HatcheryError):
    """A document cannot be read from a raw input."""


class TokenizationError(HatcheryError):
    """A tokenizer or a token shard is missing, damaged or unusable."""


class ModelError(HatcheryError):
    """A model configuration or a weights file is invalid."""


class CheckpointError(HatcheryError):
    """A checkpoint cannot be written or read."""


class TrainingError(HatcheryError):
    """Training cannot continue: the loss is not finite, or the settings exclude each other."""


class EvaluationError(HatcheryError):
    """Evaluation data or results are invalid."""


class ManifestError(HatcheryError):
    """A manifest is missing or damaged, or a file differs from the manifest."""


class MisplacedError(ManifestError):
    """A result is in the folder of another result. The misplaced result is never deleted, because it is undamaged and a
    user may need it.
    """


class UploadError(HatcheryError):
    """The hub is unreachable, or refuses an upload."""


class PlanError(HatcheryError):
    """Snakemake cannot plan the targets, or its plan cannot be read."""


WRITABLE = "results need a writable folder (storage_root in config/config.yaml)"
_COPY = "mount the file system for writing, or work in a copy of the project"
_ROOM = "free disk space and run again; finished results are kept"
_WRITTEN = ("results", "resources", "logs", ".")
REMEDIES = {
    errno.ENOSPC: _ROOM,
    errno.EDQUOT: _ROOM,
    errno.EFBIG: "the file exceeds the limit on the size of files (ulimit -f) or of the file system",
    errno.EROFS: WRITABLE,
    errno.EACCES: "check the owner and the permissions of the file",
    errno.EPERM: "check the owner and the permissions of the file",
    errno.ENAMETOOLONG: "file names may have at most 255 characters",
    errno.EIO: "the disk or its network connection has failed; look at the machine's log",
    errno.ESTALE: "the network file system has lost the file; run again",
    errno.EMFILE: "too many files are open; raise the limit (ulimit -n)",
    errno.ENFILE: "too many files are open on this machine",
}
_MEMORY = (
    "not enough memory; run again with fewer processes or smaller micro-batches (`compute` in config/config.yaml) or "
    "with more memory for the job; finished results are kept"
)
# This pattern matches texts of the library tokenizers, "No space left on device (os error 28)", and of the library
# safetensors, "Os { code: 28, kind: StorageFull, ... }".
_NUMBER = re.compile(r"\(os error (\d+)\)|Os \{ code: (\d+),")
_NO_MEMORY = re.compile(
    r"can't allocate memory|cannot allocate memory|out of memory|bad_alloc|can't start new thread|"
    r"failed to map segment|^MemoryError",
    re.IGNORECASE,
)
# A disk with less than this number of free bytes counts as full, because file systems reserve some blocks.
_NO_ROOM_BYTES = 1 << 16
# A disk with fewer than this number of free inodes counts as full, because Snakemake and jobs create many small files.
_NO_ROOM_FILES = 256


def writing_refused(folder: Path) -> str | None:
    """Return an error message if `folder` is not writable, otherwise None.

    The folder is checked before Snakemake uses it, because Snakemake would fail with a traceback.
    """
    if os.access(folder, os.W_OK | os.X_OK):
        return None
    return f"{folder.absolute()}: this folder is not writable, but Snakemake stores its records here; {_COPY}"


# Symbolic links in the repository that lead to the folders of Snakemake's profiles.
_LINKS = ("gpus", "profiles", "slurm")


def links_lost(project: Path) -> str | None:
    """Return an error message if git has written files instead of symbolic links, otherwise None.

    Without the links, Snakemake would run without its profile.
    """
    lost = [name for name in _LINKS if (project / name).is_file()]
    if not lost:
        return None
    return (
        f"{project / lost[0]}: is a file instead of a link, so Snakemake's profiles are not found; run: "
        f"git config core.symlinks true && rm {' '.join(lost)} && git checkout {' '.join(lost)}"
    )


def error_number(error: BaseException) -> int | None:
    """Return the system error number (errno) of an exception of any library; None if no system error caused the
    exception.
    """
    if isinstance(error, OSError):
        return error.errno
    found = _NUMBER.search(str(error))
    return int(found[1] or found[2]) if found else None


def memory_refused(report: str) -> str | None:
    """Return an error message if `report`, the last output of a program, reports a lack of memory, otherwise None."""
    return _MEMORY if _NO_MEMORY.search(report) else None


def full_disk(*folders: Path) -> str | None:
    """Return an error message for the first folder whose disk is full; None if no disk is full.

    The disks themselves are checked, because a log on a full disk may be incomplete and lack the cause of the error.
    """
    for folder in filter(Path.is_dir, folders):
        disk = os.statvfs(folder)
        if disk.f_bavail * disk.f_frsize < _NO_ROOM_BYTES:
            return f"{folder}: {os.strerror(errno.ENOSPC)}; {_ROOM}"
        # Some file systems report 0 inodes, because they do not count inodes.
        if disk.f_files and disk.f_favail < _NO_ROOM_FILES:
            return f"{folder}: no more files can be created on this disk, because it has no free inodes; {_ROOM}"
    return None


# Folder of the semaphores that processes use for synchronisation.
_SEMAPHORES = Path("/dev/shm")
_NO_SEMAPHORES = (errno.ENOENT, errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOSYS)


def _no_semaphores(number: int) -> str | None:
    """Return an error message if semaphores cannot be created because their folder is missing or not writable,
    otherwise None.
    """
    if number not in _NO_SEMAPHORES or os.access(_SEMAPHORES, os.W_OK | os.X_OK):
        return None
    return (
        f"{_SEMAPHORES}: {os.strerror(number)}; several processes need this folder to synchronise: mount the folder "
        "for writing, or use one process (compute.corpus_threads: 1, compute.workers: 0 in config/config.yaml)"
    )


def refusal(error: BaseException) -> str | None:
    """Return a message, with the affected file and advice, if the machine caused the error; otherwise None."""
    number = error_number(error)
    if isinstance(error, MemoryError) or number == errno.ENOMEM:
        return _MEMORY
    # PyTorch raises RuntimeError if GPU memory is insufficient. Python raises ImportError if the memory is insufficient
    # to load a library.
    if isinstance(error, RuntimeError | ImportError) and _NO_MEMORY.search(str(error)):
        return _MEMORY
    if number is not None and isinstance(error, OSError) and not error.filename and (line := _no_semaphores(number)):
        return line
    if number not in REMEDIES:
        return None
    place = (error.filename if isinstance(error, OSError) else None) or "writing"
    # Check the free space of all disks, because an exception of a library need not name the file that it wrote.
    if place == "writing" and number == errno.ENOSPC and (line := full_disk(*map(Path, _WRITTEN), Path(gettempdir()))):
        return line
    return f"{place}: {os.strerror(number)}; {REMEDIES[number]}"
