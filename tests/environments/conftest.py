"""A small checkout with tiny packages, so that a whole installation takes seconds and no network."""

import base64
import hashlib
import os
import shutil
import subprocess
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from hatchery.environments import CPU_LOCK, MAIN_LOCK

REPOSITORY = Path(__file__).resolve().parents[2]


def write_wheel(folder: Path, name: str, version: str, requires: tuple[str, ...] = ()) -> str:
    """Write the wheel of a package that holds one module; returns its SHA-256."""
    info = f"{name}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    contents = {
        f"{name}.py": f"VERSION = {version!r}\n",
        f"{info}/METADATA": metadata + "".join(f"Requires-Dist: {requirement}\n" for requirement in requires),
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = [f"{path},sha256={_record_hash(text)},{len(text)}" for path, text in contents.items()]
    contents[f"{info}/RECORD"] = "\n".join([*record, f"{info}/RECORD,,"]) + "\n"
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for member, text in contents.items():
            archive.writestr(member, text)
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _record_hash(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


@dataclass(frozen=True)
class Checkout:
    """A copy of the set-up files with locks of its own, and the folder of wheels that its pip knows."""

    folder: Path
    wheels: Path

    @property
    def environment(self) -> Path:
        return self.folder / ".venv"

    def surroundings(self, **more: str) -> dict[str, str]:
        """The environment variables of a command: pip sees the wheels of this checkout and nothing else."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if name != "PYTHON" and not name.startswith(("PIP_", "VIRTUAL_ENV", "MAKE"))
        }
        return {**kept, "PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(self.wheels), **more}

    def make(self, *arguments: str, **surroundings: str) -> subprocess.CompletedProcess[str]:
        """Run make in this checkout."""
        if shutil.which("make") is None:
            pytest.skip("make is not installed")
        command = [shutil.which("make") or "make", "--no-print-directory", *arguments]
        environment = self.surroundings(**surroundings)
        return subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=120)

    def installed_version(self, package: str) -> str:
        """The version of a package in the environment, empty when it is not there."""
        code = f"import importlib.metadata as m; print(m.version({package!r}))"
        outcome = subprocess.run(
            [self.environment / "bin" / "python", "-c", code], capture_output=True, text=True, check=False
        )
        return outcome.stdout.strip()


@pytest.fixture(scope="session")
def make_checkout(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Checkout]:
    """A function that makes a checkout; `cpu_build` says whether its pip offers the CPU build of PyTorch."""

    def build(cpu_build: bool) -> Checkout:
        wheels = tmp_path_factory.mktemp("wheels")
        folder = tmp_path_factory.mktemp("copy") / "a checkout with spaces"
        library = folder / "scripts" / "hatchery"
        library.mkdir(parents=True)
        # What commands import before anything is installed; the rest of the library needs packages.
        for path in (REPOSITORY / "scripts" / "hatchery").glob("*.py"):
            shutil.copy(path, library)
        for pattern in ("artifacts/*.py", "training/__init__.py", "training/run_folder.py"):
            for path in (REPOSITORY / "scripts" / "hatchery").glob(pattern):
                (library / path.parent.name).mkdir(exist_ok=True)
                shutil.copy(path, library / path.parent.name)
        for name in ("install_environment.sh", "clean_experiment.py", "clean_leftovers.py"):
            shutil.copy(REPOSITORY / "scripts" / name, folder / "scripts")
        shutil.copy(REPOSITORY / "Makefile", folder)
        # They say which folders below results/ are no experiments.
        shutil.copytree(REPOSITORY / "workflow" / "rules", folder / "workflow" / "rules")

        helper = write_wheel(wheels, "helper", "1.0")
        torch = write_wheel(wheels, "torch", "2.0", ("helper", "nvidia-things==3.0"))
        nvidia = write_wheel(wheels, "nvidia_things", "3.0")
        cpu = write_wheel(wheels if cpu_build else folder, "torch", "2.0+cpu", ("helper",))
        packages = [("helper==1.0", helper), ("nvidia-things==3.0", nvidia), ("torch==2.0", torch)]
        for name, entries in ((MAIN_LOCK, packages), (CPU_LOCK, [("torch==2.0+cpu", cpu)])):
            lines = [f"{pin} \\\n    --hash=sha256:{digest}\n    # via x\n" for pin, digest in entries]
            (folder / name).write_text("# For a test.\n" + "".join(lines))
        return Checkout(folder, wheels)

    return build
