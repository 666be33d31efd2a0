"""Draw the distribution of the linguistic bias score of every model as violins."""

import argparse
from pathlib import Path

from hatchery.analysis.figures.bias_violins import plot_bias_violins
from hatchery.command import add_settings_argument, load_settings, named_paths, run_command


def main(arguments: argparse.Namespace) -> None:
    """Draw the figure that the arguments ask for."""
    finetuning = named_paths(arguments.finetuning)
    plot_bias_violins(load_settings(arguments.settings), finetuning, arguments.output, arguments.published)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    add_settings_argument(parser)
    parser.add_argument("--finetuning", nargs="+", action="extend", required=True, metavar="CELL:TASK=MANIFEST")
    parser.add_argument("--published", type=Path, help="table of published values to mark")
    parser.add_argument("--output", required=True, type=Path, help="the figure as SVG")
    run_command(main, parser)
