"""Errors addressed to the user: exceptions of Hatchery, and failures of the machine in the same one-line form.

Every message is one line that says what is wrong, where, and what was expected. The commands print such an error
without a traceback; any other exception is a defect of ours and keeps its traceback. A full disk, a folder without
write permission and too little memory are no defects of ours either, in whichever library they occur. Libraries
written in Rust or C++ raise exceptions of their own that name the cause only in their text, so the text is searched,
too.
"""

import errno
import os
import re
from pathlib import Path
from tempfile import gettempdir


def first_line(error: BaseException) -> str:
    """Return the first line with words of an exception's message, or the exception's class name if there is no such
    line.
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


class HatcheryError(Exception):
    """A mistake in the input or the environment that the user can correct."""


class ConfigError(HatcheryError):
    """A configuration value is unknown, of the wrong type, or does not fit another one."""


class SourceError(HatcheryError):
    """A raw input is missing, unreadable or differs from its manifest."""


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
    """An intact result is in the folder of another result. It is never deleted, because it may be somebody's work."""


class UploadError(HatcheryError):
    """The hub is unreachable, or refuses an upload."""


class PlanError(HatcheryError):
    """Snakemake cannot plan the targets, or its answer cannot be read."""


WRITABLE = "the results need a place that can be written to (storage_root in config/config.yaml)"
_COPY = "mount it for writing, or work in a copy of the project"
_ROOM = "make room and start again; what is finished stays"
_WRITTEN = ("results", "resources", "logs", ".")
REMEDIES = {
    errno.ENOSPC: _ROOM,
    errno.EDQUOT: _ROOM,
    errno.EFBIG: "the limit on the size of files (ulimit -f) or the file system does not allow so large a file",
    errno.EROFS: WRITABLE,
    errno.EACCES: "check who owns it and its permissions",
    errno.EPERM: "check who owns it and its permissions",
    errno.ENAMETOOLONG: "names of files have 255 characters at most",
    errno.EIO: "the disk or the network behind it fails; look at the machine's log",
    errno.ESTALE: "the network file system has lost it; start again",
    errno.EMFILE: "too many files are open; raise the limit (ulimit -n)",
    errno.ENFILE: "too many files are open on this machine",
}
_MEMORY = (
    "not enough memory; start again with fewer processes or smaller micro-batches (compute in config/config.yaml) or "
    "with more memory for the job; what is finished stays"
)
# "No space left on device (os error 28)" by tokenizers, "Os { code: 28, kind: StorageFull, ... }" by safetensors.
_NUMBER = re.compile(r"\(os error (\d+)\)|Os \{ code: (\d+),")
_NO_MEMORY = re.compile(
    r"can't allocate memory|cannot allocate memory|out of memory|bad_alloc|can't start new thread|"
    r"failed to map segment|^MemoryError",
    re.IGNORECASE,
)
# A disk with less free space counts as full: file systems reserve some blocks for themselves.
_NO_ROOM_BYTES = 1 << 16
# With fewer free inodes, Snakemake's records of a call and the temporary files of a job do not fit.
_NO_ROOM_FILES = 256


def writing_refused(folder: Path) -> str | None:
    """Return the message if nothing can be written in `folder`. Called before Snakemake would fail with a traceback."""
    if os.access(folder, os.W_OK | os.X_OK):
        return None
    return f"{folder.absolute()}: nothing can be written in this folder, but Snakemake keeps its records here; {_COPY}"


# Links of the repository to the folders of Snakemake's profiles.
_LINKS = ("gpus", "profiles", "slurm")


def links_lost(project: Path) -> str | None:
    """Return the message if git wrote files in place of links: Snakemake would then run without its profile."""
    lost = [name for name in _LINKS if (project / name).is_file()]
    if not lost:
        return None
    return (
        f"{project / lost[0]}: is a file where the repository has a link, so Snakemake's profiles are not found; run: "
        f"git config core.symlinks true && rm {' '.join(lost)} && git checkout {' '.join(lost)}"
    )


def error_number(error: BaseException) -> int | None:
    """Return the number of the system error that caused an exception of any library, None if there is no number."""
    if isinstance(error, OSError):
        return error.errno
    found = _NUMBER.search(str(error))
    return int(found[1] or found[2]) if found else None


def memory_refused(report: str) -> str | None:
    """Return the message if the last words of a program report too little memory, whatever ended the program."""
    return _MEMORY if _NO_MEMORY.search(report) else None


def full_disk(*folders: Path) -> str | None:
    """Return the message for the first of the folders whose disk is full; None if no disk is.

    A log on a full disk cannot report the cause.
    """
    for folder in filter(Path.is_dir, folders):
        disk = os.statvfs(folder)
        if disk.f_bavail * disk.f_frsize < _NO_ROOM_BYTES:
            return f"{folder}: {os.strerror(errno.ENOSPC)}; {_ROOM}"
        # Some file systems do not count inodes.
        if disk.f_files and disk.f_favail < _NO_ROOM_FILES:
            return f"{folder}: no more files can be made on this disk (it has no free inodes); {_ROOM}"
    return None


# Folder of the semaphores that synchronise processes.
_SEMAPHORES = Path("/dev/shm")
_NO_SEMAPHORES = (errno.ENOENT, errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOSYS)


def _no_semaphores(number: int) -> str | None:
    """Return the message for a process that cannot create semaphores, because their folder is missing or read-only."""
    if number not in _NO_SEMAPHORES or os.access(_SEMAPHORES, os.W_OK | os.X_OK):
        return None
    return (
        f"{_SEMAPHORES}: {os.strerror(number)}; several processes need it to work together: mount it for writing, or "
        "have one work (compute.corpus_threads: 1, compute.workers: 0 in config/config.yaml)"
    )


def refusal(error: BaseException) -> str | None:
    """Return the message if the machine caused the error: what failed, where, what to do; None for any other error."""
    number = error_number(error)
    if isinstance(error, MemoryError) or number == errno.ENOMEM:
        return _MEMORY
    # Also for the memory of a GPU. For a library, the dynamic linker reports that it could not be mapped.
    if isinstance(error, RuntimeError | ImportError) and _NO_MEMORY.search(str(error)):
        return _MEMORY
    if number is not None and isinstance(error, OSError) and not error.filename and (line := _no_semaphores(number)):
        return line
    if number not in REMEDIES:
        return None
    place = (error.filename if isinstance(error, OSError) else None) or "writing"
    # The exception of this library does not name the file, so all disks are checked for free space.
    if place == "writing" and number == errno.ENOSPC and (line := full_disk(*map(Path, _WRITTEN), Path(gettempdir()))):
        return line
    return f"{place}: {os.strerror(number)}; {REMEDIES[number]}"
