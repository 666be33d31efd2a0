"""Draw the packages of the library and what they need of each other: docs/architecture.svg."""

import argparse
from pathlib import Path

from hatchery.command import run_command
from hatchery.environments.architecture import architecture_svg
from hatchery.storage.atomic import write_text


def main(arguments: argparse.Namespace) -> None:
    """Write the drawing."""
    write_text(arguments.output, architecture_svg(Path(__file__).parent))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("docs/architecture.svg"), help="SVG file to write")
    run_command(main, parser)
