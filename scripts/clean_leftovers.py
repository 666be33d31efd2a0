"""Remove what killed jobs left behind and no later job takes over; trainings that can go on keep their checkpoints.

Temporary files that nobody has written for an hour, run folders whose models are finished, and empty ones. What the
next attempt of a job takes over, it clears itself.
"""

import argparse
import json
import time
from pathlib import Path

from hatchery.artifacts.atomic import leftovers
from hatchery.command import run_command
from hatchery.training.run_folder import clear_finished, run_folder_name

QUIET_SECONDS = 3600


def main(arguments: argparse.Namespace) -> None:
    """Remove them, with a line for each, and name the trainings that can go on."""
    results, checkpoints = arguments.project / "results", arguments.project / "results/checkpoints"
    removed = 0
    for folder in (results, arguments.project / "resources"):
        for path, _ in leftovers(folder):
            if time.time() - path.stat().st_mtime > QUIET_SECONDS:
                path.unlink(missing_ok=True)
                print(f"removed {path}")
                removed += 1
    for path in clear_finished(checkpoints, finished_runs(results / "models")):
        print(f"removed {path}")
        removed += 1
    print(f"{removed} removed")
    for folder in sorted(checkpoints.glob("*/")):
        print(f"kept {folder}: an unfinished training, which the same command goes on with")


def finished_runs(models: Path) -> set[str]:
    """The names that the run folders of finished models had."""
    names = set()
    for path in models.glob("*/manifest.json"):
        made = json.loads(path.read_text(encoding="utf-8"))
        names.add(run_folder_name(made["settings"], made["inputs"]))
    return names


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--project", type=Path, default=Path(), help="the folder with results/ and resources/")
    run_command(main, parser)
