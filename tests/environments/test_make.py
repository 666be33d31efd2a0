"""`make env` reports in one line what a machine lacks; cleaning removes only the requested files."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hatchery.artifacts.checksums import digest
from hatchery.stage import reserved_names

CAPTURED = {"capture_output": True, "text": True, "check": False}
TOOLS = ("sh", "sed", "awk", "env", "nproc")


def tools(folder: Path, **programs: str) -> str:
    """Return a PATH with only the basic tools and the given programs."""
    for name in TOOLS:
        if found := shutil.which(name):
            (folder / name).symlink_to(found)
    for name, text in programs.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    return str(folder)


def single_error(outcome) -> str:
    assert outcome.returncode != 0
    lines = [line for line in outcome.stderr.splitlines() if not line.startswith("make")]
    assert len(lines) == 1, outcome.stderr
    return lines[0]


THIS_PYTHON = f'#!/bin/sh\nexec "{Path(sys.executable).resolve()}" "$@"\n'
NO_PYTHON = "error: Python 3.11 to 3.14 is missing: install Python.*or uv.*make env PYTHON=/path/to/python3.14"
BROKEN = '#!/bin/sh\necho "pyenv: python3.11: command not found" >&2\nexit 127\n'


@pytest.mark.parametrize(
    ("programs", "words", "message"),
    [
        ({}, (), NO_PYTHON),
        # One Python has another version, and the other is broken.
        ({"python3": "#!/bin/sh\nexit 1\n", "python3.11": BROKEN}, (), NO_PYTHON),
        ({"python3.11": THIS_PYTHON}, ("PYTHON=python9",), "error: PYTHON=python9 is not Python 3.11 to 3.14$"),
        ({"python3": THIS_PYTHON}, (), "error: git is missing.*install git"),
    ],
)
def test_what_a_machine_lacks_is_told(
    programs: dict[str, str], words: tuple[str, ...], message: str, bare, tmp_path: Path
) -> None:
    assert re.match(message, single_error(bare.make("env", *words, PATH=tools(tmp_path, **programs))))


def without_ensurepip(folder: Path) -> str:
    """Return a script that starts this Python without ensurepip, like Debian's without python3-venv."""
    (folder / "modules").mkdir()
    (folder / "modules" / "ensurepip.py").write_text("raise ImportError('left out', name='ensurepip')\n")
    return f'#!/bin/sh\nPYTHONPATH="{folder / "modules"}" exec "{Path(sys.executable).resolve()}" "$@"\n'


def test_a_python_without_the_venv_module_is_told(bare, tmp_path: Path) -> None:
    programs = {"python3.12": without_ensurepip(tmp_path), "git": "#!/bin/sh\n"}
    (tmp_path / "bin").mkdir()
    message = single_error(bare.make("env", PATH=tools(tmp_path / "bin", **programs)))
    assert "python3.12 has no module ensurepip: install this module (on Debian and Ubuntu: python3.12-venv)" in message


STOPS = '#!/bin/sh\necho {} "$@" >&2\nexit 3\n'
PRETENDS = """#!/bin/sh
case $* in
  -V) ;;
  *ensurepip*) echo "$0"; exit {ensurepip} ;;
  *import*) echo "$0" ;;
  *) echo {name} "$@" >&2; exit 3 ;;
esac
"""


def test_the_newest_python_that_can_make_environments_is_taken_and_uv_where_none_can(bare, tmp_path: Path) -> None:
    def made(**programs: str) -> str:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        path = tools(folder, git="#!/bin/sh\n", rm="#!/bin/sh\n", **programs)
        return bare.make("env", PATH=path).stderr.splitlines()[0]

    able = {name: PRETENDS.format(ensurepip=0, name=name) for name in ("python3.11", "python3.12", "python3.13")}
    unable = PRETENDS.format(ensurepip=1, name="python3.14")
    uv = STOPS.format("uv")
    assert made(**able, uv=uv) == "python3.13 -m venv .venv"
    assert made(**{**able, "python3.14": unable}) == "python3.13 -m venv .venv"
    assert re.fullmatch(r"uv venv .* --seed --python \S*python3.14 .venv", made(**{"python3.14": unable}, uv=uv))
    assert re.fullmatch(r"uv venv .* --seed --python 3.14 .venv", made(uv=uv))


def test_make_alone_lists_every_target_for_people(bare) -> None:
    outcome = bare.make()
    targets = {line.split()[1] for line in (bare.folder / "Makefile").read_text().splitlines() if ".PHONY" in line}
    listed = {line.split()[0] for line in outcome.stdout.splitlines()[1:]}
    assert outcome.returncode == 0
    assert listed == targets


def cleaned(folder: Path, name: str) -> subprocess.CompletedProcess[str]:
    script = Path(__file__).parents[2] / "scripts/clean_experiment.py"
    return subprocess.run([sys.executable, str(script), "--", name], cwd=folder, **CAPTURED)


def test_cleaning_refuses_what_is_no_experiment_and_every_reserved_name(tmp_path: Path) -> None:
    for folder in (*reserved_names(), "a/b"):
        (tmp_path / "results" / folder / "kept").mkdir(parents=True, exist_ok=True)
    for name in ("", " ", ".", "..", "../..", "a/b", "Cards", "tokens.", "models", "checkpoints"):
        assert "EXPERIMENT: got " in single_error(cleaned(tmp_path, name))
    assert all((tmp_path / "results" / folder / "kept").exists() for folder in (*reserved_names(), "a/b"))


def test_cleaning_removes_the_folder_of_an_experiment_or_the_link_to_it_and_nothing_else(tmp_path: Path) -> None:
    for folder in ("one/figures", "elsewhere", "cards"):
        (tmp_path / "results" / folder).mkdir(parents=True, exist_ok=True)
    (tmp_path / "results" / "two").symlink_to("elsewhere")
    for name in ("one", "two", "three"):
        assert cleaned(tmp_path, name).returncode == 0
    assert {path.name for path in (tmp_path / "results").iterdir()} == {"elsewhere", "cards"}


def test_what_killed_jobs_left_is_removed_and_a_training_that_can_go_on_is_kept(bare) -> None:
    settings, inputs = {"steps": 10}, {"tokenizer": "bb", "tokens": "aa"}
    results = bare.folder / "results"
    finished, unfinished = (
        results / "checkpoints" / digest({"settings": {"steps": steps}, "inputs": ["aa", "bb"]}) for steps in (10, 20)
    )
    for folder in (finished, unfinished, results / "models/demo-0123"):
        folder.mkdir(parents=True)
        (folder / "model.safetensors").touch()
    (results / "models/demo-0123/manifest.json").write_text(json.dumps({"settings": settings, "inputs": inputs}))
    old, new, download = (
        results / name for name in (".a.txt.1-0123abcd.partial", ".b.txt.1-0123abcd.partial", ".data.zip.partial")
    )
    for path in (old, new, download):
        path.touch()
    os.utime(old, (0, 0))
    outcome = bare.make("clean-leftovers", PATH=os.environ["PATH"])
    assert outcome.returncode == 0, outcome.stderr
    assert not finished.exists() and not old.exists()
    assert unfinished.exists() and new.exists() and download.exists() and (results / "models/demo-0123").exists()
    assert f"kept results/checkpoints/{unfinished.name}: the training is unfinished" in outcome.stdout


def test_folders_in_which_stages_write_for_several_experiments_are_reserved_and_so_are_undeclared_ones() -> None:
    assert {"cards", "models", "minimal_pairs", "checkpoints"} <= reserved_names()
    assert not {"demo", "strict", "experiment"} & reserved_names()


@pytest.mark.slow
def test_a_run_whose_tests_are_all_skipped_fails_and_says_so(repository: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "tests/modeling/test_kernels.py"]
    outcome = subprocess.run(command, cwd=repository, env={**os.environ, "TRITON_INTERPRET": "0"}, **CAPTURED)
    assert outcome.returncode == pytest.ExitCode.NO_TESTS_COLLECTED
    assert "error: every selected test was skipped" in outcome.stdout
    assert "make test-kernels" in outcome.stdout


@pytest.mark.parametrize("home", ["/proc", None])
def test_without_a_home_folder_that_can_be_written_snakemake_has_a_cache_of_its_own(home, repository: Path) -> None:
    surroundings = {name: value for name, value in os.environ.items() if name not in ("HOME", "XDG_CACHE_HOME")}
    surroundings |= {} if home is None else {"HOME": home}
    shown = "shown: ; @printenv XDG_CACHE_HOME"
    command = ["make", "-C", str(repository), "--no-print-directory", "--eval", shown, "shown"]
    done = subprocess.run(command, env=surroundings, **CAPTURED)
    assert (done.stdout, done.stderr) == (f"{repository}/.snakemake/cache\n", "")
