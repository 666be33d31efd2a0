"""Generate the embedded sources: a miniature English in the raw formats of the real corpora and tasks."""

import argparse
from pathlib import Path

from demo.generate import generate
from hatchery.artifacts.manifests import stage_run
from hatchery.command import add_settings_argument, load_settings, run_command
from hatchery.raw.embedded_settings import EmbeddedSettings
from hatchery.typed import build, stage_body


def main(arguments: argparse.Namespace) -> None:
    """Generate below the folder of the output manifest."""
    settings = load_settings(arguments.settings)
    embedded = build(EmbeddedSettings, stage_body(settings))
    with stage_run(arguments.output, settings) as run:
        generate(embedded, run)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    add_settings_argument(parser)
    parser.add_argument("--output", type=Path, required=True, help="manifest.json; the sources are written beside it")
    run_command(main, parser)
