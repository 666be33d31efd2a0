"""Learn the sentence splitter's model of English from public texts; a development command, no rule calls it."""

import argparse
from pathlib import Path

from hatchery.command import run_command
from hatchery.corpora.sentence_training import train_model
from hatchery.corpora.sentences import MODEL_FOLDER


def main(arguments: argparse.Namespace) -> None:
    """Train by the recipe and write the parameter files."""
    train_model(arguments.recipe, dict(arguments.source or ()), arguments.output)


def named(pair: str) -> tuple[str, Path]:
    """The name and the path of `NAME=PATH`. Raises ArgumentTypeError for other words."""
    name, separator, path = pair.partition("=")
    if not (name and separator and path):
        raise argparse.ArgumentTypeError(f"expected NAME=PATH, got {pair!r}")
    return name, Path(path)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--recipe", type=Path, default=MODEL_FOLDER / "recipe.json", help="what the model is made of")
    parser.add_argument(
        "--source",
        nargs="+",
        action="extend",
        type=named,
        metavar="NAME=PATH",
        help="zip archive of one text of the recipe; repeat for each",
    )
    parser.add_argument("--output", type=Path, default=MODEL_FOLDER, help="folder of the parameter files")
    run_command(main, parser)
