"""Making `.venv` from the lock files, or finding in an instant that it is there.

Only the standard library is used: this runs on a bare Python 3.11. An environment counts as installed when the stamp
in it equals the digest of the lock files' content, so a killed installation is simply made again.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hatchery.environments.lock import canonical_name, read_lock
from hatchery.errors import HatcheryError

BUILD_LOCK = "requirements-build.lock"
CPU_LOCK = "requirements-cpu.lock"
MAIN_LOCK = "requirements.lock"
GPU_LOCK = "requirements-gpu.lock"
LOCKS = (BUILD_LOCK, CPU_LOCK, MAIN_LOCK, GPU_LOCK)

STAMP = ".installed"
LOG = "install.log"
OWN_ENTRIES = {"bin", "include", "lib", "lib64", "share", "etc", LOG, STAMP}

# The lock is complete and its hashes are checked, so pip has nothing to resolve. Source archives are built with the
# locked setuptools instead of one that pip would fetch unchecked. Bytecode is compiled later, on all processors.
# Packages without a wheel are built by PEP 517: what older versions of pip do otherwise leaves no record of the files.
PIP_OPTIONS = (
    *(
        "--require-hashes",
        "--no-deps",
        "--no-build-isolation",
        "--use-pep517",
        "--no-compile",
        "--no-user",
        "--no-input",
    ),
)


class InstallationError(HatcheryError):
    """The environment cannot be made: something is missing on this machine, or pip failed."""


def install_environment(repository: Path, folder: Path) -> bool:
    """Make the virtual environment `folder` from the lock files in `repository`; False when it is there already.

    Raises InstallationError for a missing prerequisite, for a folder that is something else, and when pip fails.
    """
    digest = environment_digest(repository, folder)
    if is_installed(folder, digest):
        return False
    check_prerequisites()
    with _one_at_a_time(repository):
        if is_installed(folder, digest):
            return False
        started = time.monotonic()
        base_python = _base_python()
        _remove(folder)
        _say(f"making {folder.name} for Python {sys.version.split()[0]}")
        _run([base_python, "-m", "venv", str(folder)], "venv")
        _install_packages(repository, folder)
        _say("compiling bytecode")
        # Some packages ship files for other Python versions, which do not compile and are never imported.
        compiling = [_python(folder), "-m", "compileall", "-q", "-q", "-j", "0", str(folder / "lib")]
        subprocess.run(compiling, capture_output=True, check=False)
        (folder / STAMP).write_text(digest + "\n", encoding="utf-8")
        _say(f"{folder.name} is ready after {time.monotonic() - started:.0f} s")
    return True


def environment_digest(repository: Path, folder: Path) -> str:
    """SHA-256 over what determines the environment: the lock files' content and the folder's absolute path.

    The folder counts because the programs in an environment carry its absolute path: a moved one must be made again.
    Raises ConfigError for an unreadable or malformed lock file.
    """
    whole = hashlib.sha256(f"{folder.resolve()}\n".encode())
    for name in LOCKS:
        read_lock(repository / name)
        whole.update(f"{name}\n".encode() + (repository / name).read_bytes())
    return whole.hexdigest()


def is_installed(folder: Path, digest: str) -> bool:
    """Whether `folder` holds a finished environment with this digest whose Python is still there."""
    try:
        stamp = (folder / STAMP).read_text(encoding="utf-8").strip()
    except OSError:
        return False
    return stamp == digest and os.access(_python(folder), os.X_OK)


def check_prerequisites() -> None:
    """Raise InstallationError, one line with the remedy, for the first thing that this machine lacks."""
    if sys.version_info[:2] != (3, 11):
        version = sys.version.split()[0]
        raise InstallationError(f"Python 3.11 is needed, this is {version}: call `make env PYTHON=/path/to/python3.11`")
    if shutil.which("git") is None:
        raise InstallationError("git is needed (results record the revision of the code): install git and try again")
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError as error:
        raise InstallationError(
            f"{sys.executable} has no module {error.name}: install it (on Debian and Ubuntu: python3.11-venv)"
        ) from error


def _install_packages(repository: Path, folder: Path) -> None:
    _pip_install(repository, folder, BUILD_LOCK)
    # The CPU build of PyTorch is taken where this machine's pip offers it. pip must be asked for exactly that build:
    # with hashes given, it would prefer a file whose hash its index lists to one from a plain folder.
    if not _pip_install(repository, folder, CPU_LOCK, optional=True):
        _say("this pip offers no CPU-only PyTorch; the index's build is installed (several GB on Linux)")
    _pip_install(repository, folder, MAIN_LOCK)
    problems = _pip_check(folder)
    gpu_packages = set(read_lock(repository / GPU_LOCK))
    if any(canonical_name(word.strip(",.")) in gpu_packages for problem in problems for word in problem.split()):
        _pip_install(repository, folder, GPU_LOCK)
        problems = _pip_check(folder)
    if problems:
        raise InstallationError(f"the lock files do not fit together: {problems[0]}")


def _pip_install(repository: Path, folder: Path, lock: str, optional: bool = False) -> bool:
    """Install what `lock` names; for an `optional` lock whose package pip does not offer, return False instead."""
    packages = len(read_lock(repository / lock))
    _say(f"installing {packages} package{'s' if packages != 1 else ''} from {lock}")
    command = [_python(folder), "-m", "pip", "install", "--disable-pip-version-check", *PIP_OPTIONS]
    errors = _run_logged([*command, "--requirement", str(repository / lock)], folder / LOG)
    if optional and any("No matching distribution found" in error for error in errors):
        return False
    if errors:
        raise InstallationError(f"{lock}: pip failed: {errors[-1]} (the whole log is in {folder / LOG})")
    return True


def _run_logged(command: list[str], log: Path) -> list[str]:
    """Run pip, append its output to `log`, and return its error lines; no lines mean success."""
    collected = 0
    errors: list[str] = []
    line = ""
    with (
        log.open("a", encoding="utf-8") as handle,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace") as pip,
    ):
        for line in pip.stdout or ():
            handle.write(line)
            if line.startswith("ERROR: "):
                errors.append(line.removeprefix("ERROR: ").strip())
            elif line.startswith(("Collecting ", "Installing collected")):
                collected += line.startswith("Collecting ")
                _show(f"  {collected}: {line.split(' (from')[0].split(':')[0].strip()}")
    _show("")
    if pip.returncode != 0 and not errors:
        errors.append(f"exit status {pip.returncode}: {line.strip()}")
    return errors if pip.returncode != 0 else []


def _pip_check(folder: Path) -> list[str]:
    """pip's complaints about missing or unfitting packages, one line each."""
    outcome = subprocess.run([_python(folder), "-m", "pip", "check"], capture_output=True, text=True, check=False)
    return outcome.stdout.splitlines() if outcome.returncode != 0 else []


def _run(command: list[str], what: str) -> None:
    outcome = subprocess.run(command, capture_output=True, text=True, check=False)
    if outcome.returncode != 0:
        raise InstallationError(f"{what} failed: {' '.join((outcome.stderr or outcome.stdout).split())}")


def _remove(folder: Path) -> None:
    if not folder.exists():
        return
    half_made = folder.is_dir() and {path.name for path in folder.iterdir()} <= OWN_ENTRIES
    if not half_made and not (folder / "pyvenv.cfg").is_file():
        raise InstallationError(f"{folder}: is there already and is no virtual environment: move it away")
    shutil.rmtree(folder)


@contextmanager
def _one_at_a_time(repository: Path) -> Iterator[None]:
    """Wait for another installation in the same checkout, then keep others waiting."""
    descriptor = os.open(repository, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _say("another process is making the environment; waiting for it")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _base_python() -> str:
    """This Python, or the one behind it where it belongs to an environment: that may be the one to be removed."""
    return sys.executable if sys.prefix == sys.base_prefix else str(Path(sys.executable).resolve())


def _python(folder: Path) -> str:
    return str(folder / "bin" / "python")


def _say(text: str) -> None:
    print(f"environment: {text}", flush=True)


def _show(text: str) -> None:
    """Show a passing detail on a terminal, where the next one overwrites it."""
    if sys.stdout.isatty():
        print(f"\r\033[K{text[:100]}", end="", flush=True)
