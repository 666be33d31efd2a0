"""Select the sentences or spans of texts that lie within a vocabulary, or draw windows without regard to it."""

import argparse
from pathlib import Path

from hatchery.artifacts.manifests import stage_run
from hatchery.command import add_settings_argument, load_settings, run_command
from hatchery.typed import build, stage_body
from hatchery.vocabulary.select import select_text
from hatchery.vocabulary.settings import SelectionSettings


def main(arguments: argparse.Namespace) -> None:
    """Select into the folder of the output manifest."""
    settings = load_settings(arguments.settings)
    selection = build(SelectionSettings, stage_body(settings))
    model = arguments.sentence_model
    inputs = {"source": arguments.source, "vocabulary": arguments.vocabulary}
    with stage_run(arguments.output, settings, inputs if model is None else {**inputs, "sentence model": model}) as run:
        select_text(selection, arguments.source, arguments.vocabulary, run, model, arguments.workers)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    add_settings_argument(parser)
    parser.add_argument("--source", type=Path, required=True, help="manifest of a raw source, or of a corpus")
    parser.add_argument("--vocabulary", type=Path, required=True, help="manifest of a built vocabulary")
    parser.add_argument("--sentence-model", type=Path, help="source manifest of Punkt parameters instead of our own")
    parser.add_argument("--workers", type=int, default=1, help="processes that read files; no output depends on it")
    parser.add_argument("--output", type=Path, required=True, help="manifest.json; the shards are written beside it")
    run_command(main, parser)
