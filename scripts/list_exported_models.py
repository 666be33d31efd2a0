"""List the exported models of an experiment on one page, with their sizes and main scores."""

import argparse
from pathlib import Path

from hatchery.command import add_settings_argument, load_settings, named_paths, run_command
from hatchery.export.listing import list_exported_models


def main(arguments: argparse.Namespace) -> None:
    """Hand the arguments to the library."""
    list_exported_models(load_settings(arguments.settings), named_paths(arguments.model), arguments.output)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    add_settings_argument(parser)
    parser.add_argument("--model", nargs="+", action="extend", metavar="RUN=MANIFEST", help="exported models")
    parser.add_argument("--output", type=Path, required=True, help="page to write")
    run_command(main, parser)
