"""Train a tokenizer on one or several corpora."""

import argparse
from pathlib import Path

from hatchery.command import add_settings_argument, load_settings, run_command
from hatchery.tokenization.threads import use_threads
from hatchery.tokenization.trainer import train_tokenizer


def main(arguments: argparse.Namespace) -> None:
    """Run the stage."""
    use_threads(arguments.threads)
    train_tokenizer(load_settings(arguments.settings), arguments.corpus, arguments.output)


def command_line() -> argparse.ArgumentParser:
    """The arguments of this command."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_settings_argument(parser)
    parser.add_argument("--corpus", type=Path, nargs="+", required=True, help="manifests of the corpora, at least one")
    parser.add_argument("--output", type=Path, required=True, help="manifest to write; tokenizer.json lies beside it")
    parser.add_argument("--threads", type=int, help="threads to use (default: all cores); never changes the result")
    return parser


if __name__ == "__main__":
    run_command(main, command_line())
