"""Try the models of a finished experiment at a prompt: sentences with gaps, beginnings, two sentences to compare.

For example: python scripts/try_models.py demo
"""

import argparse
import io
import sys
from contextlib import suppress
from pathlib import Path

from hatchery.command import leave_output_unread, run_command
from hatchery.errors import HatcheryError
from hatchery.evaluation.prompt import HELP, answer, chosen_model, finished_models


def main(arguments: argparse.Namespace) -> None:
    """Answer line by line until the input ends, or until the output is closed, as with `| head`."""
    try:
        _answer_lines(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        leave_output_unread()


def _answer_lines(arguments: argparse.Namespace) -> None:
    models = finished_models(arguments.experiment, arguments.project / "results")
    names = list(models)
    for number, name in enumerate(names, start=1):
        print(f"{number:3}  {name}")
    print(f"\n{HELP}\n")
    # It loads PyTorch, and is needed from the first answer on.
    from hatchery.evaluation.asked_model import AskedModel

    loaded: dict[str, AskedModel] = {}
    name = names[0]
    while True:
        try:
            line = input(f"{name}> ").strip()
            if not sys.stdin.isatty():
                # Nobody has seen it being typed.
                print(line)
            if not line:
                continue
            if chosen := chosen_model(line, names):
                name = chosen
                continue
            if name not in loaded:
                loaded[name] = AskedModel(models[name])
            for text in answer(loaded[name], line):
                print(text)
        except HatcheryError as error:
            print(f"  {error}")
        except KeyboardInterrupt:
            # It gives up a line or an answer, as in a shell.
            if not sys.stdin.isatty():
                raise
            print()
        except EOFError:
            print()
            return


if __name__ == "__main__":
    if isinstance(sys.stdin, io.TextIOWrapper):
        # What is no UTF-8 is no reason to stop.
        sys.stdin.reconfigure(errors="replace")
    with suppress(ImportError):
        # Arrow keys and earlier lines; not every Python has it.
        import readline  # noqa: F401
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("experiment", help="an experiment with finished models, by its name")
    parser.add_argument("--project", type=Path, default=Path(), help="the folder with results/")
    run_command(main, parser)
