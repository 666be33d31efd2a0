"""Describe a corpus in a card: sizes beside the published ones, lengths, vocabulary, samples, and what was left out."""

import argparse
from pathlib import Path

from hatchery.command import add_settings_argument, load_settings, run_command
from hatchery.views.cards.stage import describe_corpus


def main(arguments: argparse.Namespace) -> None:
    """Write the card and its files into the folder of the output manifest."""
    describe_corpus(
        load_settings(arguments.settings),
        corpus=arguments.corpus,
        output=arguments.output,
        published=arguments.published,
        tokens=arguments.tokens,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    add_settings_argument(parser)
    parser.add_argument("--corpus", type=Path, required=True, help="manifest of the corpus")
    parser.add_argument("--published", type=Path, help="table of published corpus sizes (CSV)")
    parser.add_argument("--tokens", type=Path, help="manifest of the corpus's token shards, for the counts of subwords")
    parser.add_argument("--output", type=Path, required=True, help="manifest.json; the card is written beside it")
    run_command(main, parser)
