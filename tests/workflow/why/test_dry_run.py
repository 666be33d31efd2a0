"""Snakemake's dry run is read completely, or not at all."""

from pathlib import Path

import pytest

from hatchery.errors import PlanError
from hatchery.workflow.dry_run import parse_plan

# What Snakemake 9.27 printed for the smallest experiment after its embedded sources had been made and
# `examples_per_suite_task` changed, with most jobs cut out.
RECORDED = (Path(__file__).parent / "dry_run.txt").read_text(encoding="utf-8")


def test_every_job_is_read_with_its_wildcards_outputs_and_reasons() -> None:
    jobs = parse_plan(RECORDED)
    rules = ["generate_embedded_sources", "register_source", "convert_corpus", "pretrain", "pretrain"]
    assert [job.rule for job in jobs] == rules
    register = jobs[1]
    assert register.wildcards == {"source": "embedded_glue"}
    assert register.outputs == (
        "resources/sources/embedded_glue.json",
        "resources/sources/embedded_glue.location.json",
    )
    assert register.reasons == {"upstream": "resources/embedded/manifest.json"}
    assert list(jobs[2].reasons) == ["missing", "upstream"]
    assert jobs[3].wildcards.keys() == {"model"}
    assert "results/tokens/tiny/tiny/manifest.json" in jobs[3].files("upstream")


def test_the_settings_that_snakemake_remembers_are_read_from_its_reason() -> None:
    changed = parse_plan(RECORDED)[0].changed_settings()
    assert changed is not None
    assert (changed[0]["examples_per_suite_task"], changed[1]["examples_per_suite_task"]) == (12, 60)
    assert parse_plan(RECORDED)[1].changed_settings() is None


def test_several_reasons_of_one_job_are_told_apart() -> None:
    reason = (
        "Updated input files: a/x.json, b.json; Set of input files has changed since last execution; Code has changed "
        "since last execution; Params have changed since last execution: Union of params: "
        'before: \'--flag; Forced execution\', \'{"stage":"s","text":"it\\\'s; now: or never"}\' now: '
        '\'{"stage":"s","text":"new"}\' ; Software environment definition has changed since last execution'
    )
    text = f"rule one:\n    output: o\n    jobid: 0\n    reason: {reason}\n\nJob stats:\ntotal  1\n"
    job = parse_plan(text)[0]
    assert job.reasons.keys() == {"updated", "input set", "code", "params", "environment"}
    assert job.files("updated") == ["a/x.json", "b.json"]
    assert job.changed_settings() == ({"stage": "s", "text": "it's; now: or never"}, {"stage": "s", "text": "new"})


def test_a_reason_in_unknown_words_is_kept() -> None:
    text = "localrule one:\n    output: o\n    reason: The moon is full\n\ntotal  1\n"
    assert parse_plan(text)[0].reasons == {"other": "The moon is full"}


def test_nothing_to_be_done_is_an_empty_plan() -> None:
    assert (
        parse_plan("Building DAG of jobs...\nNothing to be done (all requested files are present and up to date).\n")
        == []
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            RECORDED.replace("rule convert_corpus:", "the rule convert_corpus"),
            "read 4 jobs, but its table announces 5",
        ),
        (RECORDED.replace("total  ", "sum    "), "read 5 jobs, but its table announces none"),
        ("", "read 0 jobs, but its table announces none"),
    ],
)
def test_output_that_is_not_understood_is_an_error_and_no_short_plan(text: str, words: str) -> None:
    with pytest.raises(PlanError, match=words):
        parse_plan(text)
