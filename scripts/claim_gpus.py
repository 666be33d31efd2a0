"""Run a command on GPUs that no other job has reserved: `claim_gpus.py --gpus 1 -- python scripts/run.py finetune ...`.

The command replaces this process, so that it receives signals and determines the exit status. CUDA_VISIBLE_DEVICES
lists the reserved GPUs. If the machine has fewer GPUs than requested, the command uses all GPUs; if it has no GPUs, the
command runs on the CPU.
"""

import argparse
import os
import sys
from pathlib import Path

from hatchery.artifacts.gpu_claims import VISIBLE, claim, lock_folder, visible_gpus
from hatchery.command import run_command
from hatchery.errors import ConfigError


def main(arguments: argparse.Namespace) -> None:
    """Reserve the GPUs, and replace this process by the command. Raises ConfigError if the program does not exist."""
    command = arguments.command[1:] if arguments.command[:1] == ["--"] else arguments.command
    if not command:
        raise ConfigError("claim_gpus: got no command, expected a command after `--`")
    names = visible_gpus(os.environ)
    environment = dict(os.environ)
    if names:
        # Reserve the GPUs even if the command needs all GPUs of the machine, so that no other job uses a GPU.
        wanted = min(arguments.gpus, len(names))
        locks = arguments.locks or lock_folder(os.environ)
        held = claim(names, wanted, locks, lambda: _waiting(names, wanted), jobs_per_gpu=arguments.jobs_per_gpu)
        environment[VISIBLE] = ",".join(held)
    try:
        os.execvpe(command[0], command, environment)
    except OSError as error:
        raise ConfigError(f"claim_gpus: {command[0]}: {error.strerror}") from None


def _waiting(names: list[str], wanted: int) -> None:
    print(
        f"waiting for {wanted} of the GPUs {', '.join(names)}: other jobs use these GPUs", file=sys.stderr, flush=True
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpus", type=int, required=True, help="number of GPUs that the command needs")
    parser.add_argument("--jobs-per-gpu", type=int, default=1, help="number of commands that may share a GPU")
    parser.add_argument("--locks", type=Path, help="folder of the lock files (default: in the temporary folder)")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="the command with its arguments, after --")
    run_command(main, parser)
