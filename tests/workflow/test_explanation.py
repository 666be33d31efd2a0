"""Reasons and costs of planned jobs: from Snakemake's plan, from manifests, and as `make why` prints them."""

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import forked
import pytest
from projects import changed, make_project, snakemake
from snakemake.jobs import Reason
from snakemake.persistence import ParamsChange

from hatchery.artifacts.atomic import write_json, write_text
from hatchery.artifacts.links import put_link
from hatchery.artifacts.manifests import stage_run
from hatchery.errors import PlanError
from hatchery.experiment.project import Project
from hatchery.raw.listings import kept_listing, listing_of
from hatchery.units import rough_duration
from hatchery.workflow.explanation import by_rule, planned_cost_text, planned_costs, reasons_text, setting_changes
from hatchery.workflow.jobs import Jobs
from hatchery.workflow.outputs import readable_path
from hatchery.workflow.planned_jobs import PlannedJob, planned_jobs

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
    """A small workflow whose result exists."""
    (tmp_path / "Snakefile").write_text(SNAKEFILE, encoding="utf-8")
    write_settings(tmp_path, 12)
    result = snakemake(tmp_path, "--cores", "1", "join")
    assert result.returncode == 0, result.stderr
    return tmp_path


def write_settings(project: Path, steps: int) -> None:
    settings = {"stage": "part", "steps": steps, "text": "it's; now: or never"}
    (project / "settings.json").write_text(json.dumps(settings, separators=(",", ":"), sort_keys=True), "utf-8")


def test_nothing_is_planned_when_all_is_made_else_what_changed_and_what_follows(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert planned_jobs(["join"], project) == []
    write_settings(project, 60)
    one, two, join = planned_jobs(["join"], project)
    assert [one.wildcards, two.wildcards, join.wildcards] == [{"part": "one"}, {"part": "two"}, {}]
    assert join.reason.updated_input_run == {"results/one.txt", "results/two.txt"}
    monkeypatch.chdir(project)
    changes = setting_changes(one, None, project)  # type: ignore[arg-type]
    assert [str(change) for change in changes] == ["steps: 12 -> 60"]
    # A profile without the trigger `params` ignores changed settings.
    write_text(project / "profiles" / "default" / "config.yaml", "rerun-triggers: [mtime, input]\n")
    assert planned_jobs(["join"], project) == []


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


RUNS = ("random-s42", "ltg_bert-s42", "elc_bert-s42")


def reason(**found: Any) -> Reason:
    """Return a reason of Snakemake's with the given findings."""
    made = Reason()
    for name, value in found.items():
        setattr(made, f"_{name}" if isinstance(value, set) else name, value)
    return made


MISSING = reason(missing_output={"it"})


def job_of(jobs: Jobs, rule: str, place: str, why: Reason) -> PlannedJob:
    """Return the job that makes a result of the experiment `demo`."""
    output = jobs.storage_path(readable_path("demo", *place.split("/", 1)))
    addresses = output.split("/")[2:-1]
    return PlannedJob(rule, (output,), dict(zip(("model", "address"), addresses, strict=False)), why)


def pretrain(jobs: Jobs, run: str, why: Reason) -> PlannedJob:
    return job_of(jobs, "pretrain", f"pretraining/{run}", why)


def finetune(jobs: Jobs, run: str, task: str) -> PlannedJob:
    return job_of(jobs, "finetune", f"finetuning/{run}/{task}", MISSING)


def finished(folder: Path, job: PlannedJob, jobs: Jobs, **changes: Any) -> None:
    """Write the job's manifest as of an earlier run, whose settings were the present settings with `changes`."""
    settings = json.loads(jobs.call_at(job.wildcards.get("address", job.wildcards["model"])).settings)
    with stage_run(folder / job.outputs[0], {**settings, **changes}):
        pass


def test_a_changed_setting_is_told_from_the_manifest_even_where_snakemake_names_only_the_stage_before(
    tmp_path: Path, jobs: Jobs
) -> None:
    upstream = reason(updated_input_run={"results/tokens/demo/demo/manifest.json"})
    planned = [pretrain(jobs, run, upstream) for run in RUNS]
    finished(tmp_path, planned[0], jobs)
    finished(tmp_path, planned[1], jobs, batch_size=1, stage_version=0)
    finished(tmp_path, planned[2], jobs, batch_size=1)
    encode = PlannedJob("encode_corpus", ("results/tokens/demo/demo/manifest.json",), {}, MISSING)
    entries = by_rule([encode, *planned], jobs, tmp_path)
    assert [(entry.rule, entry.jobs) for entry in entries] == [("encode_corpus", 1), ("pretrain", 3)]
    present = json.loads(jobs.settings("pretrain", experiment="demo", run=RUNS[1]))
    version, batch_size = present["stage_version"], present["batch_size"]
    assert {cause.text: count for cause, count in entries[1].causes} == {
        f"stage version: 0 -> {version}": 1,
        f"batch_size: 1 -> {batch_size}": 2,
        "after encode_corpus": 3,
    }
    lines = reasons_text(entries).splitlines()
    assert lines[0].split() == ["encode_corpus", "1", "job", "its", "output", "is", "missing"]
    assert f"batch_size: 1 -> {batch_size} (2 of 3)" in lines[1]
    assert lines[1].endswith("after encode_corpus")


def test_inputs_of_many_models_are_one_reason(tmp_path: Path, jobs: Jobs) -> None:
    planned = [
        job_of(
            jobs,
            "measure_perplexity",
            f"perplexity/{run}",
            reason(updated_input={jobs.storage_path(readable_path("demo", "pretraining", run))}),
        )
        for run in RUNS
    ]
    (entry,) = by_rule(planned, jobs, tmp_path)
    assert reasons_text([entry]) == ("measure_perplexity  3 jobs  changed input results/models/<model>/manifest.json\n")


def test_a_change_that_is_no_setting_is_still_a_reason(tmp_path: Path, jobs: Jobs) -> None:
    changed = {"code_changed": True, "software_stack_changed": True, "input_changed": True, "forced": True}
    changed |= {"params_changed": ParamsChange({"'a'"}, {"'b'"}), "incomplete_output": {"it"}}
    job = pretrain(jobs, RUNS[0], reason(**changed))
    finished(tmp_path, job, jobs)
    (entry,) = by_rule([job], jobs, tmp_path)
    assert [cause.text for cause, _ in entry.causes] == [
        "its arguments changed",
        "its rule's command in workflow/ changed",
        "its conda environment changed",
        "its list of input files changed",
        "an interrupted run left its output unfinished",
        "forced",
    ]


def test_of_many_changed_files_and_settings_the_first_are_shown_and_all_in_full(tmp_path: Path, jobs: Jobs) -> None:
    files = [f"results/{name}.json" for name in "abcde"]
    job = pretrain(jobs, RUNS[0], reason(updated_input=set(files), forced=True))
    finished(tmp_path, job, jobs)
    (entry,) = by_rule([job], jobs, tmp_path)
    shown = "; ".join(f"changed input {name}" for name in files[:3])
    assert reasons_text([entry]) == f"pretrain  1 job  {shown}; forced; and 2 more (--full lists them)\n"
    shown = "; ".join(f"changed input {name}" for name in files)
    assert reasons_text([entry], full=True) == f"pretrain  1 job  {shown}; forced\n"
    settings = {f"key_{number}": number for number in range(9)}
    finished(tmp_path, job, jobs, **settings)
    (entry,) = by_rule([job], jobs, tmp_path)
    limited = reasons_text([entry])
    assert "key_7: 7 -> " in limited and "key_8" not in limited and "forced; and 3 more (--full lists them)" in limited
    assert "key_8: 8 -> " in reasons_text([entry], full=True)


def test_edited_and_removed_files_of_the_user_are_named(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.txt", "b.txt", "c.txt"):
        write_text(tmp_path / "letters" / name, name)
    project = Project(repository / "config", {"data": {"my_text": {"path": str(tmp_path / "letters")}}})
    listing = {name: [*found] for name, found in listing_of(tmp_path / "letters").items()}
    write_json(kept_listing("resources/sources/my_text.json"), listing)
    write_text(tmp_path / "letters" / "b.txt", "edited")
    (tmp_path / "letters" / "c.txt").unlink()
    job = PlannedJob(
        "register_source",
        ("resources/sources/my_text.json",),
        {"source": "my_text"},
        reason(params_changed=ParamsChange({"'a'"}, {"'b'"})),
    )
    (entry,) = by_rule([job], Jobs(project), tmp_path)
    assert [cause.text for cause, _ in entry.causes] == [
        f"{what} {tmp_path / 'letters' / name}" for what, name in (("edited", "b.txt"), ("removed", "c.txt"))
    ]


def test_a_new_address_is_explained_by_the_settings_that_the_experiments_link_leads_to(
    tmp_path: Path, jobs: Jobs
) -> None:
    job = pretrain(jobs, RUNS[0], MISSING)
    before = replace(job, outputs=("results/models/demo-0123456789abcdef/manifest.json",))
    finished(tmp_path, before, jobs, seed=1)
    put_link(tmp_path / f"results/demo/pretraining/{RUNS[0]}", tmp_path / "results/models/demo-0123456789abcdef")
    (entry,) = by_rule([job], jobs, tmp_path)
    assert [cause.text for cause, _ in entry.causes] == ["seed: 1 -> 42"]


def test_the_cost_is_that_of_the_runs_that_would_be_pretrained(jobs: Jobs) -> None:
    all_runs = planned_costs([pretrain(jobs, run, Reason()) for run in RUNS], jobs)
    # The random model has no steps.
    assert [one.cost.training_flops > 0 for one in all_runs] == [False, True, True]
    assert planned_costs([finetune(jobs, RUNS[1], "demo_entailment")], jobs) == []
    found = planned_costs([finetune(jobs, RUNS[2], "demo_entailment"), pretrain(jobs, RUNS[1], Reason())], jobs)
    assert found == [all_runs[1]] and found[0].cost.run == RUNS[1]
    alone, both = planned_cost_text(found, jobs).splitlines(), planned_cost_text(all_runs, jobs).splitlines()
    assert [line.split("|")[1].strip() for line in alone[2:4]] == [f"demo/{RUNS[1]}", "all, one after another"]
    assert alone[2].split("|")[2:] == alone[3].split("|")[2:]
    seconds = sum(one.cost.wall_seconds for one in all_runs)
    assert rough_duration(seconds) in both[5]


CORPUS = "results/corpora/tiny/manifest.json"


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Path:
    """The tiny project with its corpus and no later results."""
    folder = make_project(tmp_path_factory.mktemp("explain") / "project", repository)
    result = snakemake(folder, "--cores", "2", CORPUS)
    assert result.returncode == 0, (result.stdout + result.stderr)[-4000:]
    return folder


def explain(tiny: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "scripts/explain.py", *arguments]
    return forked.run(command, cwd=tiny, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_make_why_prints_what_would_run_why_and_what_it_would_cost(tiny: Path) -> None:
    result = explain(tiny, CORPUS)
    assert (result.returncode, result.stdout, result.stderr) == (
        0,
        "no job would run: all requested results are up to date\n",
        "",
    )
    with changed(tiny / "config/corpora/tiny.yaml", "development_fraction: 0.2", "development_fraction: 0.3"):
        result = explain(tiny, CORPUS)
    assert (result.returncode, result.stdout) == (
        0,
        "convert_corpus  1 job  split.development_fraction: 0.2 -> 0.3\n\nNo model would be pretrained.\n",
    )
    result = explain(tiny, "results/tiny/summary.csv")
    assert result.returncode == 0, result.stderr
    lines = {line.split()[0]: line for line in result.stdout.splitlines() if line}
    assert "convert_corpus" not in lines
    assert lines["pretrain"].split(maxsplit=3)[1:] == ["4", "jobs", "its output is missing"]
    models = re.findall(r"^\| tiny/(\S+)", result.stdout, flags=re.MULTILINE)
    assert sorted(model.partition("-s")[0] for model in models) == ["elc_bert", "ltg_bert", "random", "roberta"]
    result = explain(tiny, "results/tinny/summary.csv")
    assert result.returncode == 1
    assert result.stderr.count("\n") == 1 and "did you mean 'tiny'" in result.stderr
