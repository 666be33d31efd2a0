"""Make `.venv` from the lock files; runs on a bare Python 3.11, before anything is installed."""

import argparse
from pathlib import Path

from hatchery.command import run_command
from hatchery.environments.installation import install_environment

REPOSITORY = Path(__file__).resolve().parent.parent


def make_parser() -> argparse.ArgumentParser:
    """The arguments of the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=REPOSITORY / ".venv", help="where to make it (default: .venv)")
    return parser


def main(arguments: argparse.Namespace) -> None:
    """Install, or find that all is there."""
    install_environment(REPOSITORY, arguments.folder)


if __name__ == "__main__":
    run_command(main, make_parser())
