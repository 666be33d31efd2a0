"""Pretrain a masked language model on token shards; status 75 means stopped by a signal, with a checkpoint to go on."""

import argparse
import sys
from pathlib import Path

from hatchery.command import add_settings_argument, load_settings, run_command
from hatchery.tokenization.shards import TOKEN_SHARDS, TRAINING_SPLIT, check_ahead
from hatchery.training.interruption import EXIT_STATUS_INTERRUPTED, TrainingInterrupted, leave_on_signals


def main(arguments: argparse.Namespace) -> None:
    """Hand the arguments to the library."""
    # While PyTorch is imported, a second processor has nothing to do.
    check_ahead(arguments.tokens, TOKEN_SHARDS, TRAINING_SPLIT)
    from hatchery.training.stage import pretrain

    try:
        pretrain(
            settings=load_settings(arguments.settings),
            runtime=load_settings(arguments.runtime),
            tokens=arguments.tokens,
            tokenizer=arguments.tokenizer,
            checkpoints=arguments.checkpoints,
            output=arguments.output,
            initial=arguments.initial_model,
            counts=arguments.counts,
            name=arguments.name,
        )
    except TrainingInterrupted as interruption:
        print(interruption, file=sys.stderr)
        sys.exit(EXIT_STATUS_INTERRUPTED)


def build_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_settings_argument(parser)
    parser.add_argument("--runtime", required=True, help="intervals, micro-batches, device: JSON text or a file's path")
    parser.add_argument("--tokens", type=Path, required=True, help="manifest of the token shards")
    parser.add_argument("--tokenizer", type=Path, required=True, help="manifest of the tokenizer")
    parser.add_argument(
        "--initial-model", type=Path, help="manifest of the model to start from instead of random weights"
    )
    parser.add_argument("--counts", type=Path, help="manifest of token shards in which the output bias is counted")
    parser.add_argument("--checkpoints", type=Path, required=True, help="folder for the folders of unfinished runs")
    parser.add_argument("--output", type=Path, required=True, help="manifest to write; the model lies beside it")
    parser.add_argument("--name", default="", help="what progress and sinks call the run (default: its folder)")
    return parser


if __name__ == "__main__":
    leave_on_signals()
    run_command(main, build_parser())
