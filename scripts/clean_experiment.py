"""Remove the folder of an experiment in results/. Models and everything else that experiments share are kept.

For example: python scripts/clean_experiment.py strict_small
"""

import argparse
import shutil
from pathlib import Path

from hatchery.command import run_command
from hatchery.errors import ConfigError
from hatchery.stage import reserved_names


def main(arguments: argparse.Namespace) -> None:
    """Remove the folder, or the link to it. Raises ConfigError for a name that cannot be an experiment's."""
    name, reserved = arguments.experiment, reserved_names()
    if name in reserved:
        raise ConfigError(f"EXPERIMENT={name} is no experiment: results/{name}/ is shared by all of them")
    # As on a file system that does not tell upper from lower case, or in `tokens.`, where it drops the stop.
    if name.casefold().rstrip(". ") in reserved or name.startswith(".") or not name.strip() or Path(name).name != name:
        raise ConfigError(f"EXPERIMENT={name} is no experiment; expected the name of one in config/experiments/")
    folder = arguments.results / name
    if folder.is_symlink():
        folder.unlink()
    elif folder.exists():
        shutil.rmtree(folder)
        print(f"removed {folder}")
    else:
        print(f"there is no {folder}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("experiment", help="name of the experiment")
    parser.add_argument("--results", type=Path, default=Path("results"), help="the folder results/")
    run_command(main, parser)
