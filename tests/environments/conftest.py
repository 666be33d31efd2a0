"""A checkout of the set-up files, without installed packages."""

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Checkout:
    """A copy of the set-up files."""

    folder: Path

    def make(self, *arguments: str, **surroundings: str) -> subprocess.CompletedProcess[str]:
        """Run make in this checkout."""
        if shutil.which("make") is None:
            pytest.skip("make is not installed")
        command = [shutil.which("make") or "make", "--no-print-directory", *arguments]
        kept = {
            name: value
            for name, value in os.environ.items()
            if name != "PYTHON" and not name.startswith(("VIRTUAL_ENV", "MAKE"))
        }
        return subprocess.run(
            command, cwd=self.folder, env={**kept, **surroundings}, capture_output=True, text=True, timeout=120
        )


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A checkout in a path with spaces."""
    folder = tmp_path_factory.mktemp("copy") / "a checkout with spaces"
    library = folder / "scripts" / "hatchery"
    library.mkdir(parents=True)
    # Commands import these files before anything is installed; the rest of the library needs packages.
    for path in (REPOSITORY / "scripts" / "hatchery").glob("*.py"):
        shutil.copy(path, library)
    for pattern in ("artifacts/*.py", "training/__init__.py", "training/inputs.py", "training/run_folder.py"):
        for path in (REPOSITORY / "scripts" / "hatchery").glob(pattern):
            (library / path.parent.name).mkdir(exist_ok=True)
            shutil.copy(path, library / path.parent.name)
    for name in ("install_environment.sh", "clean_leftovers.py"):
        shutil.copy(REPOSITORY / "scripts" / name, folder / "scripts")
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(REPOSITORY / name, folder)
    return Checkout(folder)
