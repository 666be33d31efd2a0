"""Convert CoNLL-2012 (OntoNotes 5) to jiant records for edge probing: parts of speech, entities, roles, coreference."""

import argparse
from pathlib import Path

from hatchery.artifacts.manifests import stage_run
from hatchery.command import add_settings_argument, load_settings, run_command
from hatchery.evaluation.probing.conll2012_records import Conll2012Settings, convert_conll2012
from hatchery.typed import build, stage_body


def main(arguments: argparse.Namespace) -> None:
    """Convert the source into the folder of the output manifest."""
    settings = load_settings(arguments.settings)
    conversion = build(Conll2012Settings, stage_body(settings))
    with stage_run(arguments.output, settings, {"source": arguments.source}) as run:
        convert_conll2012(conversion, arguments.source, run)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    add_settings_argument(parser)
    parser.add_argument("--source", type=Path, required=True, help="source manifest of the licensed files")
    parser.add_argument(
        "--output", type=Path, required=True, help="manifest.json; the records (srl/train.json, …) are beside it"
    )
    run_command(main, parser)
