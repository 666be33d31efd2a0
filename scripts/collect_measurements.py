"""Collect what all runs of an experiment measured into tidy tables: measurements, runs, curves and layers."""

import argparse
from pathlib import Path

from hatchery.analysis.collect_measurements import Inputs, collect_measurements
from hatchery.command import add_settings_argument, load_settings, named_paths, run_command


def main(arguments: argparse.Namespace) -> None:
    """Collect as the arguments say."""
    inputs = Inputs(
        pretraining=named_paths(arguments.pretraining),
        minimal_pairs=named_paths([*arguments.minimal_pairs, *arguments.baseline]),
        finetuning=named_paths(arguments.finetuning),
        perplexity=named_paths(arguments.perplexity),
        translation=named_paths(arguments.translation),
        tokens=arguments.tokens,
    )
    collect_measurements(load_settings(arguments.settings), inputs, arguments.output)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    add_settings_argument(parser)
    parser.add_argument("--pretraining", nargs="+", action="extend", metavar="RUN=MANIFEST", help="pretrained models")
    parser.add_argument("--minimal-pairs", nargs="+", action="extend", default=[], metavar="RUN:SUITE=MANIFEST")
    parser.add_argument(
        "--baseline",
        nargs="+",
        action="extend",
        default=[],
        metavar="BASELINE:SUITE=MANIFEST",
        help="minimal pairs of models from elsewhere",
    )
    parser.add_argument("--finetuning", nargs="+", action="extend", metavar="RUN:TASK=MANIFEST")
    parser.add_argument("--perplexity", nargs="+", action="extend", metavar="RUN=MANIFEST", help="held-out text")
    parser.add_argument("--translation", nargs="+", action="extend", metavar="RUN=MANIFEST", help="translated tests")
    parser.add_argument("--tokens", type=Path, help="manifest of the token shards that the models were trained on")
    parser.add_argument("--output", required=True, type=Path, help="measurements.parquet; the others lie beside it")
    run_command(main, parser)
