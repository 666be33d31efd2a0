"""Translate test sets with a pretrained model: the translations, scores.csv with BLEU and chrF, and a manifest."""

import argparse
from pathlib import Path

from hatchery.command import add_settings_argument, load_settings, named_paths, run_command
from hatchery.evaluation.translation.stage import translate_tests


def main(arguments: argparse.Namespace) -> None:
    """Hand the arguments to the library."""
    translate_tests(
        settings=load_settings(arguments.settings),
        runtime=load_settings(arguments.runtime),
        model=arguments.model,
        corpora=named_paths(arguments.corpus),
        output=arguments.output,
    )


def build_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_settings_argument(parser)
    parser.add_argument("--runtime", default="{}", help="tokens_per_batch, device, threads: JSON text or a file's path")
    parser.add_argument("--model", type=Path, required=True, help="manifest of a pretraining run")
    parser.add_argument("--corpus", nargs="+", action="extend", metavar="TEST=PATH", help="manifests of the test sets")
    parser.add_argument("--output", type=Path, required=True, help="manifest to write; the table lies beside it")
    return parser


if __name__ == "__main__":
    run_command(main, build_parser())
