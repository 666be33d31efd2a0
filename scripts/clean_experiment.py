"""Remove the folder of an experiment in results/. Models and other results that experiments share are kept.

For example: python scripts/clean_experiment.py strict_small
"""

import argparse
import shutil
from pathlib import Path

from hatchery.command import run_command
from hatchery.errors import ConfigError
from hatchery.stage import reserved_names


def main(arguments: argparse.Namespace) -> None:
    """Remove the folder of the experiment, or the link to this folder. Raises ConfigError for a name that no experiment
    can have.
    """
    name, reserved = arguments.experiment, reserved_names()
    if name in reserved:
        raise ConfigError(
            f"EXPERIMENT: got {name}, expected the name of an experiment; {name} is a reserved name, because all "
            f"experiments share the folder results/{name}/"
        )
    # Compare names without case and final full stops, which some file systems ignore.
    if name.casefold().rstrip(". ") in reserved or name.startswith(".") or not name.strip() or Path(name).name != name:
        raise ConfigError(f"EXPERIMENT: got {name}, expected the name of an experiment in config/experiments/")
    folder = arguments.results / name
    if folder.is_symlink():
        folder.unlink()
    elif folder.exists():
        shutil.rmtree(folder)
        print(f"removed {folder}")
    else:
        print(f"{folder} does not exist")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("experiment", help="name of the experiment")
    parser.add_argument("--results", type=Path, default=Path("results"), help="the folder results/")
    run_command(main, parser)
