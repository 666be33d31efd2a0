"""Fine-tune or probe a pretrained model on a task, over seeds and learning rates: results, predictions, manifest."""

import argparse
from pathlib import Path

from hatchery.command import add_settings_argument, load_settings, named_paths, run_command
from hatchery.evaluation.finetuning.stage import finetune


def main(arguments: argparse.Namespace) -> None:
    """Hand the arguments to the library."""
    finetune(
        settings=load_settings(arguments.settings),
        runtime=load_settings(arguments.runtime),
        model=arguments.model,
        sources=named_paths(arguments.source),
        vocabulary=arguments.vocabulary,
        checkpoints=arguments.checkpoints,
        output=arguments.output,
    )


def build_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_settings_argument(parser)
    parser.add_argument("--runtime", default="{}", help="device and threads: JSON text or the path of a JSON file")
    parser.add_argument("--model", type=Path, required=True, help="manifest of a pretraining run")
    parser.add_argument(
        "--source",
        nargs="+",
        action="extend",
        metavar="NAME=PATH",
        help="source manifest of a task's raw files; repeat for each task that the model is transferred to",
    )
    parser.add_argument("--vocabulary", type=Path, help="manifest of a built vocabulary that rows must lie within")
    parser.add_argument("--checkpoints", type=Path, required=True, help="folder that keeps finished runs")
    parser.add_argument("--output", type=Path, required=True, help="manifest to write; results lie beside it")
    return parser


if __name__ == "__main__":
    run_command(main, build_parser())
