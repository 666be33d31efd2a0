"""Summarise an experiment: tidy CSV and Parquet, Markdown for reading, plain text for the terminal."""

import argparse
from pathlib import Path

from hatchery.command import add_settings_argument, load_settings, run_command
from hatchery.views.write_summary import write_summary


def main(arguments: argparse.Namespace) -> None:
    """Summarise as the arguments say."""
    write_summary(
        load_settings(arguments.settings),
        measurements=arguments.measurements,
        published=arguments.published,
        output=arguments.output,
        parquet=arguments.parquet,
        markdown=arguments.markdown,
        text=arguments.text,
        notes=arguments.notes,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    add_settings_argument(parser)
    parser.add_argument("--measurements", required=True, type=Path, help="measurements.parquet of the experiment")
    parser.add_argument(
        "--published", type=Path, nargs="*", default=[], help="tables of published values to compare with"
    )
    parser.add_argument("--output", required=True, type=Path, help="the summary as CSV")
    parser.add_argument("--parquet", type=Path, help="the same rows as Parquet")
    parser.add_argument("--markdown", type=Path, help="readable tables")
    parser.add_argument("--notes", type=Path, help="what there is to say of the numbers, as JSON")
    parser.add_argument("--text", type=Path, help="plain text for the terminal")
    run_command(main, parser)
