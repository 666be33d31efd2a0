"""Make the lock files from `requirements.in` and the conda environments from the lock and the scripts' imports."""

import argparse
from pathlib import Path

from hatchery.command import run_command
from hatchery.environments.generation import write_conda_environments, write_locks

REPOSITORY = Path(__file__).resolve().parent.parent


def make_parser() -> argparse.ArgumentParser:
    """The arguments of the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--locks", action="store_true", help="resolve requirements.in anew (needs uv and the network)")
    parser.add_argument("--envs", action="store_true", help="write envs/*.yaml from requirements.lock and the imports")
    parser.add_argument("--uv", default="uv", help="the uv program (default: the one on PATH)")
    return parser


def main(arguments: argparse.Namespace) -> None:
    """Write what was asked for; without an option, both."""
    everything = not (arguments.locks or arguments.envs)
    if arguments.locks or everything:
        write_locks(REPOSITORY, arguments.uv)
    if arguments.envs or everything:
        write_conda_environments(REPOSITORY)


if __name__ == "__main__":
    run_command(main, make_parser())
