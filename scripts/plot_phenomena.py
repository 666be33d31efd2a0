"""Draw the accuracy on minimal pairs by phenomenon for every model."""

import argparse
from pathlib import Path

from hatchery.analysis.figures.phenomena import plot_phenomena
from hatchery.command import add_settings_argument, load_settings, named_paths, run_command


def main(arguments: argparse.Namespace) -> None:
    """Draw the figure that the arguments ask for."""
    minimal_pairs = named_paths(arguments.minimal_pairs)
    plot_phenomena(load_settings(arguments.settings), minimal_pairs, arguments.output, arguments.published)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    add_settings_argument(parser)
    parser.add_argument("--minimal-pairs", nargs="+", action="extend", required=True, metavar="CELL:SUITE=MANIFEST")
    parser.add_argument("--published", type=Path, help="table of published values to mark")
    parser.add_argument("--output", required=True, type=Path, help="the figure as SVG")
    run_command(main, parser)
