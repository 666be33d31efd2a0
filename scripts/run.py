"""Run a stage: python scripts/run.py STAGE results/settings/<digest>.json '{"output": "FILE"}'.

The arguments of a stage are JSON objects, or files that hold one; of a repeated key, the last value counts.
`python scripts/run.py STAGE` alone lists its arguments.
"""

import argparse
import signal

from hatchery.command import read_given, run_command
from hatchery.runner import run_given, usage
from hatchery.stage import function_of


def main(arguments: argparse.Namespace) -> None:
    """Run the stage that the arguments name. Raises ConfigError with the nearest name where there is none."""
    function = function_of(arguments.stage)
    if not arguments.given:
        print(usage(function), end="")
        return
    run_given(function, {key: value for word in arguments.given for key, value in read_given(word).items()})


if __name__ == "__main__":
    # Ctrl-C ends a stage as a kill does, after which the next attempt goes on: Python would heed the signal only after
    # the library call that is running, lose it during an import, and ignore it in the background of a shell script.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stage", help="the name of its function, a file in a folder `stages` of scripts/hatchery/")
    parser.add_argument("given", nargs="*", metavar="JSON", help="what it is given, or a file of that")
    run_command(main, parser)
