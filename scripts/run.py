"""Run a stage: python scripts/run.py STAGE @results/settings/<digest>.json --output FILE.

`python scripts/run.py STAGE --help` says what else it takes.
"""

import argparse

from hatchery.command import run_command
from hatchery.runner import run_words
from hatchery.stage import function_of


def main(arguments: argparse.Namespace) -> None:
    """Run the stage that the arguments name. Raises ConfigError with the nearest name where there is none."""
    run_words(function_of(arguments.stage), arguments.words)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("stage", help="the name of its function, a file in a folder `stages` of scripts/hatchery/")
    parser.add_argument("words", nargs=argparse.REMAINDER, help="@CALL or --settings, --output, and the stage's own")
    run_command(main, parser)
