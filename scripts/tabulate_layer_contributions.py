"""Write what the layers of every model contribute to its probes as a table."""

import argparse
from pathlib import Path

from hatchery.analysis.layer_contribution import tabulate_layer_contributions
from hatchery.command import add_settings_argument, load_settings, named_paths, run_command


def main(arguments: argparse.Namespace) -> None:
    """Write the table that the arguments ask for."""
    tabulate_layer_contributions(load_settings(arguments.settings), named_paths(arguments.finetuning), arguments.output)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    add_settings_argument(parser)
    parser.add_argument("--finetuning", nargs="+", action="extend", required=True, metavar="CELL:TASK=MANIFEST")
    parser.add_argument("--output", required=True, type=Path, help="the table as CSV")
    run_command(main, parser)
