"""Choose a tokenizer by measurement: sweep types and sizes on a corpus, score them, and apply the choice rule."""

import argparse
from pathlib import Path

from hatchery.artifacts.manifests import stage_run
from hatchery.command import add_settings_argument, load_settings, named_paths, run_command
from hatchery.tokenization.selection.settings import SweepSettings
from hatchery.tokenization.selection.stage import select_tokenizer
from hatchery.tokenization.tokenizer_file import use_threads
from hatchery.typed import build, stage_body


def main(arguments: argparse.Namespace) -> None:
    """Run the stage."""
    use_threads(arguments.threads)
    settings = load_settings(arguments.settings)
    sweep = build(SweepSettings, stage_body(settings))
    references = named_paths(arguments.reference)
    optional = {"morphemes": arguments.morphemes, "published": arguments.published}
    inputs = {
        "corpus": arguments.corpus,
        **{f"reference {name}": path for name, path in references.items()},
        **{name: path for name, path in optional.items() if path is not None},
    }
    with stage_run(arguments.output, settings, inputs) as run:
        select_tokenizer(
            sweep, arguments.corpus, run, arguments.morphemes, references, arguments.published, arguments.threads
        )


def command_line() -> argparse.ArgumentParser:
    """The arguments of this command."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_settings_argument(parser)
    parser.add_argument("--corpus", type=Path, required=True, help="manifest of the corpus")
    parser.add_argument("--morphemes", type=Path, help="source manifest of a CSV list: word, morphemes")
    parser.add_argument(
        "--reference",
        nargs="+",
        action="extend",
        metavar="NAME=PATH",
        help="source manifest of a type's reference tokenizer.json",
    )
    parser.add_argument("--published", type=Path, help="table of published values")
    parser.add_argument("--threads", type=int, default=1, help="processes to use; never changes the result")
    parser.add_argument("--output", type=Path, required=True, help="manifest.json; everything else lies beside it")
    return parser


if __name__ == "__main__":
    run_command(main, command_line())
