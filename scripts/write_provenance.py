"""Write the page of provenance of an experiment: every number with its manifests, settings and raw files."""

import argparse
from pathlib import Path

from hatchery.command import add_settings_argument, load_settings, run_command
from hatchery.views.provenance_page import write_provenance


def main(arguments: argparse.Namespace) -> None:
    """Write the page."""
    write_provenance(load_settings(arguments.settings), arguments.summary, arguments.output)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    add_settings_argument(parser)
    parser.add_argument("--summary", type=Path, required=True, help="summary.csv of the experiment")
    parser.add_argument("--output", type=Path, required=True, help="page to write")
    run_command(main, parser)
