"""One command for every shape: alone, one big machine, and the nodes of a cluster."""

from typing import Any

import pytest

from hatchery.workflow.resources import is_slurm_job, launch_command, shape_of

ONE_GPU = {"gres": "gpu:1", "cpus_per_task": 4}
ONE_NODE = {"mpi": "srun", "nodes": 1, "tasks_per_node": 8}
TWO_SINGLES = {"mpi": "srun", "nodes": 2, "tasks": 2, "tasks_per_gpu": 0}
FOUR_NODES = {"mpi": "srun", "nodes": 4, "tasks_per_node": 8}


@pytest.mark.parametrize(
    ("resources", "shape"),
    [({}, (1, 1)), (ONE_GPU, (1, 1)), (ONE_NODE, (1, 8)), (TWO_SINGLES, (2, 1)), (FOUR_NODES, (4, 8))],
)
def test_nodes_and_tasks_are_read_from_the_keys_of_every_shape(
    resources: dict[str, Any], shape: tuple[int, int]
) -> None:
    assert shape_of(resources) == shape


@pytest.mark.parametrize(
    ("resources", "layout"),
    [
        (ONE_NODE, "--nodes=1 --ntasks=8 --ntasks-per-node=8"),
        (TWO_SINGLES, "--nodes=2 --ntasks=2 --ntasks-per-node=1"),
        (FOUR_NODES, "--nodes=4 --ntasks=32 --ntasks-per-node=8"),
    ],
)
def test_in_a_slurm_job_srun_is_told_every_node_and_task(resources: dict[str, Any], layout: str) -> None:
    options = "--distribution=block --cpus-per-task=6 --kill-on-bad-exit=1 --label"
    assert launch_command(resources, 6, in_slurm_job=True, gpus_here=0) == f"srun {layout} {options} python"


@pytest.mark.parametrize("in_slurm_job", [True, False])
def test_one_process_needs_nothing_that_starts_it(in_slurm_job: bool) -> None:
    assert launch_command(ONE_GPU, 4, in_slurm_job, gpus_here=8) == "python"


@pytest.mark.parametrize("gpus", [0, 1])
def test_a_laptop_runs_a_configuration_for_a_cluster_in_one_process(gpus: int) -> None:
    assert launch_command(FOUR_NODES, 4, in_slurm_job=False, gpus_here=gpus) == "python"


@pytest.mark.parametrize(("gpus", "processes"), [(2, 2), (8, 8), (16, 8)])
def test_one_big_machine_starts_a_process_for_each_gpu_but_no_more_than_asked_for(gpus: int, processes: int) -> None:
    command = launch_command(ONE_NODE, 4, in_slurm_job=False, gpus_here=gpus)
    assert command.startswith(f"python -m torch.distributed.run --standalone --nproc-per-node={processes} ")


def test_a_main_process_inside_an_allocation_is_no_slurm_job() -> None:
    job = {"SLURM_JOB_ID": "7"}
    assert is_slurm_job(is_main_process=False, environment=job)
    assert not is_slurm_job(is_main_process=True, environment=job)
    assert not is_slurm_job(is_main_process=False, environment={})
