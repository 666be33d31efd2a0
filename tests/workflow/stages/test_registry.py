"""Every stage has one record; the rules that Snakemake loads are what the records say."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from snakemake.io import strip_wildcard_constraints

from hatchery.errors import ConfigError
from hatchery.experiment.project import Project
from hatchery.runner import BY_THE_RUNNER, arguments_of
from hatchery.stage import function_of, parameters
from hatchery.workflow.jobs import Jobs
from hatchery.workflow.planned_jobs import dag_of, opened
from hatchery.workflow.registry import SHARED, STAGES, stage_of
from hatchery.workflow.resources import Resources

RUNTIME = {"runtime", "claim", "launch"}


@pytest.fixture(scope="module")
def rules(repository: Path) -> Iterator[dict[str, Any]]:
    """The rules as Snakemake loads them, by name; those that make nothing are left out."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(repository)
        with opened(["--dry-run", "--workflow-profile", "none"]) as (_, api):
            yield {rule.name: rule for rule in api._workflow.rules if rule.output}


@pytest.fixture(scope="module")
def workflow(repository: Path) -> Jobs:
    return Jobs(Project(repository / "config"))


def test_every_rule_is_a_stage_and_every_stage_a_rule(rules: dict[str, Any]) -> None:
    # A link to a result is no stage.
    assert rules.keys() == STAGES.keys() | {"show_result"}


@pytest.mark.parametrize("name", STAGES)
def test_a_rule_is_what_the_record_of_its_stage_says(
    name: str, rules: dict[str, Any], workflow: Jobs, repository: Path
) -> None:
    rule, record = rules[name], STAGES[name]
    assert [strip_wildcard_constraints(str(log)) for log in rule.log] == [record.place("logs", ".log")]
    assert strip_wildcard_constraints(str(rule.benchmark)) == record.place("results/benchmarks", ".tsv")
    assert Path(str(rule.conda_env)).name == f"{record.environment}.yaml"
    assert (repository / "envs" / f"{record.environment}.yaml").is_file()
    # What `is_local` asks, whatever executes the jobs of this call.
    assert (name in rule.workflow._localrules) == (record.sort == "local")
    assert rule.resources["_cores"].value == Resources(workflow).threads(record.threads)
    wanted = Resources(workflow).of_rule(name)
    assert wanted.keys() == rule.resources.keys() - {"_cores", "_nodes", "tmpdir"}
    for key, value in wanted.items():
        assert callable(value) or rule.resources[key].value == value


@pytest.mark.parametrize("name", STAGES)
def test_a_rule_calls_the_function_of_its_stage_and_hands_it_settings_and_call(
    name: str, rules: dict[str, Any]
) -> None:
    rule, record = rules[name], STAGES[name]
    assert re.findall(r"scripts/run\.py (\w+) @\{params\.call\}", rule.shellcmd) == [name]
    assert {"settings", "call"} <= set(rule.params.keys())
    # What is recorded of a job decides about its rerun, so nothing that says how it computes may be.
    recorded = {
        key for key, value in rule.params.items() if not callable(value) or "resources" not in parameters(value)
    }
    assert not recorded & RUNTIME
    assert ("{params.runtime" in rule.shellcmd) == bool(record.runtime)
    assert ("{params.claim}" in rule.shellcmd) == (record.sort == "model")
    assert ("{params.launch}" in rule.shellcmd) == (record.sort == "pretraining")


@pytest.mark.parametrize("name", STAGES)
def test_a_rule_gives_what_the_function_of_its_stage_takes(name: str, rules: dict[str, Any]) -> None:
    arguments = arguments_of(function_of(name))
    command = rules[name].shellcmd.partition(f"run.py {name} ")[2]
    flags = {flag.replace("-", "_") for flag in re.findall(r" --([a-z-]+)", command)} - {"output"}
    assert flags <= arguments.keys() - set(BY_THE_RUNNER)
    # What no flag gives is in the call, which names inputs, or may be missing.
    others = [each for key, each in arguments.items() if key not in flags | set(BY_THE_RUNNER)]
    assert all(each.is_input or each.group or not each.is_required for each in others)


@pytest.mark.parametrize("target", ["demo/index.html", "demo/export/README.md", "natural_bias_demo/index.html"])
def test_a_rule_reads_every_file_that_its_call_names(
    target: str, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repository)
    with opened(["--dry-run", "--", f"results/{target}"]) as (parsed, api):
        api.dag(dag_settings=dag_of(parsed, everything=True)).execute_workflow(executor="dryrun")
        planned = [job for job in api._workflow.dag.jobs if job.params.get("call")]
        jobs: Jobs = api._workflow.globals["JOBS"]
        unread = []
        for job in planned:
            # The file of a call is called after its digest; what is no path is the address of a result.
            named = jobs.to_make(jobs.call_at(f"-{Path(job.params['call']).stem}").paths())
            read = {str(path) for path in job.input}
            files = [path for path in named if "/" in path and str(Path(path).with_name("manifest.json")) not in read]
            unread += [(job.rule.name, path) for path in files if path not in read]
    assert planned and unread == []


@pytest.mark.parametrize("name", [name for name, record in STAGES.items() if record.runtime])
def test_runtime_keys_are_keys_of_the_block_compute(name: str, workflow: Jobs) -> None:
    assert STAGES[name].runtime and set(STAGES[name].runtime) <= set(vars(workflow.project.config.compute))


def test_results_that_belong_to_a_model_are_kept_by_one_stage_each() -> None:
    assert [record.name for record, _ in SHARED.values()] == [name for name, record in STAGES.items() if record.shared]


def test_an_unknown_stage_is_told_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"got the stage 'pretrian', .*did you mean 'pretrain'"):
        stage_of("pretrian")
