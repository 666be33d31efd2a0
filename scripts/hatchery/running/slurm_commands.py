"""Whether this machine can send jobs to Slurm, asked before anything is planned for it."""

import shutil

from hatchery.errors import ConfigError

COMMANDS = ("sbatch", "squeue")
"""What the executor calls to send jobs and to look after them."""


def require_slurm(executor: str, dry_run: bool) -> None:
    """Raise ConfigError where jobs are to be sent to Slurm from a machine without it; a dry run sends none."""
    missing = [command for command in COMMANDS if shutil.which(command) is None]
    if executor == "slurm" and missing and not dry_run:
        raise ConfigError(
            f"--profile slurm: this machine has no {' and no '.join(missing)}, so it cannot send jobs to Slurm; call "
            "it on a login node of the cluster, add -n to see the plan only, or leave --profile slurm out to run here"
        )
