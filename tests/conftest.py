"""Fixtures that several test folders share, and the distribution of tests to processes."""

import gc
import os
import pickle
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import hypothesis
import pytest
from forked import share_servers
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

if TYPE_CHECKING:
    from hatchery.raw.registration import RawSource

# This must precede any import of torch. The tests' matrices are tiny: several threads wait for each other far longer
# than they compute, and even longer next to another test process.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# A thread that waits must sleep: a test with two threads takes 30 times as long if waiting threads occupy a busy core.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
# Processes that start later, also those of pytest-xdist, allocate memory in pages of 2 MiB. Tests of models then take 6
# to 9 % less time.
os.environ.setdefault("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1")

# Disable garbage collection until all tests are collected, because imports create many objects and hardly any garbage.
gc.disable()

# Disable deadlines, because correct code is slow on a busy machine. Draw the same examples in every run, so that the
# result only depends on the code. `--hypothesis-profile=random` draws new examples, and twice as many.
hypothesis.settings.register_profile("random", deadline=None, max_examples=100)
hypothesis.settings.register_profile("same", deadline=None, max_examples=50, derandomize=True)
hypothesis.settings.load_profile("same")

REPOSITORY = Path(__file__).resolve().parent.parent
TESTS = REPOSITORY / "tests"
# Folders whose files may run in different processes, and the other folders and files that take longest.
DIVIDED = ("workflow", "training")
LONG = ("test_notebook.py", "benchmarks", "evaluation", "export", "views", "corpora", "modeling", "experiment")


class FolderScheduling(LoadScopeScheduling):
    """Tests of a folder run in one process, because they share session fixtures.

    The folders that take longest share few fixtures between files and subfolders, so each file and subfolder may run in
    any process, and so may each file of a folder that runs alone. Groups of pytest-xdist are marks, which pytest-xdist
    does not see with pytest 9.
    """

    def _split_scope(self, nodeid: str) -> str:
        parts = nodeid.partition("::")[0].split("/")
        runs_alone = self.config.args == ["/".join(parts[:2])]
        return "/".join(parts[: 3 if runs_alone or set(DIVIDED) & set(parts[:2]) else 2])


def pytest_configure() -> None:
    """Let the processes of pytest-xdist, which start later, share fork servers."""
    share_servers()


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> FolderScheduling:
    """Return the scheduler of `pytest -n 2 --dist loadscope`."""
    return FolderScheduling(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort the longest tests first, so that no process is idle at the end; mark tests by their fixtures."""
    for item in items:
        for name in {"real_data", "hub"} & {*getattr(item, "fixturenames", ())}:
            item.add_marker(name)
    places = {name: place for place, name in enumerate((*DIVIDED, *LONG))}
    items.sort(key=lambda item: places.get(item.path.relative_to(TESTS).parts[0], len(places)))


def pytest_collection_finish() -> None:
    """Freeze all modules and tests, which stay loaded, so that the garbage collector does not scan them repeatedly."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """End with a failing status if every selected test was skipped, so that no target succeeds without a test."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    outcomes = set() if reporter is None else reporter.stats.keys() - {"", "deselected", "warnings"}
    if outcomes == {"skipped"}:
        reporter.write_line("")
        reporter.write_line("error: every selected test was skipped; the reasons below say what is missing", red=True)
        session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED


@pytest.fixture(scope="session", autouse=True)
def _unsynced() -> Iterator[None]:
    """Disable fsync: tests kill processes, but the machine does not lose its power."""
    with mock.patch.object(os, "fsync", lambda descriptor: None):
        yield


@pytest.fixture(scope="session", autouse=True)
def _parsed_once() -> Iterator[None]:
    """Parse each YAML text once: hundreds of tests read the shipped configuration."""
    from hatchery.artifacts import yaml_files

    values: dict[str, bytes] = {}
    parse = yaml_files._loaded

    def loaded(text: str) -> Any:
        if text not in values:
            values[text] = pickle.dumps(parse(text))
        return pickle.loads(values[text])

    with mock.patch.object(yaml_files, "_loaded", loaded):
        yield


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of this checkout."""
    return REPOSITORY


@pytest.fixture(scope="session")
def golden_directory() -> Path:
    """Outputs of the authors' code on invented inputs, and numbers printed in the papers; see its README."""
    return TESTS / "golden"


@pytest.fixture(scope="session")
def real_data() -> Path:
    """Public corpora and benchmarks next to the checkout; tests with this fixture are marked `real_data`."""
    folder = REPOSITORY.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("needs public corpora in ../shared/data, which are not passed on with the repository")
    return folder


@pytest.fixture
def configuration(tmp_path: Path, repository: Path) -> Path:
    """A copy of the shipped configuration in its own folder, which a test may change."""
    folder = tmp_path / "config"
    shutil.copytree(repository / "config", folder, copy_function=shutil.copyfile)
    return folder


@pytest.fixture
def folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the test in an empty folder."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def make_source(tmp_path: Path) -> Callable[[dict[str, bytes | str]], "RawSource"]:
    """Write files into a folder, register it and open it."""
    from hatchery.raw.registration import open_source, register_source

    def make(files: dict[str, bytes | str]) -> "RawSource":
        root = tmp_path / "raw"
        for name, content in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
        register_source("raw", root, tmp_path / "source.json")
        return open_source(tmp_path / "source.json")

    return make


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one megabyte."""
    folder = tmp_path / "small_disk"
    folder.mkdir()
    mount = shutil.which("mount")
    command = [str(mount), "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    if mount is None or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("needs the right to mount a small file system")
    yield folder
    # Unmount lazily, because a worker that was just killed may still have its file open.
    subprocess.run(["umount", "--lazy", str(folder)], check=True)
