"""Join the tidy tables of several experiments into those of a study."""

import argparse
from pathlib import Path

from hatchery.analysis.join_experiments import join_experiments
from hatchery.analysis.tidy_tables import TABLES
from hatchery.command import add_settings_argument, load_settings, named_paths, run_command


def main(arguments: argparse.Namespace) -> None:
    """Join the tables that the arguments name."""
    tables = {table.name: named_paths(getattr(arguments, table.name)) for table in TABLES}
    join_experiments(load_settings(arguments.settings), tables, arguments.output)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    add_settings_argument(parser)
    for table in TABLES:
        parser.add_argument(f"--{table.name}", nargs="+", required=True, metavar="EXPERIMENT=PATH", help="its table")
    parser.add_argument("--output", required=True, type=Path, help="measurements.parquet of the study")
    run_command(main, parser)
