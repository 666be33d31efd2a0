"""The command that starts the processes of a training, with Slurm's `srun`, with torchrun, or with `python`.

The resources of a rule describe a request to a cluster. Without Slurm, the GPUs of this machine are used instead, so
that a configuration for a cluster also runs on a laptop.
"""

from collections.abc import Mapping
from typing import Any, Protocol

PLAIN = "python"
# Number of seconds that torchrun waits before it kills its processes. torchrun's default is shorter, and would not give
# the processes enough time to save a checkpoint.
SHUTDOWN_SECONDS = 180


class RequestedResources(Protocol):
    """Interface of the `resources` object that Snakemake passes to functions."""

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value of a resource, or `default` if the rule does not request it."""


def launch_command(resources: RequestedResources, cpus_per_task: int, in_slurm_job: bool, gpus_here: int) -> str:
    """Return the beginning of a training's command: the launcher, followed by the Python interpreter.

    In a Slurm job with several processes, the command states the number of nodes and the number of tasks. Without these
    numbers, `srun` would start too few tasks or distribute them unevenly, because Slurm's variables of the job step are
    not set when the rule's command runs. Outside of Slurm, the number of processes is the number of GPUs per node that
    the rule requests, but at most `gpus_here`, the number of GPUs of this machine.
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
    """Return (number of nodes, number of tasks per node) that a rule requests; (1, 1) if the rule has no resource
    `mpi`.
    """
    if not resources.get("mpi"):
        return 1, 1
    nodes = int(resources.get("nodes") or 1)
    per_node = resources.get("tasks_per_node") or int(resources.get("tasks") or nodes) // nodes
    return nodes, max(1, int(per_node))


def is_slurm_job(is_main_process: bool, environment: Mapping[str, str]) -> bool:
    """Return True if the Slurm executor started this Snakemake process for one job.

    A Slurm job id in the environment is no proof. Snakemake's main process, with the local executor, may also run in a
    Slurm allocation, whose nodes need not match the rule's request.
    """
    return not is_main_process and "SLURM_JOB_ID" in environment
