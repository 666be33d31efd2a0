"""Write the conda environments (envs/*.yaml) from the lock and the imports of the scripts."""

import argparse
from pathlib import Path

from hatchery.command import run_command
from hatchery.environments import write_conda_environments


def main(arguments: argparse.Namespace) -> None:
    """Write all of them."""
    write_conda_environments(arguments.repository)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    repository = Path(__file__).resolve().parent.parent
    parser.add_argument("--repository", type=Path, default=repository, help="the checkout (default: this one)")
    run_command(main, parser)
