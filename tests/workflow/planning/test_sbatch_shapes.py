"""Every shape of pretraining gives an sbatch line that the Slurm executor accepts, free of contradictions."""

import re
from pathlib import Path
from typing import Any

import pytest
from snakemake_executor_plugin_slurm.submit_string import get_submit_command
from snakemake_executor_plugin_slurm.utils import set_gres_string
from snakemake_executor_plugin_slurm.validation import validate_slurm_extra

from hatchery.experiment.kinds import MainFile
from hatchery.typed import validated
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
    """What the executor writes behind the job's name and log, without the command."""
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
    # An executor that is not told of 0 tasks per GPU adds --ntasks-per-gpu=4, which makes 16 of 4.
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
    # What the executor does not write: how the processes start, and what is counted where jobs run at once.
    assert (asked.get("mpi"), asked["gpu_slots"]) == ("srun" if nodes * max(1, gpus) > 1 else None, gpus or 1)


@pytest.mark.parametrize("rule", STAGES)
@pytest.mark.parametrize("gpus", [0, 4])
def test_no_line_contradicts_itself(rule, gpus):
    got = line(rule, nodes=3, gpus_per_node=gpus, extra="--exclusive", partition="main")
    options = re.findall(r"(?<=\s)(--?[a-z-]+)", f" {got}")
    assert len(options) == len(set(options)), got
    assert not {"--ntasks", "--ntasks-per-node"} <= set(options)
    assert "--gpus" not in options
    if STAGES[rule].sort != "local":
        assert got.startswith("-p main ") and "--exclusive" in got
