"""Summarise an experiment: tidy CSV and Parquet, Markdown for reading, plain text for the terminal."""

import argparse
from pathlib import Path

from hatchery.analysis.write_summary import write_summary
from hatchery.command import add_settings_argument, load_settings, named_paths, run_command


def main(arguments: argparse.Namespace) -> None:
    """Summarise as the arguments say."""
    write_summary(
        load_settings(arguments.settings),
        pretraining=named_paths(arguments.pretraining),
        minimal_pairs=named_paths([*arguments.minimal_pairs, *arguments.baseline]),
        finetuning=named_paths(arguments.finetuning),
        published=arguments.published,
        output=arguments.output,
        parquet=arguments.parquet,
        markdown=arguments.markdown,
        text=arguments.text,
        perplexity=named_paths(arguments.perplexity),
        notes=arguments.notes,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    add_settings_argument(parser)
    parser.add_argument("--pretraining", nargs="+", action="extend", metavar="CELL=MANIFEST", help="pretrained models")
    parser.add_argument("--minimal-pairs", nargs="+", action="extend", default=[], metavar="CELL:SUITE=MANIFEST")
    parser.add_argument(
        "--baseline",
        nargs="+",
        action="extend",
        default=[],
        metavar="BASELINE:SUITE=MANIFEST",
        help="minimal pairs of models from elsewhere",
    )
    parser.add_argument("--finetuning", nargs="+", action="extend", metavar="CELL:TASK=MANIFEST")
    parser.add_argument("--perplexity", nargs="+", action="extend", metavar="CELL=MANIFEST", help="held-out text")
    parser.add_argument("--published", type=Path, help="table of published values to compare with")
    parser.add_argument("--output", required=True, type=Path, help="the summary as CSV")
    parser.add_argument("--parquet", type=Path, help="the same rows as Parquet")
    parser.add_argument("--markdown", type=Path, help="readable tables")
    parser.add_argument("--notes", type=Path, help="what there is to say of the numbers, as JSON")
    parser.add_argument("--text", type=Path, help="plain text for the terminal")
    run_command(main, parser)
