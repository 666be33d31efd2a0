"""The sbatch lines of the experiment `strict` on 4 nodes with 8 GPUs each, as Snakemake's Slurm executor sends them.

Snakemake really runs, with the shipped profile; the commands of Slurm are stubs that note what they were called with.
What jobs read is made up, because no job starts: `sbatch` refuses each one after it has noted it.
"""

import json
import os
import shutil
import stat
import sys
from pathlib import Path

import forked
import pytest

from hatchery.experiment.project import Project
from hatchery.raw.registration import location_of
from hatchery.workflow.jobs import Jobs

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
        f"{GPU_JOB.format(minutes=35, memory=8000)} --cpus-per-task=12 --requeue --exclude=n7 --gres=gpu:h100:1"
    ),
    "finetune": (
        f"{GPU_JOB.format(minutes=24, memory=8000)} --cpus-per-task=12 --requeue --exclude=n7 --gres=gpu:h100:1"
    ),
}


# A manifest, of a stage or a source, that lists no file.
STAGE = {"stage": "", "settings": {}, "inputs": {}, "outputs": [], "measures": {}}
EMPTY = {**STAGE, "name": "", "kind": "folder", "files": []}


def stub(folder: Path, name: str, body: str) -> None:
    path = folder / name
    path.write_text(f"#!{sys.executable}\n{body}", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.fixture(scope="module")
def sent(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> dict[str, list[str]]:
    """The arguments of every call of sbatch by rule; those of one run of Snakemake."""
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
        jobs.results.tokenizer("strict"),
        *jobs.data.corpus_sources("babylm_10M").values(),
        jobs.data.corpus_manifest("babylm_dev"),
        jobs.results.tokens("strict"),
        jobs.data.suite_source(SUITE),
        *jobs.results.task_sources(TASK).values(),
        jobs.place(f"results/strict/pretraining/{TRAINED}/manifest.json"),
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
    """A line without what says nothing about resources: names, logs, the folder, and the command itself."""
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
