"""Build a vocabulary from child-directed transcripts or a released word list, with what stayed out and why."""

import argparse
from pathlib import Path

from hatchery.artifacts.manifests import stage_run
from hatchery.command import add_settings_argument, load_settings, run_command
from hatchery.typed import build, stage_body
from hatchery.vocabulary.build import build_vocabulary
from hatchery.vocabulary.settings import VocabularySettings


def main(arguments: argparse.Namespace) -> None:
    """Build the vocabulary into the folder of the output manifest."""
    settings = load_settings(arguments.settings)
    vocabulary = build(VocabularySettings, stage_body(settings))
    named = {name: getattr(arguments, name) for name in ("source", "dictionary", "released")}
    inputs = {name: path for name, path in named.items() if path is not None}
    with stage_run(arguments.output, settings, inputs) as run:
        build_vocabulary(vocabulary, arguments.source, arguments.dictionary, arguments.released, run)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    add_settings_argument(parser)
    parser.add_argument("--source", type=Path, required=True, help="source manifest of the transcripts or the list")
    parser.add_argument("--dictionary", type=Path, help="source manifest of word files that decide what is a word")
    parser.add_argument("--released", type=Path, help="source manifest of a list (word, frequency) to compare with")
    parser.add_argument("--output", type=Path, required=True, help="manifest.json; the tables are written beside it")
    run_command(main, parser)
