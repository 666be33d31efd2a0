"""Remove files that killed jobs have left and that no later job uses; checkpoints of unfinished trainings are kept.

The program removes temporary files that have not changed for an hour, run folders of finished models, and empty run
folders. Files that the next attempt of a job uses are kept, because that attempt removes these files.
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
    """Remove the files that killed jobs have left, print one line for each removed file, and list the unfinished
    trainings.
    """
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
    print(f"removed {removed} files and folders that killed jobs have left behind")
    for folder in sorted(checkpoints.glob("*/")):
        print(
            f"kept {folder}: the training is unfinished; run the command of this training again to continue the "
            "training"
        )


def finished_runs(models: Path) -> set[str]:
    """Return the names of the run folders of finished models."""
    names = set()
    for path in models.glob("*/manifest.json"):
        made = json.loads(path.read_text(encoding="utf-8"))
        names.add(run_folder_name(made["settings"], made["inputs"]))
    return names


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--project", type=Path, default=Path(), help="the folder with results/ and resources/")
    run_command(main, parser)
