"""Draw documents of a corpus at random until they have as many characters as another corpus, or a given number."""

import argparse
from pathlib import Path

from hatchery.artifacts.manifests import read_manifest, stage_run
from hatchery.command import add_settings_argument, load_settings, run_command
from hatchery.corpora.sampling import sample_corpus
from hatchery.corpora.settings import SampleSettings
from hatchery.typed import build, stage_body


def main(arguments: argparse.Namespace) -> None:
    """Write the sample into the folder of the output manifest."""
    settings = load_settings(arguments.settings)
    sample = build(SampleSettings, stage_body(settings))
    inputs = {"corpus": arguments.corpus}
    if arguments.size_of is not None:
        inputs["size of"] = arguments.size_of
    with stage_run(arguments.output, settings, inputs) as run:
        size_of = None if arguments.size_of is None else read_manifest(arguments.size_of)
        sample_corpus(sample, read_manifest(arguments.corpus), size_of, run)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    add_settings_argument(parser)
    parser.add_argument("--corpus", type=Path, required=True, help="manifest of the corpus that is drawn from")
    parser.add_argument("--size-of", type=Path, help="manifest of the corpus whose number of characters is wanted")
    parser.add_argument("--output", type=Path, required=True, help="manifest.json; the shards are written beside it")
    run_command(main, parser)
