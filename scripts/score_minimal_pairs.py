"""Score a suite of minimal pairs with a language model, ours or a public one; writes tables and a manifest."""

import argparse
from pathlib import Path

from hatchery.command import add_settings_argument, load_settings, run_command
from hatchery.evaluation.minimal_pairs.stage import score_minimal_pairs

MODEL_HELP = (
    "manifest of a pretraining run; with the setting model_kind: transformers, the source manifest of a registered "
    "folder that holds a model of that library"
)


def main(arguments: argparse.Namespace) -> None:
    """Hand the arguments to the library."""
    score_minimal_pairs(
        settings=load_settings(arguments.settings),
        runtime=load_settings(arguments.runtime),
        model=arguments.model,
        source=arguments.source,
        output=arguments.output,
    )


def build_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_settings_argument(parser)
    parser.add_argument("--runtime", default="{}", help="tokens_per_batch, device, threads: JSON text or a file's path")
    parser.add_argument("--model", type=Path, required=True, help=MODEL_HELP)
    parser.add_argument("--source", type=Path, required=True, help="manifest of the raw minimal pairs")
    parser.add_argument("--output", type=Path, required=True, help="manifest to write; results lie beside it")
    return parser


if __name__ == "__main__":
    run_command(main, build_parser())
