"""Draw training and development loss of every model against the tokens it has seen."""

import argparse
from pathlib import Path

from hatchery.analysis.figures.learning_curves import plot_learning_curves
from hatchery.command import add_settings_argument, load_settings, named_paths, run_command


def main(arguments: argparse.Namespace) -> None:
    """Draw the figure that the arguments ask for."""
    plot_learning_curves(load_settings(arguments.settings), named_paths(arguments.pretraining), arguments.output)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    add_settings_argument(parser)
    parser.add_argument("--pretraining", nargs="+", action="extend", required=True, metavar="CELL=MANIFEST")
    parser.add_argument("--output", required=True, type=Path, help="the figure as SVG")
    run_command(main, parser)
