"""Draw one figure of an experiment; its settings say which."""

import argparse
from pathlib import Path

from hatchery.command import add_settings_argument, load_settings, named_paths, run_command
from hatchery.views.figures.stage import draw_figure


def main(arguments: argparse.Namespace) -> None:
    """Draw the figure that the arguments ask for."""
    draw_figure(load_settings(arguments.settings), named_paths(arguments.tables), arguments.output)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    add_settings_argument(parser)
    parser.add_argument("--tables", nargs="+", action="extend", required=True, metavar="NAME=PATH")
    parser.add_argument("--output", required=True, type=Path, help="the figure as SVG")
    run_command(main, parser)
