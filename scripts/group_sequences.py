"""Group selected sentences and spans into sequences of a model's input length, with exact held-out numbers."""

import argparse
from pathlib import Path

from hatchery.artifacts.manifests import read_manifest, stage_run
from hatchery.command import add_settings_argument, load_settings, named_paths, run_command
from hatchery.corpora.sequence_settings import SequenceSettings
from hatchery.corpora.sequences import group_sequences
from hatchery.typed import build, stage_body


def main(arguments: argparse.Namespace) -> None:
    """Write the corpus of sequences into the folder of the output manifest."""
    settings = load_settings(arguments.settings)
    sequences = build(SequenceSettings, stage_body(settings))
    paths = named_paths(arguments.selection)
    held_out_paths = {} if arguments.held_out is None else {"held out": arguments.held_out}
    with stage_run(arguments.output, settings, {**paths, **held_out_paths}) as run:
        selections = {name: read_manifest(path) for name, path in paths.items()}
        held_out = None if arguments.held_out is None else read_manifest(arguments.held_out)
        group_sequences(sequences, selections, held_out, run)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    add_settings_argument(parser)
    parser.add_argument(
        "--selection",
        nargs="+",
        action="extend",
        metavar="NAME=PATH",
        help="manifest of one selection; repeat for each",
    )
    parser.add_argument("--held-out", type=Path, help="manifest of a corpus whose development and test are taken over")
    parser.add_argument("--output", type=Path, required=True, help="manifest.json; the shards are written beside it")
    run_command(main, parser)
