"""Write the tables of a paper in its layout, as Markdown and LaTeX: our numbers with the printed ones beside them."""

import argparse
from pathlib import Path

from hatchery.command import add_settings_argument, load_settings, named_paths, run_command
from hatchery.views.paper_tables.stage import Inputs, write_tables


def main(arguments: argparse.Namespace) -> None:
    """Write the tables into the folder of the output manifest."""
    inputs = Inputs(
        summary=arguments.summary,
        published=arguments.published,
        layout=arguments.layout,
        measurements=arguments.measurements,
        layers=arguments.layers,
        sizes=arguments.sizes,
        cards=named_paths(arguments.card),
    )
    write_tables(load_settings(arguments.settings), inputs, arguments.output)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    add_settings_argument(parser)
    parser.add_argument("--summary", type=Path, required=True, help="summary.csv of the experiment")
    parser.add_argument("--published", type=Path, required=True, help="table of the paper's numbers (CSV)")
    parser.add_argument("--layout", type=Path, required=True, help="layout of the paper's tables (YAML)")
    parser.add_argument("--measurements", type=Path, required=True, help="measurements.parquet of the experiment")
    parser.add_argument("--layers", type=Path, required=True, help="layers.parquet of the experiment")
    parser.add_argument("--sizes", type=Path, required=True, help="table of published corpus sizes (CSV)")
    parser.add_argument(
        "--card", nargs="+", action="extend", metavar="CORPUS=STATISTICS", help="statistics.csv of a card"
    )
    parser.add_argument("--output", type=Path, required=True, help="manifest.json; the tables are written beside it")
    run_command(main, parser)
