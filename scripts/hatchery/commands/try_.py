"""`hatchery try`: query models at a prompt."""

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

ASKED = "A model, or the name of an experiment with finished models."


def command(
    asked: Annotated[str, typer.Argument(metavar="MODEL|EXPERIMENT", help=ASKED, show_default=False)],
    project: Project = Path(),
) -> None:
    """Query models: fill gaps, continue or compare texts.

    hatchery try demo
    """
    if isinstance(sys.stdin, io.TextIOWrapper):
        # Input bytes that are not UTF-8 would raise an error, so replace these bytes.
        sys.stdin.reconfigure(errors="replace")
    with suppress(ImportError):
        # Importing `readline` adds arrow keys and a history to the prompt. Some Python installations lack this module.
        import readline  # noqa: F401
    try:
        answer_lines(_models(asked, project / "results"))
        sys.stdout.flush()
    except BrokenPipeError:
        # The program that reads the output, such as `head`, has closed the pipe. This is not an error.
        leave_output_unread()


def _models(asked: str, results: Path) -> dict[str, Any]:
    """Return model folders by name of the model. If `asked` is an experiment, these are its finished models; otherwise
    `asked` is a single model.
    """
    is_experiment = (results / asked).is_dir() or not (Path(asked).exists() or "/" in asked)
    try:
        return dict(finished_models(asked, results))
    except HatcheryError:
        if is_experiment and results.is_dir():
            raise
        return {asked: asked}


def answer_lines(models: dict[str, Any]) -> None:
    """Read lines from standard input and print the models' answers until the input ends."""
    # Import inside the function, because the import loads PyTorch.
    from hatchery.public import model

    names, loaded = list(models), dict[str, Any]()
    if len(names) == 1:
        # Open the only model now, so that a wrong name is reported before the prompt appears.
        loaded[names[0]] = model(models[names[0]])
    for number, name in enumerate(names, start=1):
        print(f"{number:3}  {name}")
    print(f"\n{HELP}\n")
    name = names[0]
    while True:
        try:
            line = input(f"{name}> ").strip()
            if not sys.stdin.isatty():
                # Input from a pipe is not echoed by a terminal, so print the line.
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
            # As in a shell, Ctrl-C cancels only the current line or answer.
            if not sys.stdin.isatty():
                raise
            print()
        except EOFError:
            print()
            return
