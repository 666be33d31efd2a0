"""Write the static page of an experiment or a study: its results, tables, figures, corpora and runs in one file."""

import argparse
from pathlib import Path

from hatchery.command import add_settings_argument, load_settings, named_paths, run_command
from hatchery.views.page import PageInputs, write_page


def main(arguments: argparse.Namespace) -> None:
    """Write the page."""
    inputs = PageInputs(
        summary=arguments.summary,
        markdown=arguments.markdown,
        notes=arguments.notes,
        provenance=arguments.provenance,
        figures=arguments.figures,
        cards=named_paths(arguments.card),
        runs=arguments.runs,
        curves=arguments.curves,
        pretraining=named_paths(arguments.pretraining),
        tables=arguments.tables,
        filled=named_paths(arguments.filled),
        costs=arguments.cost,
        parts=named_paths(arguments.part),
        analyses=named_paths(arguments.analysis),
    )
    write_page(load_settings(arguments.settings), inputs, arguments.output)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    add_settings_argument(parser)
    parser.add_argument("--summary", type=Path, required=True, help="summary.csv of the experiment")
    parser.add_argument("--markdown", type=Path, required=True, help="readable summary of the experiment")
    parser.add_argument("--notes", type=Path, required=True, help="what there is to say of the numbers, as JSON")
    parser.add_argument("--provenance", type=Path, required=True, help="page of provenance of the experiment")
    parser.add_argument("--figures", type=Path, nargs="*", default=[], help="SVG files in the order of the page")
    parser.add_argument(
        "--card", nargs="+", action="extend", metavar="CORPUS=PATH", help="manifest of a corpus card; repeatable"
    )
    parser.add_argument("--runs", type=Path, help="runs.parquet of the experiment")
    parser.add_argument("--curves", type=Path, help="curves.parquet of the experiment")
    parser.add_argument(
        "--pretraining", nargs="+", action="extend", metavar="RUN=PATH", help="manifest of a run; repeatable"
    )
    parser.add_argument(
        "--filled",
        nargs="+",
        action="extend",
        metavar="RUN=PATH",
        help="manifest of what a model filled in; repeatable",
    )
    parser.add_argument("--cost", type=Path, nargs="*", default=[], help="pages of the estimated cost")
    parser.add_argument("--tables", type=Path, help="manifest of the tables of the paper that is repeated")
    parser.add_argument("--part", nargs="+", metavar="EXPERIMENT=PATH", help="pages of the experiments of a study")
    parser.add_argument("--analysis", nargs="+", metavar="NAME=PATH", help="manifests of what a study found")
    parser.add_argument("--output", type=Path, required=True, help="page to write")
    run_command(main, parser)
