"""How the processes of one training are started.

By Slurm's `srun`, by torchrun, or as a plain `python`. The resources of a rule say what was asked of a cluster; without
Slurm nobody granted them, so a configuration for a cluster can be run on a laptop, too.
"""

from collections.abc import Mapping
from typing import Any, Protocol

PLAIN = "python"
# Longer than the default grace time: torchrun kills its processes when it is over, also while they save a checkpoint.
SHUTDOWN_SECONDS = 180


class RequestedResources(Protocol):
    """What Snakemake hands to functions under `resources`."""

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a resource, or `default` where the rule does not ask for it."""


def launch_command(resources: RequestedResources, cpus_per_task: int, in_slurm_job: bool, gpus_here: int) -> str:
    """What stands in front of the script: the interpreter, with what starts it once per process.

    In a Slurm job in MPI mode every node and task is said: the job step's variables are gone where the rule's command
    runs, and a bare `srun` starts too few tasks or spreads them unevenly. Elsewhere `gpus_here`, the GPUs of this
    machine, are used, at most as many as one node of the cluster would have.
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
    """Nodes and tasks per node that a rule asks for; 1 x 1 without the key `mpi`."""
    if not resources.get("mpi"):
        return 1, 1
    nodes = int(resources.get("nodes") or 1)
    per_node = resources.get("tasks_per_node") or int(resources.get("tasks") or nodes) // nodes
    return nodes, max(1, int(per_node))


def is_slurm_job(is_main_process: bool, environment: Mapping[str, str]) -> bool:
    """Whether the Slurm executor started this Snakemake for one job.

    A job id alone is not enough: the main process may itself run in an allocation, with the local executor, whose
    nodes nobody compared with the rule's.
    """
    return not is_main_process and "SLURM_JOB_ID" in environment
