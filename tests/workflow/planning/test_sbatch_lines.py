"""The sbatch lines of every shape of pretraining, and of the experiment `strict` on 4 nodes with 8 GPUs each."""

import json
import os
import re
import shutil
import stat
import sys
from pathlib import Path
from typing import Any

import forked
import pytest
from snakemake_executor_plugin_slurm.submit_string import get_submit_command
from snakemake_executor_plugin_slurm.utils import set_gres_string
from snakemake_executor_plugin_slurm.validation import validate_slurm_extra

from hatchery.experiment.kinds import MainFile
from hatchery.experiment.project import Project
from hatchery.raw.listings import location_of
from hatchery.typed import validated
from hatchery.workflow.jobs import Jobs
from hatchery.workflow.outputs import readable_path
from hatchery.workflow.registry import STAGES
from hatchery.workflow.resources import JobFacts, job_resources


class Resources(dict[str, Any]):
    """A job's resources as the executor reads them: by name and as attributes."""

    def __getattr__(self, name: str) -> Any:
        if name not in self:
            raise AttributeError(name)
        return self[name]


class Job:
    def __init__(self, resources: dict[str, Any], threads: int) -> None:
        self.resources, self.threads = Resources(resources), threads


def resources(rule: str, threads: int = 1, minutes: float | None = None, **values: Any) -> dict[str, Any]:
    cluster = validated(MainFile, {"cluster": values}, "config.yaml").cluster
    return job_resources(STAGES[rule], cluster, JobFacts(threads, minutes))


def line(rule: str, threads: int = 1, minutes: float | None = None, **values: Any) -> str:
    """Return the executor's options after the job's name and log, without the command."""
    asked = resources(rule, threads, minutes, **values)
    job = Job(asked, threads)
    validate_slurm_extra(job)
    parameters = {"run_uuid": "u", "slurm_logfile": Path("l"), "comment_str": "c", "workdir": None}
    partition = f"-p {asked['slurm_partition']}" if "slurm_partition" in asked else ""
    command = get_submit_command(job, {**parameters, "account": "", "partition": partition}) + set_gres_string(job)
    return " ".join(command.split("--comment c")[1].split())


REST = "--requeue"
SHAPES = {
    "1 x 1": ((1, 1), f"-t 30 --mem 16000 --cpus-per-task=2 {REST} --gres=gpu:1"),
    "1 x 8": ((1, 8), f"-t 30 --mem 128000 --nodes=1 --ntasks-per-node=8 --cpus-per-task=2 {REST} --gres=gpu:8"),
    # Without an explicit 0 tasks per GPU, the executor adds --ntasks-per-gpu=4, which turns 4 tasks into 16.
    "4 x 1": ((4, 1), f"-t 30 --mem 16000 --nodes=4 --ntasks=4 --cpus-per-task=2 {REST} --gres=gpu:1"),
    "4 x 8": ((4, 8), f"-t 30 --mem 128000 --nodes=4 --ntasks-per-node=8 --cpus-per-task=2 {REST} --gres=gpu:8"),
    "1 x processors": ((1, 0), f"-t 30 --mem 16000 --ntasks=1 --cpus-per-task=2 {REST}"),
    "2 x processors": ((2, 0), f"-t 30 --mem 16000 --nodes=2 --ntasks=2 --cpus-per-task=2 {REST}"),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_the_line_of_each_shape_of_pretraining(shape):
    (nodes, gpus), expected = SHAPES[shape]
    assert line("pretrain", threads=2, minutes=29.2, nodes=nodes, gpus_per_node=gpus) == expected
    asked = resources("pretrain", threads=2, minutes=29.2, nodes=nodes, gpus_per_node=gpus)
    # The line lacks two resources: the launcher of the processes, and the GPU places that Snakemake counts.
    assert (asked.get("mpi"), asked["gpu_slots"]) == ("srun" if nodes * max(1, gpus) > 1 else None, gpus or 1)


@pytest.mark.parametrize("rule", STAGES)
@pytest.mark.parametrize("gpus", [0, 4])
def test_no_line_contradicts_itself(rule, gpus):
    got = line(rule, nodes=3, gpus_per_node=gpus, extra="--exclusive", partition="main")
    options = re.findall(r"(?<=\s)(--?[a-z-]+)", f" {got}")
    assert len(options) == len(set(options)), got
    assert not {"--ntasks", "--ntasks-per-node"} <= set(options)
    assert "--gpus" not in options
    if STAGES[rule].runs_on != "local":
        assert got.startswith("-p main ") and "--exclusive" in got


CLUSTER = """cluster:
  account: hatch
  partition: cpu
  max_minutes: 600
  gpu_partition: gpu
  gpu_qos: training
  gpu_constraint: nvlink
  gpu_extra: --exclude=n7
  gpu_max_minutes: 2880
  gpu_memory_mb_per_node: 500000
  nodes: 4
  gpus_per_node: 8
  gpu_type: h100
  cpus_per_gpu: 12
"""
ANSWERS = {
    "sacctmgr": "hatch",
    "sinfo": "cpu*",
    "scontrol": "MinJobAge = 300 sec",
    "sacct": "",
    "squeue": "",
    "sshare": "hatch",
    "scancel": "",
}
TRAINED, UNTRAINED = "ltg_bert-s42", "elc_biased-s42"
TASK, SUITE = "babylm_wsc", "blimp_filtered"
TARGETS = {
    "convert_corpus": "results/corpora/babylm_10M/manifest.json",
    "encode_corpus": "results/tokens/babylm_dev/{tokenizer}/manifest.json",
    "pretrain": f"results/strict/pretraining/{UNTRAINED}/manifest.json",
    "measure_perplexity": f"results/strict/perplexity/{TRAINED}/manifest.json",
    "score_minimal_pairs": f"results/strict/minimal_pairs/{TRAINED}/{SUITE}/manifest.json",
    "finetune": f"results/strict/finetuning/{TRAINED}/{TASK}/manifest.json",
}
GPU_JOB = "-A hatch -p gpu -t {minutes} -C nvlink --qos=training --mem {memory}"
EXPECTED = {
    "convert_corpus": "-A hatch -p cpu -t 240 --mem 4000 --ntasks=1 --cpus-per-task=2 --requeue",
    "encode_corpus": "-A hatch -p cpu -t 120 --mem 8000 --ntasks=1 --cpus-per-task=2 --requeue",
    "pretrain": (
        f"{GPU_JOB.format(minutes=110, memory=128000)} --nodes=4 --ntasks-per-node=8 --cpus-per-task=12"
        " --requeue --exclude=n7 --gres=gpu:h100:8"
    ),
    "measure_perplexity": (
        f"{GPU_JOB.format(minutes=240, memory=8000)} --cpus-per-task=12 --requeue --exclude=n7 --gres=gpu:h100:1"
    ),
    "score_minimal_pairs": (
        f"{GPU_JOB.format(minutes=480, memory=8000)} --cpus-per-task=12 --requeue --exclude=n7 --gres=gpu:h100:1"
    ),
    "finetune": (
        f"{GPU_JOB.format(minutes=480, memory=8000)} --cpus-per-task=12 --requeue --exclude=n7 --gres=gpu:h100:1"
    ),
}


# A manifest of a stage or a source without files.
STAGE = {"stage": "", "settings": {}, "inputs": {}, "outputs": [], "measures": {}}
EMPTY = {**STAGE, "name": "", "kind": "folder", "files": []}


def stub(folder: Path, name: str, body: str) -> None:
    path = folder / name
    path.write_text(f"#!{sys.executable}\n{body}", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.fixture(scope="module")
def sent(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> dict[str, list[str]]:
    """Return the arguments of every call of sbatch in one run of Snakemake, by rule."""
    folder = tmp_path_factory.mktemp("sbatch")
    project, commands, calls = folder / "project", folder / "commands", folder / "calls"
    for made in (project, commands, calls):
        made.mkdir()
    for name in ("Snakefile", "scripts", "workflow", "envs", "profiles", "slurm"):
        (project / name).symlink_to((repository / name).resolve())
    shutil.copytree(repository / "config", project / "config")
    path = project / "config/config.yaml"
    text = path.read_text(encoding="utf-8")
    path.write_text(text[: text.index("\ncluster:") + 1] + CLUSTER, encoding="utf-8")

    for name, answer in ANSWERS.items():
        stub(commands, name, f"print({answer!r})\n")
    note = (
        "import json, pathlib, sys, uuid\n"
        f"folder = pathlib.Path({str(calls)!r})\n"
        "(folder / uuid.uuid4().hex).write_text(json.dumps(sys.argv[1:]))\n"
        "sys.exit('noted and refused')\n"
    )
    stub(commands, "sbatch", note)

    jobs = Jobs(Project(project / "config"))
    tokenizer = jobs.project.experiment("strict").tokenizer
    targets = [target.format(tokenizer=tokenizer) for target in TARGETS.values()]
    read = [
        jobs.results.of("train_tokenizer", tokenizer=tokenizer),
        *jobs.call("convert_corpus", corpus="babylm_10M").arguments["source"].values(),
        jobs.results.of.corpus("babylm_dev"),
        jobs.results.tokens("strict"),
        jobs.call("score_minimal_pairs", suite=SUITE).arguments["source"],
        *jobs.call("finetune", experiment="strict", task=TASK).arguments["source"].values(),
        jobs.storage_path(readable_path("strict", "pretraining", TRAINED)),
    ]
    for name in read:
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(json.dumps(EMPTY), encoding="utf-8")
        if name.startswith("resources/"):
            location_of(project / name).write_text(json.dumps({"root": "raw"}), encoding="utf-8")
    search = [str(commands), str(Path(sys.executable).parent), "/usr/bin", "/bin"]
    environment = {**os.environ, "PATH": os.pathsep.join(search)}
    arguments = ["--profile", "slurm", "--retries", "0", "--software-deployment-method", "env-modules"]
    arguments += ["--slurm-init-seconds-before-status-checks", "1"]
    run = forked.run(
        [sys.executable, "-m", "snakemake", *arguments, "--allowed-rules", *TARGETS, "show_result", "--", *targets],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    lines = [json.loads(path.read_text(encoding="utf-8")) for path in calls.iterdir()]
    assert lines, run.stdout + run.stderr
    return {line[line.index("--comment") + 1].removeprefix("rule_").split("_wildcards_")[0]: line for line in lines}


def asked(line: list[str]) -> str:
    """Return a line without words that are no resources: names, logs, the folder, and the command itself."""
    words = [word for word in line if not word.startswith("--wrap=")]
    for option in ("--job-name", "--output", "--comment", "-D"):
        place = words.index(option)
        del words[place : place + 2]
    return " ".join(word for word in words if word not in ("--parsable", "--export=ALL"))


@pytest.mark.parametrize("rule", EXPECTED)
def test_the_line_of_each_kind_of_rule_asks_for_exactly_this(rule, sent):
    assert asked(sent[rule]) == EXPECTED[rule]


def test_every_other_job_ran_where_snakemake_runs(sent):
    assert set(sent) == set(EXPECTED)


def test_jobs_carry_the_name_of_the_workflow_and_their_rule(sent):
    for rule, line in sent.items():
        assert line[line.index("--job-name") + 1].startswith("hatchery")
        assert f"slurm_logs/rule_{rule}/" in line[line.index("--output") + 1]
