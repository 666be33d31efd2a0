"""Set two experiments beside each other: settings that differ, and numbers that differ with intervals.

For example: python scripts/compare.py strict strict_small
"""

import argparse
from pathlib import Path

from hatchery.command import run_command
from hatchery.experiment.shipped import open_project
from hatchery.views.side_by_side import shown, side_by_side


def main(arguments: argparse.Namespace) -> None:
    """Print one table."""
    project = open_project(arguments.project / "config")
    experiments = (arguments.first, arguments.second)
    print(shown(side_by_side(project, experiments, arguments.project / "results", arguments.all)), end="")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("first", help="an experiment, by its name")
    parser.add_argument("second", help="another one")
    parser.add_argument("--all", action="store_true", help="also the numbers whose difference may be noise")
    parser.add_argument("--project", type=Path, default=Path(), help="the folder with config/ and results/")
    run_command(main, parser)
