"""Register a raw input, fetched first if it is pinned: write names, sizes and checksums of its files.

Then read it as suites and tasks will read it, so that mistakes in it are known before the first training.
"""

import argparse
from pathlib import Path

from hatchery.command import add_settings_argument, load_settings, run_command
from hatchery.raw.obtain import FETCHED, register_settings


def main(arguments: argparse.Namespace) -> None:
    """Register one source and look through what is evaluated of it."""
    settings = {**load_settings(arguments.settings), **load_settings(arguments.about)}
    print(register_settings(settings, arguments.output, arguments.fetched))
    if readings := load_settings(arguments.readings):
        from hatchery.evaluation.first_rows import check_registered

        check_registered(arguments.output, readings)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    add_settings_argument(parser)
    parser.add_argument("--about", default="{}", help="obtain, licence and terms as JSON")
    parser.add_argument("--readings", default="{}", help="settings of the suites and tasks that read it, as JSON")
    parser.add_argument("--output", type=Path, required=True, help="source manifest to write")
    parser.add_argument("--fetched", type=Path, default=FETCHED, help="folder for what is downloaded or unpacked")
    run_command(main, parser)
