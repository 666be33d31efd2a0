"""Encode the documents of a corpus into token shards."""

import argparse
from pathlib import Path

from hatchery.command import add_settings_argument, load_settings, run_command
from hatchery.tokenization.encoder import encode_corpus
from hatchery.tokenization.tokenizer_file import use_threads


def main(arguments: argparse.Namespace) -> None:
    """Run the stage."""
    use_threads(arguments.threads)
    settings = load_settings(arguments.settings)
    encode_corpus(settings, arguments.corpus, arguments.tokenizer, arguments.output, arguments.threads)


def command_line() -> argparse.ArgumentParser:
    """The arguments of this command."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_settings_argument(parser)
    parser.add_argument("--corpus", type=Path, required=True, help="manifest of the corpus")
    parser.add_argument("--tokenizer", type=Path, required=True, help="manifest of the tokenizer")
    parser.add_argument("--output", type=Path, required=True, help="manifest to write; the shards lie beside it")
    parser.add_argument("--threads", type=int, help="threads to use (default: all cores); never changes the result")
    return parser


if __name__ == "__main__":
    run_command(main, command_line())
