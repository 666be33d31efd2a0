"""Every stage has one record, a light file and one rule; its settings contain exactly the settings that it needs."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from projects import make_project, snakemake
from snakemake.io import strip_wildcard_constraints

from hatchery.experiment.project import Project
from hatchery.job_spec import paths_of
from hatchery.runner import BY_THE_RUNNER, arguments_of
from hatchery.settings.base import Settings, omitted_at_default
from hatchery.settings.fields import ABSENT
from hatchery.stage import Stage, function_of, parameters, record_of
from hatchery.workflow.jobs import Jobs
from hatchery.workflow.outputs import readable_path
from hatchery.workflow.planned_jobs import dag_of, opened
from hatchery.workflow.registry import SHARED, STAGES
from hatchery.workflow.resources import Resources

HEAVY = {"numpy", "pyarrow", "polars", "torch", "tokenizers", "matplotlib", "scipy", "lxml", "datasets", "transformers"}
PLANNING = {"hatchery.experiment.project", "hatchery.workflow.jobs", "snakemake"}

STAGE = '''"""The stage `greet_corpus`."""

from collections.abc import Mapping
from typing import Any

from hatchery.artifacts.atomic import write_text
from hatchery.artifacts.manifests import StageRun
from hatchery.stage import Stage


def greeting_settings(project: Any, corpus: str) -> dict[str, object]:
    """Whom to greet."""
    return {"greeting": f"Hello, {project.corpus(corpus).description}"}


@Stage(
    version=3,
    settings=greeting_settings,
    outputs={"output": "results/greetings/{corpus}/manifest.json"},
    environment="corpora",
    runs_on="cpu",
    memory_mb=100,
    minutes=1,
)
def greet_corpus(settings: Mapping[str, Any], run: StageRun) -> None:
    """Write a greeting."""
    write_text(run.add_output(run.folder / "greeting.txt"), settings["greeting"])
'''


def test_files_of_stages_import_neither_what_computes_nor_what_plans(repository: Path) -> None:
    code = (
        "import sys; from hatchery.stage import function_of, stage_files\n"
        "for name in stage_files(): function_of(name)\n"
        f"print(sorted({HEAVY | PLANNING!r} & set(sys.modules)))"
    )
    environment = {"PYTHONPATH": str(repository / "scripts"), "PATH": ""}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.slow
def test_a_stage_is_added_by_a_file(tmp_path: Path, repository: Path) -> None:
    folder = make_project(tmp_path / "project", repository)
    (folder / "scripts").unlink()
    shutil.copytree(repository / "scripts", folder / "scripts")
    (folder / "scripts/hatchery/corpora/stages/greet_corpus.py").write_text(STAGE, encoding="utf-8")
    done = snakemake(folder, "--cores", "1", "--", "results/greetings/tiny/manifest.json", forked=False)
    assert done.returncode == 0, done.stdout + done.stderr
    made = folder / "results/greetings/tiny"
    assert (made / "greeting.txt").read_text(encoding="utf-8").startswith("Hello, ")
    assert '"stage_version": 3' in (made / "manifest.json").read_text(encoding="utf-8")
    assert (folder / "logs/greet_corpus/tiny.log").is_file()


@dataclass(frozen=True)
class Greeting(Settings):
    """Whom to greet, and how."""

    words: str
    loudness: int | None = omitted_at_default(None)
    others: dict[str, int] = omitted_at_default({})
    titles: tuple[str, ...] = omitted_at_default(ABSENT)


@pytest.mark.parametrize(
    ("said", "named"),
    [
        ({"loudness": None, "others": {}, "titles": ABSENT}, {}),
        ({"loudness": 0, "others": {"x": 1}, "titles": []}, {"loudness": 0, "others": {"x": 1}, "titles": []}),
        ({"titles": None}, {"titles": None}),
    ],
)
def test_what_a_class_leaves_out_at_its_default_no_settings_of_its_stage_name(
    said: dict[str, Any], named: dict[str, Any]
) -> None:
    of = {"environment": "corpora", "runs_on": "cpu", "memory_mb": 1, "minutes": 1}

    @Stage(version=1, settings=lambda project: {"words": "Hello", **said}, **of)
    def greet(settings: Greeting) -> None:
        """Greet."""

    found = json.loads(record_of(greet).canonical_settings(None))
    assert found == {"stage": "greet", "stage_version": 1, "words": "Hello", **named}


UNRECORDED = {"given", "run"}


@pytest.fixture(scope="module")
def rules(repository: Path) -> Iterator[dict[str, Any]]:
    """The rules as Snakemake loads them, by name, without rules that have no output."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(repository)
        with opened(["--dry-run", "--workflow-profile", "none"]) as (_, api):
            yield {rule.name: rule for rule in api._workflow.rules if rule.output}


def test_every_rule_is_a_stage_and_every_stage_a_rule(rules: dict[str, Any], jobs: Jobs) -> None:
    # The rule `show_result` only links to results and belongs to no stage.
    assert rules.keys() == STAGES.keys() | {"show_result"}
    # Exactly one stage stores each kind of result that belongs to a model.
    assert [record.name for record, _ in SHARED.values()] == [name for name, record in STAGES.items() if record.shared]
    compute = set(vars(jobs.project.config.compute))
    assert all(set(record.runtime) <= compute for record in STAGES.values())


@pytest.mark.parametrize("name", STAGES)
def test_a_rule_is_what_the_record_of_its_stage_says(
    name: str, rules: dict[str, Any], jobs: Jobs, repository: Path
) -> None:
    rule, record = rules[name], STAGES[name]
    assert [strip_wildcard_constraints(str(log)) for log in rule.log] == [record.path_pattern("logs", ".log")]
    assert strip_wildcard_constraints(str(rule.benchmark)) == record.path_pattern("results/benchmarks", ".tsv")
    assert Path(str(rule.conda_env)).name == f"{record.environment}.yaml"
    assert (repository / "envs" / f"{record.environment}.yaml").is_file()
    # Snakemake's `is_local` reads this set, with any executor of the jobs.
    assert (name in rule.workflow._localrules) == (record.runs_on == "local")
    assert rule.resources["_cores"].value == Resources(jobs).threads(record.threads)
    wanted = Resources(jobs).of_rule(name)
    assert wanted.keys() == rule.resources.keys() - {"_cores", "_nodes", "tmpdir"}
    for key, value in wanted.items():
        assert callable(value) or rule.resources[key].value == value


@pytest.mark.parametrize("name", STAGES)
def test_a_rule_calls_the_function_of_its_stage_and_hands_it_settings_and_call(
    name: str, rules: dict[str, Any]
) -> None:
    rule, record = rules[name], STAGES[name]
    assert rule.shellcmd.startswith("{params.run} {params.call} {params.given:q} 2>&1 | ")
    claim = "python scripts/claim_gpus.py --gpus 1 -- " if record.runs_on in ("gpu", "gpus") else ""
    given = SimpleNamespace(get={"gpu_slots": 1}.get, cpus_per_task=1)
    assert rule.params["run"](None, given) == f"{claim}python scripts/run.py {name}"
    # The recorded parameters of a job decide about its rerun, so parameters that only affect how it computes must not
    # be recorded.
    unrecorded = {key for key, value in rule.params.items() if callable(value) and "resources" in parameters(value)}
    assert {"settings", "call"} <= rule.params.keys() - unrecorded
    assert unrecorded <= UNRECORDED


def test_a_job_is_given_all_that_the_function_of_its_stage_needs_and_reads_nothing_else(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repository)
    targets = ["demo/index.html", "demo/export/README.md", "natural_bias_demo/index.html", "strict_mini/index.html"]
    targets += [
        "demo/ro-crate.zip",
        "tokenizer_sweeps/demo/manifest.json",
        "bnc_wikipedia_bookcorpus_mini/summary.csv",
        "causal_mini/summary.csv",
        "causal_mini/surprisals.csv",
        "babylm_mini/submission.json",
        "babylm_multilingual_mini/multilingual_submission/manifest.json",
    ]
    with opened(["--dry-run", "--", *(f"results/{target}" for target in targets)]) as (parsed, api):
        api.dag(dag_settings=dag_of(parsed, everything=True)).execute_workflow(executor="dryrun")
        jobs: Jobs = api._workflow.globals["RULES"].jobs
        # Take one job of each stage.
        planned = {job.rule.name: job for job in api._workflow.dag.jobs if job.params.get("call")}
        assert STAGES.keys() - planned.keys() == {"import_model"}
        for name, job in planned.items():
            # The file of a call is named by its digest.
            call, given = jobs.call_at(f"-{Path(job.params['call']).stem}"), json.loads(job.params["given"])
            arguments = {key: each for key, each in arguments_of(function_of(name)).items() if key not in BY_THE_RUNNER}
            assert not call.arguments.keys() & given.keys()
            known = {**call.arguments, **given}
            assert known.keys() <= arguments.keys() | {"output"}
            found = {key: each.from_json(known.get(key)) for key, each in arguments.items()}
            assert [key for key, each in arguments.items() if each.is_required and found[key] is None] == []
            read = paths_of(known.get(key, []) for key, each in arguments.items() if each.is_input)
            generated = {"resources/embedded/manifest.json"} if name == "register_source" else set()
            assert set(jobs.targets_for(read)) == set(map(str, job.input)) - generated


@pytest.fixture
def project(repository: Path) -> Project:
    return Project(repository / "config")


def slice_of(project: Project, stage: str, **wildcards: str) -> dict:
    return json.loads(Jobs(project).settings(stage, **wildcards))


def test_a_slice_is_canonical_json_in_which_the_narrower_block_wins(project: Project) -> None:
    text = Jobs(project).settings("pretrain", experiment="demo", run="ltg_bert-s42")
    assert text == json.dumps(json.loads(text), sort_keys=True, separators=(",", ":"))
    assert json.loads(text)["steps"] > 0
    assert slice_of(project, "pretrain", experiment="demo", run="random-s42")["steps"] == 0
    for task, size in (("babylm_qqp", 32), ("babylm_rte", 16)):
        assert slice_of(project, "finetune", experiment="strict", task=task)["protocol"]["batch_size"] == size
    assert slice_of(project, "measure_perplexity", experiment="causal_mini")["frequency_bin_nats"] == 0.75
    assert slice_of(project, "measure_perplexity", experiment="strict")["frequency_bin_nats"] is None


def test_paths_and_descriptions_belong_to_no_result(project: Project) -> None:
    for stage, wildcards in [
        ("convert_corpus", {"corpus": "real_small"}),
        ("score_minimal_pairs", {"suite": "blimp_sample"}),
        ("finetune", {"experiment": "real_tasks", "task": "rte"}),
        ("pretrain", {"experiment": "real_tasks", "run": "ltg_bert-s42"}),
    ]:
        text = Jobs(project).settings(stage, **wildcards)
        assert not [word for word in ("shared", "description") if word in text]
    exported = slice_of(project, "export_model", experiment="demo", run="ltg_bert-s42")
    assert exported["languages"] == ["en"]


def test_compute_settings_change_no_slice(repository: Path) -> None:
    plain = Project(repository / "config")
    other = Project(repository / "config", {"compute": {"pretraining_threads": 7, "checkpoint_interval_steps": 3}})
    for stage, wildcards in [
        ("pretrain", {"experiment": "demo", "run": "ltg_bert-s42"}),
        ("finetune", {"experiment": "demo", "task": "demo_acceptability"}),
    ]:
        assert Jobs(plain).settings(stage, **wildcards) == Jobs(other).settings(stage, **wildcards)


def test_swapping_two_values_changes_the_slice(configuration: Path) -> None:
    before = Jobs(Project(configuration)).settings("pretrain", experiment="demo", run="ltg_bert-s42")
    path = configuration / "experiments/demo.yaml"
    text = path.read_text(encoding="utf-8")
    sequences, interval = json.loads(before)["batch_size"], json.loads(before)["evaluation_interval_steps"]
    assert sequences != interval
    swapped = text.replace(f"  batch_size: {sequences}", f"  batch_size: {interval}", 1)
    swapped = swapped.replace(f"evaluation_interval_steps: {interval}", f"evaluation_interval_steps: {sequences}", 1)
    path.write_text(swapped, encoding="utf-8")
    after = Jobs(Project(configuration)).settings("pretrain", experiment="demo", run="ltg_bert-s42")
    assert json.loads(after)["evaluation_interval_steps"] == sequences
    assert after != before


def test_options_of_an_experiment_lie_over_those_of_heads_for_sequences(configuration: Path) -> None:
    path = configuration / "experiments/demo_suites.yaml"
    text = path.read_text(encoding="utf-8")
    head = "  head_options: {pooling: position_linear, transform: none}\n"
    path.write_text(text.replace("  tasks:\n", f"{head}  tasks:\n", 1), encoding="utf-8")
    project = Project(configuration)
    heads = {
        task: slice_of(project, "finetune", experiment="demo_suites", task=task)["task"]["head"]
        for task in ("demo_babylm_rte", "demo_glue_stsb", "demo_probe_dp")
    }
    assert heads["demo_babylm_rte"]["options"] == {"pooling": "position_linear", "transform": "none"}
    assert heads["demo_glue_stsb"]["options"]["pooling"] == "position_linear"
    assert "pooling" not in heads["demo_probe_dp"]["options"]


def test_a_model_of_others_is_what_is_said_about_it_and_is_evaluated_like_ours(
    configuration: Path,
) -> None:
    (configuration / "baselines/gpt.yaml").write_text("data: my_text\narchitecture: causal\n", encoding="utf-8")
    own = "base: causal_mini\nbaselines: [gpt]\n"
    (configuration / "experiments/own.yaml").write_text(own, encoding="utf-8")
    jobs = Jobs(Project(configuration))
    imported = slice_of(jobs.project, "import_model", baseline="gpt")
    stage = {"stage": "import_model", "stage_version": 1}
    assert imported == {**stage, "architecture": "causal", "leading_blank": None, "predicts_next": False}
    model = jobs.storage_path(readable_path("own", "baselines", "gpt")).split("/")[2]
    assert re.fullmatch("imported-gpt-[0-9a-f]{16}", model)
    # The addresses differ only in the model, because the evaluation is the same.
    ours, theirs = (
        jobs.storage_path(readable_path("own", "minimal_pairs", f"{run}/demo_blimp_filtered")).split("/")
        for run in ("causal_zero-s42", "gpt")
    )
    assert theirs == [*ours[:2], model, *ours[3:]]
    # A baseline reads documents, because its own tokenizer encodes them.
    calls = [jobs.call("measure_perplexity", experiment="own", run=run) for run in ("causal_zero-s42", "gpt")]
    assert [set(call.arguments) for call in calls] == [{"tokens"}, {"corpus"}]
    assert calls[0].settings == calls[1].settings


def test_objectives_are_told_of_models_that_were_not_trained_on_masked_text_alone(project: Project) -> None:
    causal = slice_of(project, "summarise", experiment="causal_mini")["objectives"]
    assert causal == dict.fromkeys(("causal_zero", "causal_unigram", "causal_documents"), "causal")
    study = slice_of(project, "summarise", experiment="natural_bias_demo")["objectives"]
    assert study["natural_bias_mini/zero"] == "translation"
    assert slice_of(project, "summarise", experiment="demo")["objectives"] == {}
