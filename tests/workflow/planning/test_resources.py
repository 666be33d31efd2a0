"""The resources of each rule's job, in every shape of pretraining and at every attempt, and refused values."""

import itertools
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import forked
import pytest
import yaml

from hatchery.errors import ConfigError
from hatchery.experiment.cluster import ClusterSettings
from hatchery.experiment.kinds import MainFile
from hatchery.experiment.project import Project
from hatchery.typed import validated
from hatchery.workflow.jobs import Jobs
from hatchery.workflow.launch import is_slurm_job, launch_command
from hatchery.workflow.outputs import readable_path
from hatchery.workflow.registry import STAGES, stage_of
from hatchery.workflow.resources import JobFacts, Resource, Resources
from hatchery.workflow.resources import job_resources as resources_of


def job_resources(rule: str, cluster: ClusterSettings, facts: JobFacts, attempt: int = 1) -> dict[str, Resource]:
    return resources_of(stage_of(rule), cluster, facts, attempt)


def cluster(**values: Any) -> ClusterSettings:
    return validated(MainFile, {"cluster": values}, "config.yaml").cluster


def jobs_of(repository: Path, **values: Any) -> Jobs:
    return Jobs(Project(repository / "config", {"cluster": values}))


def test_the_type_of_the_gpus_and_their_processors_reach_every_job_with_a_model():
    settings = cluster(nodes=2, gpus_per_node=4, gpu_type="h100", cpus_per_gpu=12)
    assert job_resources("pretrain", settings, JobFacts(1))["gres"] == "gpu:h100:4"
    evaluation = job_resources("finetune", settings, JobFacts(1))
    assert evaluation["gres"] == "gpu:h100:1"
    assert job_resources("pretrain", settings, JobFacts(1))["cpus_per_task"] == evaluation["cpus_per_task"] == 12
    assert not {"nodes", "tasks", "mpi"} & evaluation.keys()


def test_jobs_without_a_model_ask_for_no_gpu_and_go_to_their_own_partition():
    settings = cluster(gpus_per_node=8, partition="cpu", gpu_partition="gpu", account="a", gpu_account="b", extra="--x")
    conversion, scoring = (job_resources(rule, settings, JobFacts(4)) for rule in ("convert_corpus", "finetune"))
    assert conversion["slurm_partition"] == "cpu" and scoring["slurm_partition"] == "gpu"
    assert conversion["slurm_account"] == "a" and scoring["slurm_account"] == "b"
    assert conversion["slurm_extra"] == scoring["slurm_extra"] == "--requeue --x"
    assert not {"gres", "gpu_slots", "cpus_per_task"} & conversion.keys()
    assert conversion["mem_mb"] == 2000 + 4 * 1000


def test_a_gpu_key_that_is_null_is_as_for_other_jobs_and_an_empty_text_is_none():
    settings = cluster(partition="all", qos="long", constraint="ib", extra="--exclusive", gpu_extra="")
    scoring = job_resources("finetune", settings, JobFacts(1))
    assert (scoring["slurm_partition"], scoring["qos"], scoring["constraint"]) == ("all", "long", "ib")
    assert scoring["slurm_extra"] == "--requeue"
    assert job_resources("convert_corpus", settings, JobFacts(1))["slurm_extra"] == "--requeue --exclusive"


def test_what_is_not_configured_is_no_resource():
    asked = job_resources("encode_corpus", cluster(requeue=False), JobFacts(2))
    assert asked == {"mem_mb": 8000, "runtime": 120, "slurm_extra": "--no-requeue"}


def test_local_rules_ask_for_nothing_of_a_cluster():
    settings = cluster(partition="cpu", account="a", gpus_per_node=2)
    # Downloads run on the machine that has the network.
    assert STAGES["register_source"].runs_on == "local"
    for rule, need in STAGES.items():
        if need.runs_on == "local":
            assert job_resources(rule, settings, JobFacts(1), attempt=3).keys() == {"mem_mb", "runtime"}


@pytest.mark.parametrize("rule", ["encode_corpus", "finetune", "pretrain"])
def test_each_attempt_has_more_memory_and_time_up_to_what_the_partition_grants(rule):
    settings = cluster(max_minutes=1000, memory_mb_per_node=40000, pretraining_minutes=400)
    asked = [job_resources(rule, settings, JobFacts(1, minutes=400), attempt) for attempt in (1, 2, 3, 9)]
    assert [job["runtime"] for job in asked] == [400, 800, 1000, 1000]
    first = asked[0]["mem_mb"]
    assert [job["mem_mb"] for job in asked] == [first, 2 * first, min(3 * first, 40000), 40000]
    rest = [{key: value for key, value in job.items() if key not in ("mem_mb", "runtime")} for job in asked]
    assert all(job == rest[0] for job in rest)


def test_the_pieces_of_a_long_pretraining_ask_for_no_more_memory_than_the_first_where_no_bound_is_known():
    settings = cluster(gpus_per_node=8)
    assert [job_resources("pretrain", settings, JobFacts(1), attempt)["mem_mb"] for attempt in (1, 2, 6)] == [
        128000
    ] * 3
    assert job_resources("finetune", settings, JobFacts(1), attempt=2)["mem_mb"] == 2 * STAGES["finetune"].memory_mb


def test_the_time_of_a_pretraining_is_the_configured_one_else_the_estimate_else_a_day():
    assert job_resources("pretrain", cluster(pretraining_minutes=77), JobFacts(1, 9.0))["runtime"] == 77
    assert job_resources("pretrain", cluster(), JobFacts(1, 9.0))["runtime"] == 9
    assert job_resources("pretrain", cluster(), JobFacts(1, 0.0))["runtime"] == 5
    assert job_resources("pretrain", cluster(max_minutes=3000), JobFacts(1))["runtime"] == 1440


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("finetune", JobFacts(0), 1), "threads: got 0, expected 1 or more"),
        (("finetune", JobFacts(1, -1.0), 1), "minutes: got -1.0, expected 0 or more"),
    ],
)
def test_impossible_facts_are_refused(arguments, message):
    rule, facts, attempt = arguments
    with pytest.raises(ConfigError, match=message):
        job_resources(rule, cluster(), facts, attempt)


# The configuration.

MISTAKES = {
    "unknown device": ({"planned_device": "h10"}, r"got 'h10'; did you mean 'h100'\? Allowed are: .*"),
    "type without GPUs": ({"gpu_type": "h100"}, "cluster.gpu_type: got 'h100', expected null with gpus_per_node 0"),
    "more memory than a node has": (
        {"gpus_per_node": 8, "gpu_memory_mb_per_node": 64000},
        "cluster.pretraining_memory_mb: got 16000 for each of 8 processes of a node, expected at most 8000",
    ),
    "partition as an option": (
        {"extra": "-p gpu"},
        "cluster.extra: got '-p', expected this option as the key 'partition'",
    ),
    "short option with its value": (
        {"extra": "-Aproject"},
        "extra: got '-Aproject', expected this option as the key 'acc",
    ),
    "an option of Snakemake": (
        {"extra": "--array=1-9"},
        "got '--array=1-9', expected only options that Snakemake does",
    ),
    "a command": ({"extra": "--exclusive; rm x"}, "expected options of sbatch without special characters"),
    "an open quote": ({"extra": "--comment='x"}, "expected options in shell syntax"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_the_block_is_told_with_its_key_and_what_is_expected(mistake):
    values, message = MISTAKES[mistake]
    with pytest.raises(ConfigError, match=message) as caught:
        cluster(**values)
    assert "\n" not in str(caught.value)


# Resources in the workflow.


def addresses(jobs: Any, place: str) -> SimpleNamespace:
    """Return the wildcards of the job that makes a result of an experiment."""
    _, _, model, *address = jobs.storage_path(readable_path(*place.split("/", 2))).split("/")[:-1]
    return SimpleNamespace(model=model, address=address[0] if address else "")


def test_evaluations_ask_for_the_time_of_their_stage(repository):
    jobs = jobs_of(repository, nodes=4, gpus_per_node=8)
    run = next(iter(jobs.results.pretrained("strict")))

    def minutes(rule: str, task: str = "", suite: str = "") -> int:
        place = f"strict/finetuning/{run}/{task}" if task else f"strict/minimal_pairs/{run}/{suite}"
        return Resources(jobs).of_rule(rule)["runtime"](addresses(jobs, place), 1)

    assert minutes("finetune", task="babylm_cola") == STAGES["finetune"].minutes
    assert minutes("score_minimal_pairs", suite="blimp_filtered") == STAGES["score_minimal_pairs"].minutes


def test_the_time_of_a_pretraining_shrinks_with_the_gpus_and_grows_without(repository):
    def resource(key: str, attempt: int = 1, **values: Any) -> Any:
        jobs = jobs_of(repository, **values)
        run = next(iter(jobs.results.pretrained("strict")))
        value = Resources(jobs).of_rule("pretrain").get(key)
        return value(addresses(jobs, f"strict/pretraining/{run}"), attempt) if callable(value) else value

    def minutes(**values: Any) -> Any:
        return resource("runtime", max_minutes=10**9, **values)

    assert minutes(nodes=4, gpus_per_node=8) < minutes(nodes=1, gpus_per_node=8) < minutes(gpus_per_node=1) < minutes()
    # The work is 15,625 steps of 32,768 sequences: an hour on 32 H100s at 30 % of their peak. The request adds a half.
    assert 60 < minutes(nodes=4, gpus_per_node=8) < 180
    assert resource("tasks") is None
    assert resource("runtime", 2) == 1440


def test_a_precision_that_the_planned_device_does_not_have_leaves_the_time_open(repository, monkeypatch):
    jobs = jobs_of(repository, gpus_per_node=1, planned_device="v100")
    text = jobs.settings("write_cost", experiment="demo").replace('"precision":"auto"', '"precision":"bf16"')
    wildcards = addresses(jobs, f"demo/pretraining/{list(jobs.results.pretrained('demo'))[-1]}")
    monkeypatch.setattr(jobs, "settings", lambda stage, **wildcards: text)
    assert Resources(jobs).of_rule("pretrain")["runtime"](wildcards, 1) == 1440


def test_commands_claim_gpus_only_where_they_may_compute_on_them(repository, monkeypatch):
    jobs = jobs_of(repository)
    assert Resources(jobs).gpu_claim({"gpu_slots": 2}) == "python scripts/claim_gpus.py --gpus 2 -- "
    assert Resources(jobs).gpu_claim({}) == ""
    # If evaluations share a GPU, a pretraining takes all places of the GPU.
    jobs = jobs_of(repository, jobs_per_gpu=4, gpus_per_node=2)
    assert Resources(jobs).of_rule("pretrain")["gpu_slots"] == 8
    assert Resources(jobs).gpu_claim({"gpu_slots": 8}) == "python scripts/claim_gpus.py --gpus 2 -- "
    assert Resources(jobs).of_rule("finetune")["gpu_slots"] == 1
    shared = "python scripts/claim_gpus.py --gpus 1 --jobs-per-gpu 4 -- "
    assert Resources(jobs).gpu_claim({"gpu_slots": 1}, shared=True) == shared
    for visible, slots in (("0,1,2", 12), ("", None)):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
        assert Resources(jobs).gpu_slots_here() == slots
    jobs = Jobs(Project(repository / "config", {"compute": {"device": "cpu"}}))
    assert Resources(jobs).gpu_slots_here() is None
    assert Resources(jobs).gpu_claim({"gpu_slots": 2}) == ""


def test_no_stage_but_the_estimate_of_the_cost_depends_on_the_cluster(repository):
    plain = jobs_of(repository)
    other = jobs_of(repository, nodes=4, gpus_per_node=8, partition="p", planned_device="a100", pretraining_minutes=5)
    run = next(iter(plain.results.pretrained("demo")))
    stages: list[tuple[str, dict[str, str]]] = [
        ("convert_corpus", {"corpus": "demo"}),
        ("train_tokenizer", {"tokenizer": "demo"}),
        ("pretrain", {"experiment": "demo", "run": run}),
        ("score_minimal_pairs", {"suite": "demo_pairs"}),
        ("finetune", {"experiment": "demo", "task": "demo_entailment"}),
        ("summarise", {"experiment": "demo"}),
    ]
    for stage, wildcards in stages:
        assert plain.settings(stage, **wildcards) == other.settings(stage, **wildcards)
    assert plain.settings("write_cost", experiment="demo") != other.settings("write_cost", experiment="demo")


ONE_GPU = {"gres": "gpu:1", "cpus_per_task": 4}
ONE_NODE = {"mpi": "srun", "nodes": 1, "tasks_per_node": 8}
TWO_SINGLES = {"mpi": "srun", "nodes": 2, "tasks": 2, "tasks_per_gpu": 0}
FOUR_NODES = {"mpi": "srun", "nodes": 4, "tasks_per_node": 8}
SRUN = "srun --nodes={} --ntasks-per-node={} --distribution=block --cpus-per-task=6 --kill-on-bad-exit=1 --label python"
TORCHRUN = "python -m torch.distributed.run --standalone --nproc-per-node={} --shutdown-timeout=180"


@pytest.mark.parametrize(
    ("resources", "gpus_here", "in_slurm_job", "elsewhere"),
    [
        # One process needs no launcher.
        ({}, 8, "python", "python"),
        (ONE_GPU, 8, "python", "python"),
        (TWO_SINGLES, 0, SRUN.format("2 --ntasks=2", 1), "python"),
        # A laptop runs a cluster's configuration in one process. A large machine runs at most as many processes as a
        # node.
        (FOUR_NODES, 0, SRUN.format("4 --ntasks=32", 8), "python"),
        (FOUR_NODES, 1, SRUN.format("4 --ntasks=32", 8), "python"),
        (ONE_NODE, 2, SRUN.format("1 --ntasks=8", 8), TORCHRUN.format(2)),
        (ONE_NODE, 16, SRUN.format("1 --ntasks=8", 8), TORCHRUN.format(8)),
    ],
)
def test_one_command_starts_every_shape(
    resources: dict[str, Any], gpus_here: int, in_slurm_job: str, elsewhere: str
) -> None:
    assert launch_command(resources, 6, True, gpus_here) == in_slurm_job
    assert launch_command(resources, 6, False, gpus_here) == elsewhere


def test_a_main_process_inside_an_allocation_is_no_slurm_job() -> None:
    job = {"SLURM_JOB_ID": "7"}
    assert is_slurm_job(is_main_process=False, environment=job)
    assert not is_slurm_job(is_main_process=True, environment=job)
    assert not is_slurm_job(is_main_process=False, environment={})


WORKFLOW = """
import sys
sys.path.insert(0, "scripts")
from pathlib import Path
from hatchery.experiment.project import Project
from hatchery.workflow.rules import Rules

Rules(Project(Path("config"), {{"cluster": {{"jobs_per_gpu": {each}}}}})).count_gpus(workflow)

rule all:
    default_target: True
    input:
        expand("{{i}}.json", i=range(4)),
        "large.json",

rule small:
    output: "{{i}}.json"
    resources: gpu_slots=1
    shell: "python scripts/claim_gpus.py --gpus 1 --jobs-per-gpu {each} --locks locks -- python note.py {{output}}"

rule large:
    output: "large.json"
    resources: gpu_slots=8 * {each}
    shell: "python scripts/claim_gpus.py --gpus 2 --locks locks -- python note.py {{output}}"
"""
NOTE = """
import json, os, pathlib, sys, time
gpus, start = os.environ["CUDA_VISIBLE_DEVICES"].split(","), time.monotonic()
time.sleep(0.5)
pathlib.Path(sys.argv[1]).write_text(json.dumps([gpus, start, time.monotonic()]))
"""


def test_profiles_are_found_by_their_names_from_the_top_of_the_checkout(repository):
    for profile, executor in (("slurm", "slurm"), ("gpus", "local")):
        settings = yaml.safe_load((repository / profile / "config.yaml").read_text(encoding="utf-8"))
        assert settings["executor"] == executor
        assert settings["scheduler"] == "greedy" and settings["rerun-incomplete"] and settings["keep-going"]
        # Retries are in the profile, because retries in a rule would be made inside one job of Slurm.
        assert settings["retries"] >= 1
    default = yaml.safe_load((repository / "profiles/default/config.yaml").read_text(encoding="utf-8"))
    assert not {"default-resources", "resources", "executor", "jobs", "retries"} & default.keys()


@pytest.mark.slow
@pytest.mark.parametrize("each", [1, 2])
def test_jobs_of_one_machine_share_no_gpu_under_the_profile_unless_they_may(repository, tmp_path, monkeypatch, each):
    for name, target in (("gpus", "workflow/profiles/gpus"), ("scripts", "scripts"), ("config", "config")):
        (tmp_path / name).symlink_to((repository / target).resolve())
    (tmp_path / "Snakefile").write_text(WORKFLOW.format(each=each), encoding="utf-8")
    (tmp_path / "note.py").write_text(NOTE, encoding="utf-8")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,7")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:/usr/bin:/bin")
    run = forked.run(
        [sys.executable, "-m", "snakemake", "--profile", "gpus", "--cores", "9"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    # No job waited for a lock, because Snakemake itself counted the GPUs.
    assert "waiting for" not in run.stdout + run.stderr
    jobs = [json.loads(path.read_text(encoding="utf-8")) for path in tmp_path.glob("*.json")]
    assert max(len(gpus) for gpus, _, _ in jobs) == 2
    for gpu in ("4", "7"):
        times = sorted((start, end, len(gpus)) for gpus, start, end in jobs if gpu in gpus)
        together = [one for one in itertools.pairwise(times) if one[0][1] > one[1][0]]
        assert not together if each == 1 else together and all(one[2] == other[2] == 1 for one, other in together)
    assert {gpu for gpus, _, _ in jobs for gpu in gpus} == {"4", "7"}
