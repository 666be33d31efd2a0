"""Draw the diagrams of the documentation: docs/architecture.svg (the packages) and docs/workflow.svg (the stages)."""

import argparse
from pathlib import Path

from hatchery.artifacts.atomic import write_text
from hatchery.command import run_command
from hatchery.environments.architecture import architecture_svg
from hatchery.environments.workflow_diagram import workflow_svg


def main(arguments: argparse.Namespace) -> None:
    """Write both drawings."""
    write_text(arguments.folder / "architecture.svg", architecture_svg(Path(__file__).parent))
    write_text(arguments.folder / "workflow.svg", workflow_svg(Path()))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("docs"), help="folder of the SVG files")
    run_command(main, parser)
