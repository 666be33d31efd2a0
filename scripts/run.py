"""Run a stage: python scripts/run.py STAGE @results/settings/<digest>.json --output FILE.

`python scripts/run.py STAGE --help` says what else it takes.
"""

import argparse
from pkgutil import resolve_name

from hatchery.command import run_command
from hatchery.errors import ConfigError
from hatchery.runner import run_words
from hatchery.settings.problems import nearest
from hatchery.stages.functions import FUNCTIONS


def main(arguments: argparse.Namespace) -> None:
    """Run the stage that the arguments name. Raises ConfigError with the nearest name where there is none."""
    name = arguments.stage
    if name not in FUNCTIONS:
        raise ConfigError(f"run.py: there is no stage {name!r}{nearest(name, FUNCTIONS)}")
    run_words(resolve_name(f"{FUNCTIONS[name]}:{name}"), arguments.words)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("stage", help="the name of its function, as in scripts/hatchery/stages/functions.py")
    parser.add_argument("words", nargs=argparse.REMAINDER, help="@CALL or --settings, --output, and the stage's own")
    run_command(main, parser)
