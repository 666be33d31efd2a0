"""Write the card of a pretraining: its settings, cost, curves, checkpoints, machine and files."""

import argparse
from pathlib import Path

from hatchery.command import add_settings_argument, load_settings, run_command
from hatchery.views.run_cards.stage import write_run_card


def main(arguments: argparse.Namespace) -> None:
    """Write the card."""
    write_run_card(
        load_settings(arguments.settings),
        arguments.pretraining,
        arguments.cost,
        arguments.output,
        arguments.markdown,
        arguments.drawing,
        arguments.filled,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    add_settings_argument(parser)
    parser.add_argument("--pretraining", type=Path, required=True, help="manifest of the pretrained model")
    parser.add_argument("--cost", type=Path, help="estimated cost of the experiment, a CSV table")
    parser.add_argument("--filled", type=Path, help="manifest of sentences that the model filled in")
    parser.add_argument("--output", type=Path, required=True, help="card to write, a page")
    parser.add_argument("--markdown", type=Path, required=True, help="the same card as Markdown")
    parser.add_argument("--drawing", type=Path, required=True, help="curves of the run, an SVG file")
    run_command(main, parser)
