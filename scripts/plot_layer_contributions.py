"""Draw what the layers of every model contribute to its probes, and write the numbers as a table."""

import argparse
from pathlib import Path

from hatchery.analysis.figures.layer_contributions import plot_layer_contributions
from hatchery.command import add_settings_argument, load_settings, named_paths, run_command


def main(arguments: argparse.Namespace) -> None:
    """Draw the figure that the arguments ask for."""
    plot_layer_contributions(
        load_settings(arguments.settings), named_paths(arguments.finetuning), arguments.output, arguments.table
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    add_settings_argument(parser)
    parser.add_argument("--finetuning", nargs="+", action="extend", required=True, metavar="CELL:TASK=MANIFEST")
    parser.add_argument("--output", required=True, type=Path, help="the figure as SVG")
    parser.add_argument("--table", required=True, type=Path, help="the numbers as CSV")
    run_command(main, parser)
