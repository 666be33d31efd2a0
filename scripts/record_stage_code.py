"""Record the code of every stage in the ledger, after deciding whether its version must be raised."""

import argparse
from pathlib import Path

from hatchery.command import run_command
from hatchery.environments.stage_code import record_ledger


def main(arguments: argparse.Namespace) -> None:
    """Record the ledger."""
    record_ledger(arguments.repository)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repository", type=Path, default=Path(), help="root of the checkout")
    run_command(main, parser)
