"""Logs are found from results, Slurm's numbers and rules, by the workflow's own patterns."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from hatchery.workflow.external import Answer
from hatchery.workflow.job_logs import LogError, of_comment, of_file, of_name, submissions, workflow_rules
from hatchery.workflow.log_text import find_logs

RUN_LOG = """\
SLURM run ID: test_6b1c
Job 3 has been submitted with SLURM jobid 41 (log: {here}/.snakemake/slurm_logs/rule_pretrain/x_a-s1/41.log).
Job 3 has been submitted with SLURM jobid 43 (log: {here}/.snakemake/slurm_logs/rule_pretrain/x_a-s1/43.log).
"""


def sacct(command: Sequence[str]) -> Answer:
    """What Slurm 22.05 answered for a failed job and its retry; it knows no other."""
    if command[0] == "sacct" and "--jobs=41" in command:
        return Answer("FAILED|1:0|00:00:12|n1|rule_pretrain_wildcards_x_a-s1\n")
    if command[0] == "sacct" and "--jobs=43" in command:
        return Answer("RUNNING|0:0|00:01:02|n2|rule_pretrain_wildcards_x_a-s1\n")
    return Answer("", f"{command[0]}: error: Invalid job id specified")


@pytest.fixture
def with_logs(small_workflow: Path) -> Path:
    """The small workflow after a pretraining that failed once."""
    for name in ("logs/pretrain/x", ".snakemake/log", ".snakemake/slurm_logs/rule_pretrain/x_a-s1"):
        (small_workflow / name).mkdir(parents=True)
    (small_workflow / "logs/pretrain/x/a-s1.log").write_text("step 1\nstep 2\rstep 3\n", encoding="utf-8")
    (small_workflow / ".snakemake/slurm_logs/rule_pretrain/x_a-s1/41.log").write_text("boom\n", encoding="utf-8")
    run = small_workflow / ".snakemake/log/2026-11-21T150127.456263.snakemake.log"
    run.write_text(RUN_LOG.format(here=small_workflow), encoding="utf-8")
    return small_workflow


def test_a_result_leads_to_its_log(small_workflow: Path) -> None:
    rules = workflow_rules()
    for path in ("manifest.json", "model.safetensors", "", "deeper/file"):
        job = of_file(f"results/x/pretraining/a-s1/{path}", rules)
        assert (job.rule, job.logs) == ("pretrain", (Path("logs/pretrain/x/a-s1.log"),))
        assert job.slurm_folder == Path(".snakemake/slurm_logs/rule_pretrain/x_a-s1")
    with pytest.raises(LogError, match=r"results/else.txt: no rule makes it"):
        of_file("results/else.txt", rules)


def test_joined_wildcards_are_told_apart_by_the_logs(with_logs: Path) -> None:
    rules = workflow_rules()
    jobs = of_comment("rule_pretrain_wildcards_x_a-s1", rules)
    assert [job.wildcards for job in jobs] == [{"experiment": "x", "run": "a-s1"}]
    assert of_comment("rule_pretrain_wildcards_x_b-s1", rules) == []
    assert of_comment("rule_unknown", rules) == []


def test_a_name_leads_to_logs_that_are_there_or_would_be(with_logs: Path) -> None:
    rules = workflow_rules()
    assert of_name("pretrain", rules)[0].wildcards == {"experiment": "x", "run": "a-s1"}
    assert of_name("pretrain/y/c-s2", rules)[0].logs == (Path("logs/pretrain/y/c-s2.log"),)
    with pytest.raises(LogError, match=r"there is no rule 'pretrein'; there are: prepare, pretrain, summarise"):
        of_name("pretrein/x", rules)
    with pytest.raises(LogError, match="no job of this rule has written a log yet"):
        of_name("summarise", rules)


def test_submissions_are_read_from_snakemakes_own_logs(with_logs: Path) -> None:
    folder = with_logs / ".snakemake/slurm_logs/rule_pretrain/x_a-s1"
    assert submissions() == {"41": folder / "41.log", "43": folder / "43.log"}


@pytest.mark.parametrize("target", ["43", "results/x/pretraining/a-s1/manifest.json", "pretrain/x/a-s1"])
def test_the_answer_names_rule_log_job_and_last_lines(with_logs: Path, target: str) -> None:
    text = find_logs(target, sacct, lines=10)
    assert text.startswith("rule pretrain (experiment=x, run=a-s1)\n  log        logs/pretrain/x/a-s1.log\n")
    assert "| step 1\n             | step 3\n" in text
    assert "Slurm job  43  RUNNING  (exit code 0:0, 00:01:02, on n2)" in text
    assert (target != "43") == ("Slurm job  41  FAILED" in text)


def test_the_slurm_log_is_shown_where_the_job_failed(with_logs: Path) -> None:
    text = find_logs("41", sacct, lines=10)
    assert "Slurm log  .snakemake/slurm_logs/rule_pretrain/x_a-s1/41.log\n             | boom\n" in text


def test_an_unknown_number_is_an_error(with_logs: Path) -> None:
    with pytest.raises(LogError, match="99: neither Slurm nor a run of Snakemake"):
        find_logs("99", sacct, lines=1)
