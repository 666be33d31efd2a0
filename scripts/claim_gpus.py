"""Run a command on GPUs that no other job holds: `claim_gpus.py --gpus 1 -- python scripts/finetune.py ...`.

The command replaces this process, so that signals and the exit status are its own, and finds its GPUs in
CUDA_VISIBLE_DEVICES. Where there is nothing to choose (no GPU, or no more than are wanted) it just runs.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

from hatchery.command import run_command
from hatchery.errors import ConfigError
from hatchery.storage.gpu_claims import VISIBLE, claim, visible_gpus


def main(arguments: argparse.Namespace) -> None:
    """Claim the GPUs and become the command. Raises ConfigError when there is no such program."""
    command = arguments.command[1:] if arguments.command[:1] == ["--"] else arguments.command
    if not command:
        raise ConfigError("claim_gpus: got no command, expected one behind `--`")
    names = visible_gpus(os.environ)
    environment = dict(os.environ)
    if len(names) > arguments.gpus:
        held = claim(names, arguments.gpus, arguments.locks, lambda: _waiting(names, arguments.gpus))
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
    default = Path(tempfile.gettempdir()) / f"hatchery-gpus-{os.getuid()}"
    parser.add_argument("--locks", type=Path, default=default, help="folder of the lock files, on this machine")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="-- and the command with its arguments")
    run_command(main, parser)
