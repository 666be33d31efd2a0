"""Run a stage: python scripts/run.py STAGE results/settings/<digest>.json '{"output": "FILE"}'.

The arguments of a stage are given as JSON objects, or as files that contain a JSON object. If a key occurs in several
objects, its last value is used. `python scripts/run.py STAGE` without arguments lists the stage's arguments.
"""

import argparse
import signal

from hatchery.command import read_given, run_command
from hatchery.runner import run_given, usage
from hatchery.stage import function_of


def main(arguments: argparse.Namespace) -> None:
    """Run the stage that the first argument names. For an unknown stage, raises ConfigError with the most similar
    name.
    """
    function = function_of(arguments.stage)
    if not arguments.given:
        print(usage(function), end="")
        return
    run_given(function, {key: value for word in arguments.given for key, value in read_given(word).items()})


if __name__ == "__main__":
    # Use the system's action for SIGINT: Ctrl-C kills the stage's process, and the next attempt continues the work.
    # Python's own handler would react only after the current call of a library, and could lose the signal during an
    # import. In background processes of shell scripts, Python installs no handler, so SIGINT would have no effect.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stage", help="name of the stage: the name of a file in a folder `stages` of scripts/hatchery/")
    parser.add_argument(
        "given",
        nargs="*",
        metavar="JSON",
        help="arguments of the stage: a JSON object, or a file that contains a JSON object",
    )
    run_command(main, parser)
