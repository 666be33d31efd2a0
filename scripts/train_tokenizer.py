"""Train a tokenizer on one or several corpora, or take one that is there."""

import argparse
from pathlib import Path

from hatchery.command import add_settings_argument, load_settings, run_command
from hatchery.tokenization.imported_tokenizer import import_tokenizer, is_imported
from hatchery.tokenization.tokenizer_file import use_threads
from hatchery.tokenization.trainer import train_tokenizer


def main(arguments: argparse.Namespace) -> None:
    """Run the stage."""
    use_threads(arguments.threads)
    settings = load_settings(arguments.settings)
    if is_imported(settings):
        import_tokenizer(settings, arguments.corpus[0], arguments.output)
    else:
        train_tokenizer(settings, arguments.corpus, arguments.output)


def command_line() -> argparse.ArgumentParser:
    """The arguments of this command."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_settings_argument(parser)
    parser.add_argument(
        "--corpus", type=Path, nargs="+", required=True, help="manifests of the corpora, or a tokenizer.json"
    )
    parser.add_argument("--output", type=Path, required=True, help="manifest to write; tokenizer.json lies beside it")
    parser.add_argument("--threads", type=int, help="threads to use (default: all cores); never changes the result")
    return parser


if __name__ == "__main__":
    run_command(main, command_line())
