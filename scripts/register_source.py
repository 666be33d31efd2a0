"""Register a raw input: write names, sizes and checksums of its files."""

import argparse
from pathlib import Path

from hatchery.command import add_settings_argument, load_settings, run_command
from hatchery.storage.sources import register_settings


def main(arguments: argparse.Namespace) -> None:
    """Register one source."""
    register_settings(load_settings(arguments.settings), arguments.output)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    add_settings_argument(parser)
    parser.add_argument("--output", type=Path, required=True, help="source manifest to write")
    run_command(main, parser)
