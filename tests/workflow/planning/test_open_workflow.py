"""Start and end of a call: its configuration, Slurm's commands, and the tables that it prints."""

import io
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hatchery.artifacts.checksums import write_checksums
from hatchery.errors import ConfigError
from hatchery.experiment.shipped import COPY
from hatchery.settings.problems import Problems
from hatchery.workflow import open_workflow
from hatchery.workflow.open_workflow import (
    COPIES,
    VARIABLE,
    Request,
    check_request,
    frozen_configuration,
    list_missing_data,
    require_slurm,
    show_results,
    show_summaries,
)


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


def test_published_values_and_shipped_settings_are_in_the_copy_and_a_dry_run_has_none(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shipped = tmp_path / "of_hatchery"
    shipped.mkdir()
    (shipped / "config.yaml").write_text("b: 3\n", encoding="utf-8")
    (folder / "published.csv").write_text("task,value\n", encoding="utf-8")
    (folder / "notes.txt").write_text("mine\n", encoding="utf-8")
    monkeypatch.setattr(open_workflow, "shipped_for", lambda folder: shipped)
    assert frozen_configuration("config", is_main_process=True, may_write=False) == Path("config")
    assert not COPIES.exists() and os.environ[VARIABLE] == ""
    frozen_configuration("config", is_main_process=True)
    copy = Path(os.environ[VARIABLE])
    own = ["config.yaml", "experiments/one.yaml", "published.csv"]
    names = sorted(path.relative_to(copy).as_posix() for path in copy.rglob("*") if path.is_file())
    assert names == sorted([*own, f"{COPY}/config.yaml"])
    # A copy that a job reads already contains the shipped settings.
    monkeypatch.setattr(open_workflow, "shipped_for", lambda folder: copy / COPY)
    frozen_configuration("config", is_main_process=True)
    again = Path(os.environ[VARIABLE])
    assert sorted(path.relative_to(again).as_posix() for path in again.rglob("*") if path.is_file()) == own


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


def test_the_end_of_a_call_shows_a_study_instead_of_its_experiments_and_what_is_not_finished_is_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("part", "alone", "both", "corpus"):
        (tmp_path / "results" / name).mkdir(parents=True)
        summary(tmp_path / "results" / name / "summary.txt", f"summary of {name}\n")
    checked = [("study", "both"), ("experiment", "part"), ("experiment", "unfinished"), ("experiment", "alone")]
    project: Any = SimpleNamespace(checked=[*checked, ("corpus", "corpus")], members=lambda study: ["part"])
    show_results(project)
    assert capsys.readouterr().err == "\nsummary of alone\n\nsummary of both\n"


@pytest.mark.parametrize(
    ("request_", "is_module", "targets", "notes"),
    [
        (Request((), "local", False), False, ["results/demo/index.html"], ["untrained", "preferred", "data"]),
        (
            Request(("all", "results/a/summary.csv"), "slurm", True, retries=3),
            False,
            ["results/a/summary.csv", "results/demo/index.html"],
            ["untrained", "preferred", "data", "endless with 3 retries"],
        ),
        # A module checks only the targets that its rules make, and has no pages of its own.
        (
            Request(("results/a/summary.csv", "other/x"), "local", True),
            True,
            ["results/a/summary.csv"],
            ["untrained", "preferred", "data"],
        ),
        (Request((), "local", False), True, [], ["untrained", "preferred", "data"]),
    ],
)
def test_a_request_is_checked_with_the_default_pages_and_its_notes_are_printed(
    request_: Request,
    is_module: bool,
    targets: list[str],
    notes: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    seen: dict[str, Any] = {}

    def check_targets(given: Any, patterns: Any, names: Any, made: Any, project: Any) -> Any:
        seen.update(targets=given, patterns=patterns)
        return [("experiment", "demo"), ("study", "both"), ("corpus", "text")], Problems()

    members = {"demo": ["demo"], "both": ["demo", "other"]}
    for name, replaced in {
        "read_request": lambda argv: request_,
        "require_slurm": lambda executor, dry_run: None,
        "check_targets": check_targets,
        "collect_problems": lambda project, asked, problems, own: ["data"],
        "is_own_environment": lambda settings: True,
        "watch_stale_results": lambda workflow, dry_run: seen.update(watched=dry_run),
        "unlearned_warnings": lambda parts, project: seen.update(parts=parts) or ["untrained"],
        "preference_warnings": lambda parts, project: ["preferred"],
        "endless_trainings": lambda parts, resources, retries: [f"endless with {retries} retries"],
    }.items():
        monkeypatch.setattr(open_workflow, name, replaced)
    monkeypatch.setattr(open_workflow.atexit, "register", lambda function, *rest: seen.setdefault("at exit", function))
    outputs = ["results/{experiment,\\w+}/summary.csv", "results/{kind}/{model}/manifest.json"]
    rule = SimpleNamespace(name="any", output=outputs, is_producer=lambda target: target.startswith("results/"))
    workflow = SimpleNamespace(
        is_main_process=True,
        rules=[rule],
        is_rule=lambda target: target == "all",
        modifier=SimpleNamespace(is_main_snakefile=lambda: not is_module),
        deployment_settings=None,
    )
    rules: Any = SimpleNamespace(
        default_pages=lambda: ["results/demo/index.html"],
        project=SimpleNamespace(members=members.__getitem__),
        resources=None,
    )
    check_request(rules, workflow)
    assert (seen["targets"], seen["parts"], seen["watched"]) == (targets, ["demo", "other"], request_.dry_run)
    # Of results that experiments share, each kind has a pattern.
    assert {"results/{experiment}/summary.csv", "results/finetuning/{model}/manifest.json"} <= set(seen["patterns"])
    # Missing raw data are listed at the end of a dry run, and at no other time.
    assert seen.get("at exit") == (list_missing_data if request_.dry_run else None)
    assert capsys.readouterr().err == "".join(f"note: {note}\n" for note in notes)
