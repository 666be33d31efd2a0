"""Write the static page of an experiment: its tables and figures in one file."""

import argparse
from pathlib import Path

from hatchery.analysis.page import write_page
from hatchery.command import add_settings_argument, load_settings, named_paths, run_command


def main(arguments: argparse.Namespace) -> None:
    """Write the page."""
    write_page(
        load_settings(arguments.settings),
        arguments.markdown,
        arguments.figures,
        arguments.output,
        named_paths(arguments.card),
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    add_settings_argument(parser)
    parser.add_argument("--markdown", type=Path, required=True, help="readable summary of the experiment")
    parser.add_argument("--figures", type=Path, nargs="*", default=[], help="SVG files in the order of the page")
    parser.add_argument("--card", action="append", metavar="CORPUS=PATH", help="manifest of a corpus card; repeatable")
    parser.add_argument("--output", type=Path, required=True, help="page to write")
    run_command(main, parser)
