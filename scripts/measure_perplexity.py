"""Measure the perplexity of a pretrained model on held-out token shards: perplexity.csv and a manifest."""

import argparse
from pathlib import Path

from hatchery.command import add_settings_argument, load_settings, run_command
from hatchery.evaluation.perplexity.stage import measure_perplexity


def main(arguments: argparse.Namespace) -> None:
    """Hand the arguments to the library."""
    measure_perplexity(
        settings=load_settings(arguments.settings),
        runtime=load_settings(arguments.runtime),
        model=arguments.model,
        tokens=arguments.tokens,
        output=arguments.output,
    )


def build_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_settings_argument(parser)
    parser.add_argument("--runtime", default="{}", help="tokens_per_batch, device, threads: JSON text or a file's path")
    parser.add_argument("--model", type=Path, required=True, help="manifest of a pretraining run")
    parser.add_argument("--tokens", type=Path, required=True, help="manifest of the token shards")
    parser.add_argument("--output", type=Path, required=True, help="manifest to write; the table lies beside it")
    return parser


if __name__ == "__main__":
    run_command(main, build_parser())
