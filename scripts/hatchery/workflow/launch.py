"""The command that starts the processes of one training: Slurm's `srun`, torchrun, or a plain `python`.

The resources of a rule are a request to a cluster. Without Slurm they are not granted, so a configuration for a
cluster also runs on a laptop.
"""

from collections.abc import Mapping
from typing import Any, Protocol

PLAIN = "python"
# Longer than the default grace time: torchrun kills its processes after this time, even if they still save a
# checkpoint.
SHUTDOWN_SECONDS = 180


class RequestedResources(Protocol):
    """The `resources` that Snakemake passes to functions."""

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value of a resource, or `default` if the rule does not request it."""


def launch_command(resources: RequestedResources, cpus_per_task: int, in_slurm_job: bool, gpus_here: int) -> str:
    """Return the beginning of a command: the interpreter, after the launcher that starts it once per process.

    In a Slurm job in MPI mode, numbers of nodes and tasks are explicit: the variables of the job step are unset when
    the rule's command runs, and a bare `srun` starts too few tasks or spreads them unevenly. Elsewhere `gpus_here`,
    the GPUs of this machine, are used, at most as many as one node of the cluster would have.
    """
    nodes, per_node = shape_of(resources)
    if nodes * per_node == 1:
        return PLAIN
    if in_slurm_job:
        return (
            f"srun --nodes={nodes} --ntasks={nodes * per_node} --ntasks-per-node={per_node}"
            f" --distribution=block --cpus-per-task={cpus_per_task} --kill-on-bad-exit=1 --label {PLAIN}"
        )
    processes = min(per_node, gpus_here)
    if processes < 2:
        return PLAIN
    return (
        f"{PLAIN} -m torch.distributed.run --standalone --nproc-per-node={processes}"
        f" --shutdown-timeout={SHUTDOWN_SECONDS}"
    )


def shape_of(resources: RequestedResources) -> tuple[int, int]:
    """Return the numbers of nodes and of tasks per node that a rule requests; 1 and 1 without the key `mpi`."""
    if not resources.get("mpi"):
        return 1, 1
    nodes = int(resources.get("nodes") or 1)
    per_node = resources.get("tasks_per_node") or int(resources.get("tasks") or nodes) // nodes
    return nodes, max(1, int(per_node))


def is_slurm_job(is_main_process: bool, environment: Mapping[str, str]) -> bool:
    """Return True if the Slurm executor started this Snakemake for one job.

    A job id alone is no proof: the main process may itself run in an allocation with the local executor, and the nodes
    of that allocation need not match the rule's request.
    """
    return not is_main_process and "SLURM_JOB_ID" in environment
