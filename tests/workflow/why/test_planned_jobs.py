"""What Snakemake would run is read as its own objects, with its reasons."""

import json
from pathlib import Path

import pytest
from projects import snakemake

from hatchery.errors import PlanError
from hatchery.workflow.planned_jobs import planned_jobs
from hatchery.workflow.reasons import setting_changes

SNAKEFILE = """
import json
from pathlib import Path

rule join:
    input: "results/one.txt", "results/two.txt"
    output: "results/joined.txt"
    shell: "cat {input} > {output}"

rule part:
    output: "results/{part}.txt"
    params: settings=lambda wildcards: Path("settings.json").read_text()
    shell: "touch {output}"
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A small workflow whose result is made."""
    (tmp_path / "Snakefile").write_text(SNAKEFILE, encoding="utf-8")
    write_settings(tmp_path, 12)
    result = snakemake(tmp_path, "--cores", "1", "join")
    assert result.returncode == 0, result.stderr
    return tmp_path


def write_settings(project: Path, steps: int) -> None:
    settings = {"stage": "part", "steps": steps, "text": "it's; now: or never"}
    (project / "settings.json").write_text(json.dumps(settings, separators=(",", ":"), sort_keys=True), "utf-8")


def test_nothing_is_planned_when_all_is_made(project: Path) -> None:
    assert planned_jobs(["join"], project) == []


def test_the_settings_that_snakemake_remembers_are_compared_and_what_follows_is_planned_after_it(
    project: Path, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_settings(project, 60)
    one, two, join = planned_jobs(["join"], project)
    assert [one.wildcards, two.wildcards, join.wildcards] == [{"part": "one"}, {"part": "two"}, {}]
    assert join.reason.updated_input_run == {"results/one.txt", "results/two.txt"}
    monkeypatch.chdir(project)
    changes = setting_changes(one, None, project)  # type: ignore[arg-type]
    assert [str(change) for change in changes] == ["steps: 12 -> 60"]


def test_lost_outputs_are_told_apart_from_what_is_made_after_them(project: Path) -> None:
    for name in ("two", "joined"):
        (project / f"results/{name}.txt").unlink()
    two, join = planned_jobs(["join"], project)
    assert (two.outputs, two.reason.missing_output) == (("results/two.txt",), {"results/two.txt"})
    assert join.reason.missing_output == {"results/joined.txt"}
    assert join.reason.updated_input_run == {"results/two.txt"}


def test_what_snakemake_cannot_plan_is_one_line(project: Path) -> None:
    with pytest.raises(PlanError, match=r"^snakemake --dry-run -- nothing: [^\n]+$"):
        planned_jobs(["nothing"], project)
