"""The program `hatchery`: commands for one model or one text, a file each. Snakemake runs whole experiments.

A file is named after its command, perhaps with a trailing underscore, and has the function `command`. The first line of
its docstring is shown by `hatchery --help`, in at most 60 characters. `typer` reads the function's arguments, writes
the help and completes words. Modules with slow imports are imported inside the function.
"""

from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import typer

from hatchery.command import leave_after

HELP = """Small language models: train one, evaluate any, ours or public, and look into it.

A MODEL is a folder of results, an exported folder, a folder in the layout of transformers, or a name on the hub.

Experiments with many runs, seeds and tables are a workflow: see README.md, and `make help` in a checkout."""


def app() -> typer.Typer:
    """Return the program with all its commands."""
    # Text in square brackets is plain text, not markup.
    program = typer.Typer(help=HELP, no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False)
    for path in sorted(Path(__file__).parent.glob("[a-z]*.py")):
        module: Any = import_module(f"{__name__}.{path.stem}")
        program.command(path.stem.rstrip("_").replace("_", "-"))(module.command)
    return program


def main() -> NoReturn:
    """Run the program; a user's error prints one line, and the exit status is 1."""
    leave_after(app())
