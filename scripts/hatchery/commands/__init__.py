"""The program `hatchery`: commands for one model or one text, one file each. Whole experiments are run by Snakemake.

A file has the name of its command (with an underscore appended if the name is a Python keyword) and defines the
function `command`. `hatchery --help` shows the first line of this function's docstring, which has at most 60
characters. `typer` derives arguments, help and completion from the function's signature. Slow imports are inside the
function.
"""

from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import typer

from hatchery.command import leave_after

HELP = """Small language models: train a model; evaluate and inspect any model, your own or a public one.

A MODEL is a folder of results, an exported folder, a folder in the format of transformers, or a name on the hub.

Experiments with many runs, seeds and tables are run by a workflow: see README.md, and `make help` in a checkout."""


def app() -> typer.Typer:
    """Return the program with all its commands."""
    # Rich would read the square brackets in help texts as markup, so Rich markup is disabled.
    program = typer.Typer(help=HELP, no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False)
    for path in sorted(Path(__file__).parent.glob("[a-z]*.py")):
        module: Any = import_module(f"{__name__}.{path.stem}")
        program.command(path.stem.rstrip("_").replace("_", "-"))(module.command)
    return program


def main() -> NoReturn:
    """Run the program; for a mistake of the user, print one line and exit with status 1."""
    leave_after(app())
