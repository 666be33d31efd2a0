"""Run a command on GPUs that no other job holds: `claim_gpus.py --gpus 1 -- python scripts/run.py finetune ...`.

The command replaces this process, so that signals and the exit status are its own, and finds its GPUs in
CUDA_VISIBLE_DEVICES. Where there are fewer than wanted it takes all of them, and without any it just runs.
"""

import argparse
import os
import sys
from pathlib import Path

from hatchery.artifacts.gpu_claims import VISIBLE, claim, lock_folder, visible_gpus
from hatchery.command import run_command
from hatchery.errors import ConfigError


def main(arguments: argparse.Namespace) -> None:
    """Claim the GPUs and become the command. Raises ConfigError when there is no such program."""
    command = arguments.command[1:] if arguments.command[:1] == ["--"] else arguments.command
    if not command:
        raise ConfigError("claim_gpus: got no command, expected one behind `--`")
    names = visible_gpus(os.environ)
    environment = dict(os.environ)
    if names:
        # Also where there is nothing to choose: another job may want fewer and find them free.
        wanted = min(arguments.gpus, len(names))
        locks = arguments.locks or lock_folder(os.environ)
        held = claim(names, wanted, locks, lambda: _waiting(names, wanted), jobs_per_gpu=arguments.jobs_per_gpu)
        environment[VISIBLE] = ",".join(held)
    try:
        os.execvpe(command[0], command, environment)
    except OSError as error:
        raise ConfigError(f"claim_gpus: {command[0]}: {error.strerror}") from None


def _waiting(names: list[str], wanted: int) -> None:
    print(f"waiting for {wanted} of the GPUs {', '.join(names)}: other jobs hold them", file=sys.stderr, flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpus", type=int, required=True, help="how many the command may use")
    parser.add_argument("--jobs-per-gpu", type=int, default=1, help="how many such commands may share a GPU")
    parser.add_argument(
        "--locks", type=Path, help="folder of the lock files (default: a temporary one of this machine)"
    )
    parser.add_argument("command", nargs=argparse.REMAINDER, help="-- and the command with its arguments")
    run_command(main, parser)
