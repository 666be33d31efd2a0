"""Run one analysis of a study or an experiment; its settings say which."""

import argparse
from pathlib import Path

from hatchery.analysis.analyses.stage import analyse
from hatchery.command import add_settings_argument, load_settings, named_paths, run_command


def main(arguments: argparse.Namespace) -> None:
    """Run the analysis that the arguments ask for."""
    tables, files = named_paths(arguments.tables), named_paths(arguments.files)
    analyse(load_settings(arguments.settings), tables, files, arguments.output)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    add_settings_argument(parser)
    parser.add_argument("--tables", nargs="+", metavar="NAME=PATH", help="tables of the study or experiment")
    parser.add_argument("--files", nargs="+", metavar="NAME=PATH", help="tables of published numbers")
    parser.add_argument("--output", required=True, type=Path, help="the manifest to write")
    run_command(main, parser)
