"""Convert raw sources to a corpus of documents: shards per split, statistics, and counts of what was left out."""

import argparse
from pathlib import Path

from hatchery.artifacts.manifests import stage_run
from hatchery.command import add_settings_argument, load_settings, named_paths, run_command
from hatchery.corpora.convert import convert_corpus
from hatchery.corpora.settings import ConvertSettings
from hatchery.typed import build, stage_body


def main(arguments: argparse.Namespace) -> None:
    """Convert the named sources into the folder of the output manifest."""
    settings = load_settings(arguments.settings)
    corpus = build(ConvertSettings, stage_body(settings))
    manifests = named_paths(arguments.source)
    model = {} if arguments.sentence_model is None else {"sentence model": arguments.sentence_model}
    with stage_run(arguments.output, settings, {**manifests, **model}) as run:
        convert_corpus(corpus, manifests, run, arguments.sentence_model, arguments.workers)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    add_settings_argument(parser)
    parser.add_argument(
        "--source",
        nargs="+",
        action="extend",
        metavar="NAME=PATH",
        help="source manifest of one source; repeat for each",
    )
    parser.add_argument(
        "--sentence-model", type=Path, metavar="PATH", help="source manifest of Punkt parameters instead of our own"
    )
    parser.add_argument("--workers", type=int, default=1, help="processes that read files; no output depends on it")
    parser.add_argument("--output", type=Path, required=True, help="manifest.json; the shards are written beside it")
    run_command(main, parser)
