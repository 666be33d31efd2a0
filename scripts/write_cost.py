"""Estimate the cost of an experiment from its settings, as a CSV table, as text and as a page."""

import argparse
from pathlib import Path

from hatchery.command import add_settings_argument, load_settings, run_command
from hatchery.workflow.cost_table import write_cost


def main(arguments: argparse.Namespace) -> None:
    """Hand the arguments to the library."""
    write_cost(load_settings(arguments.settings), arguments.output, arguments.markdown, arguments.page)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    add_settings_argument(parser)
    parser.add_argument("--output", type=Path, required=True, help="the estimate as CSV")
    parser.add_argument("--markdown", type=Path, required=True, help="the estimate as text to read")
    parser.add_argument("--page", type=Path, required=True, help="the same as a page")
    run_command(main, parser)
