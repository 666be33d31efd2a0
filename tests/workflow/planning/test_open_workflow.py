"""Start and end of a call: its configuration, Slurm's commands, and the tables that it prints."""

import io
import os
from pathlib import Path

import pytest

from hatchery.artifacts.checksums import write_checksums
from hatchery.errors import ConfigError
from hatchery.workflow.open_workflow import COPIES, VARIABLE, frozen_configuration, require_slurm, show_summaries


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A configuration of two files in the current folder."""
    monkeypatch.chdir(tmp_path)
    # Set the variable first, so that monkeypatch restores it after the main process has set it.
    monkeypatch.setenv(VARIABLE, "")
    for name, text in (("config.yaml", "a: 1\n"), ("experiments/one.yaml", "steps: 12\n")):
        path = tmp_path / "config" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path / "config"


def test_a_job_reads_what_the_main_process_read(folder: Path) -> None:
    assert frozen_configuration("config", is_main_process=True) == Path("config")
    (folder / "experiments/one.yaml").write_text("steps: 6\n", encoding="utf-8")
    (folder / "config.yaml").unlink()
    of_job = frozen_configuration("config", is_main_process=False)
    assert (of_job / "experiments/one.yaml").read_text(encoding="utf-8") == "steps: 12\n"
    assert (of_job / "config.yaml").read_text(encoding="utf-8") == "a: 1\n"
    assert of_job.is_absolute(), "a job may start in another folder"


def test_the_same_configuration_has_one_copy_and_another_one_its_own(folder: Path) -> None:
    frozen_configuration("config", is_main_process=True)
    first = os.environ[VARIABLE]
    frozen_configuration("config", is_main_process=True)
    assert os.environ[VARIABLE] == first
    (folder / "config.yaml").write_text("a: 2\n", encoding="utf-8")
    # A main process ignores the copy that a surrounding job uses.
    assert frozen_configuration("config", is_main_process=True) == Path("config")
    assert os.environ[VARIABLE] != first
    assert len(list(COPIES.iterdir())) == 2


def test_a_copy_of_a_main_process_that_was_killed_is_not_taken_for_whole() -> None:
    frozen_configuration("config", is_main_process=True)
    name = Path(os.environ[VARIABLE]).name
    whole = COPIES / name
    whole.rename(COPIES / f"{name}.1.partial")
    (COPIES / f"{name}.1.partial/config.yaml").unlink()
    frozen_configuration("config", is_main_process=True)
    assert (Path(os.environ[VARIABLE]) / "config.yaml").is_file()


def test_a_job_refuses_a_copy_that_was_altered_and_the_next_call_writes_it_anew() -> None:
    frozen_configuration("config", is_main_process=True)
    copy = Path(os.environ[VARIABLE])
    (copy / "experiments/one.yaml").write_text("steps: 120\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=f"{copy}: the configuration of this job was altered: expected the SHA-256"):
        frozen_configuration("config", is_main_process=False)
    frozen_configuration("config", is_main_process=True)
    assert frozen_configuration("config", is_main_process=False) == copy
    assert (copy / "experiments/one.yaml").read_text(encoding="utf-8") == "steps: 12\n"


@pytest.mark.parametrize("told", ["", "no/such/folder"])
def test_a_job_that_was_told_nothing_reads_what_lies_there(told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, told)
    assert frozen_configuration("config", is_main_process=False) == Path("config")


def test_only_sending_jobs_needs_slurm_and_where_it_is_missing_that_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match="this machine has no sbatch and no squeue") as caught:
        require_slurm("slurm", dry_run=False)
    assert "\n" not in str(caught.value)
    require_slurm("slurm", dry_run=True)
    require_slurm("local", dry_run=False)
    for command in ("sbatch", "squeue"):
        (tmp_path / command).touch(mode=0o755)
    require_slurm("slurm", dry_run=False)


def summary(path: Path, text: str) -> None:
    """Write a summary and its checksum."""
    path.write_text(text, encoding="utf-8")
    write_checksums([path])


def test_summaries_are_printed_in_the_given_order_and_one_that_is_missing_or_altered_stops_no_other(
    tmp_path: Path,
) -> None:
    for name in ("b", "a", "altered"):
        summary(tmp_path / name, f"summary of {name}\n")
    stream = io.StringIO()
    show_summaries([tmp_path / "b", tmp_path / "a"], stream)
    assert stream.getvalue() == "\nsummary of b\n\nsummary of a\n"
    (tmp_path / "altered").write_text("score 91.0\n", encoding="utf-8")
    stream = io.StringIO()
    show_summaries([tmp_path / "gone", tmp_path / "altered", tmp_path / "a"], stream)
    assert stream.getvalue().count("no summary to show") == 2
    assert "SHA-256" in stream.getvalue() and "91.0" not in stream.getvalue()
    assert stream.getvalue().endswith("summary of a\n")
    summary(tmp_path / "a", "\x1b[2Jzażółć\n")
    buffer = io.BytesIO()
    terminal = io.TextIOWrapper(buffer, encoding="ascii")
    show_summaries([tmp_path / "a"], terminal)
    assert buffer.getvalue() == b"\n?[2Jza????\n", "characters that the terminal lacks, or that would steer it"
