"""`hatchery try`: ask models at a prompt."""

import io
import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from hatchery.command import leave_output_unread
from hatchery.commands._options import Project
from hatchery.errors import HatcheryError
from hatchery.evaluation.prompt import HELP, answer, chosen_model, finished_models

ASKED = "A model, or an experiment with finished models, by its name."


def command(
    asked: Annotated[str, typer.Argument(metavar="MODEL|EXPERIMENT", help=ASKED, show_default=False)],
    project: Project = Path(),
) -> None:
    """Ask models at a prompt: gaps, beginnings, comparisons.

    hatchery try demo
    """
    if isinstance(sys.stdin, io.TextIOWrapper):
        # Bytes that are not UTF-8 are replaced, because they are no reason to stop.
        sys.stdin.reconfigure(errors="replace")
    with suppress(ImportError):
        # Arrow keys and a history of lines; not every Python has this module.
        import readline  # noqa: F401
    try:
        answer_lines(_models(asked, project / "results"))
        sys.stdout.flush()
    except BrokenPipeError:
        # With `| head`, the reader closes the pipe early.
        leave_output_unread()


def _models(asked: str, results: Path) -> dict[str, Any]:
    """Return the folders of an experiment's models by name, or the one model."""
    is_experiment = (results / asked).is_dir() or not (Path(asked).exists() or "/" in asked)
    try:
        return dict(finished_models(asked, results))
    except HatcheryError:
        if is_experiment and results.is_dir():
            raise
        return {asked: asked}


def answer_lines(models: dict[str, Any]) -> None:
    """Answer line by line until the input ends."""
    # Imported here, because it loads PyTorch.
    from hatchery.public import model

    names, loaded = list(models), dict[str, Any]()
    if len(names) == 1:
        # A wrong name is an error before the prompt.
        loaded[names[0]] = model(models[names[0]])
    for number, name in enumerate(names, start=1):
        print(f"{number:3}  {name}")
    print(f"\n{HELP}\n")
    name = names[0]
    while True:
        try:
            line = input(f"{name}> ").strip()
            if not sys.stdin.isatty():
                # Input from a pipe was not echoed, so the line is printed.
                print(line)
            if not line:
                continue
            if chosen := chosen_model(line, names):
                name = chosen
                continue
            if name not in loaded:
                loaded[name] = model(models[name])
            for text in answer(loaded[name], line):
                print(text)
        except HatcheryError as error:
            print(f"  {error}")
        except KeyboardInterrupt:
            # Ctrl-C cancels a line or an answer, as in a shell.
            if not sys.stdin.isatty():
                raise
            print()
        except EOFError:
            print()
            return
