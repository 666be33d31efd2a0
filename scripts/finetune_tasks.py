"""Fine-tune or probe a pretrained model on several tasks in one process, each with a folder and manifest of its own."""

import argparse
from pathlib import Path

from hatchery.command import add_settings_argument, load_settings, named_paths, run_command
from hatchery.evaluation.finetuning.stage import finetune_tasks


def main(arguments: argparse.Namespace) -> None:
    """Hand the arguments to the library."""
    finetune_tasks(
        settings=load_settings(arguments.settings),
        runtime=load_settings(arguments.runtime),
        model=arguments.model,
        sources=named_paths(arguments.source),
        vocabularies=named_paths(arguments.vocabulary),
        checkpoints=arguments.checkpoints,
        folders={task: arguments.results / folder for task, folder in named_paths(arguments.folder).items()},
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
        help="source manifest of the raw files of a task or of one that models are transferred to; repeat",
    )
    parser.add_argument(
        "--vocabulary",
        nargs="+",
        action="extend",
        metavar="NAME=PATH",
        help="manifest of a built vocabulary that the rows of a task must lie within; repeat",
    )
    parser.add_argument("--checkpoints", type=Path, required=True, help="folder that keeps finished runs")
    parser.add_argument("--results", type=Path, required=True, help="folder in which every task has its folder")
    parser.add_argument(
        "--folder", nargs="+", action="extend", metavar="NAME=FOLDER", help="folder of a task's results; repeat"
    )
    parser.add_argument("--output", type=Path, required=True, help="manifest to write when all tasks are done")
    return parser


if __name__ == "__main__":
    run_command(main, build_parser())
