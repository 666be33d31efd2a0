"""Export a pretrained model as a folder that the `transformers` library loads, with a model card."""

import argparse
from pathlib import Path

from hatchery.command import add_settings_argument, load_settings, run_command
from hatchery.export.stage import export_model


def main(arguments: argparse.Namespace) -> None:
    """Hand the arguments to the library."""
    export_model(
        load_settings(arguments.settings),
        arguments.pretraining,
        arguments.summary,
        arguments.output,
        arguments.filled,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    add_settings_argument(parser)
    parser.add_argument("--pretraining", type=Path, required=True, help="manifest of the pretrained model")
    parser.add_argument("--summary", type=Path, help="summary.csv of the experiment, for the scores in the card")
    parser.add_argument("--filled", type=Path, help="manifest of sentences that the model filled in, for the card")
    parser.add_argument("--output", type=Path, required=True, help="manifest to write; the model lies beside it")
    run_command(main, parser)
