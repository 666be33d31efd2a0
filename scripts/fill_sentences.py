"""Leave a word out of some sentences of the corpus and write down what a pretrained model puts there."""

import argparse
from pathlib import Path

from hatchery.command import add_settings_argument, load_settings, run_command
from hatchery.evaluation.filled_sentences.stage import fill_sentences


def main(arguments: argparse.Namespace) -> None:
    """Hand the arguments to the library."""
    fill_sentences(load_settings(arguments.settings), arguments.pretraining, arguments.corpus, arguments.output)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    add_settings_argument(parser)
    parser.add_argument("--pretraining", type=Path, required=True, help="manifest of the pretrained model")
    parser.add_argument("--corpus", type=Path, required=True, help="manifest of the corpus that it was pretrained on")
    parser.add_argument("--output", type=Path, required=True, help="manifest to write; the sentences lie beside it")
    run_command(main, parser)
