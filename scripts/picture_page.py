"""Take the README's picture of an experiment's page, with Chromium (no window opens)."""

import argparse
from pathlib import Path

from hatchery.command import run_command
from hatchery.environments.page_picture import PictureSize, take_picture


def main(arguments: argparse.Namespace) -> None:
    """Write the picture."""
    take_picture(arguments.page, arguments.output, PictureSize(arguments.width, arguments.height))
    print(f"{arguments.output}: {arguments.output.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--page", type=Path, default=Path("results/demo/index.html"), help="page to take a picture of")
    parser.add_argument("--output", type=Path, default=Path("docs/demo_page.png"), help="PNG file to write")
    parser.add_argument("--width", type=int, default=1280, help="width of the window in pixels")
    parser.add_argument("--height", type=int, default=1560, help="height of the window in pixels")
    run_command(main, parser)
