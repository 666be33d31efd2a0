"""The configuration files that Hatchery ships, for a project in another folder.

The project's own files take precedence; missing files are read from Hatchery's checkout. Tables and layouts of papers
are inputs of jobs, and a result is identified by the paths of its inputs. These paths must not contain the location of
the checkout. Therefore the project's `config/` contains links to these files.
"""

import os
from contextlib import suppress
from pathlib import Path

from hatchery.experiment.given_settings import Given
from hatchery.experiment.project import Project
from hatchery.shipped import shipped_config

SHIPPED = shipped_config()
COPY = "shipped"
"""Name of the folder with the copy of the shipped configuration, inside a frozen configuration."""
LINKED = ("published", "paper_tables")


def shipped_for(folder: Path) -> Path | None:
    """Return the folder of the shipped configuration, from which files that are missing in a project's own `config/`
    are read. Return None if `config/` is itself the shipped configuration, or if no configuration is shipped.
    """
    if (copy := folder / COPY).is_dir():
        return copy
    return SHIPPED if SHIPPED.is_dir() and SHIPPED.resolve() != folder.resolve() else None


def open_project(folder: str | Path = "config", given: Given = ()) -> Project:
    """Return the project with the configuration in `folder`; missing files are read from the shipped configuration."""
    return Project(folder, given=given, shipped=shipped_for(Path(folder)))


def link_tables(folder: Path) -> None:
    """Create links to the shipped tables and layouts of papers in a project's `config/`. A file that already exists
    there is not replaced; a link is replaced if its target is missing, or is in another checkout of Hatchery.
    """
    if (shipped := shipped_for(folder)) is not None and shipped.name != COPY:
        for name in LINKED:
            _link(folder / name, shipped.absolute() / name)


def _link(place: Path, target: Path) -> None:
    if place.is_symlink() and (place.readlink() == target or (place.exists() and not _is_of_a_checkout(place))):
        return
    if place.exists() and not place.is_symlink():
        for path in sorted(target.iterdir()) if place.is_dir() and target.is_dir() else ():
            _link(place / path.name, path)
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    new = place.with_name(f".{place.name}.{os.getpid()}.partial")
    new.symlink_to(target)
    # Snakemake compares the modification time of the link itself, so the link gets the time of its target. On systems
    # without this call (`os.utime not in os.supports_follow_symlinks`), Python raises NotImplementedError; the link
    # then keeps the present time, and Snakemake may rerun jobs that read the link.
    with suppress(NotImplementedError):
        os.utime(new, (target.stat().st_atime, target.stat().st_mtime), follow_symlinks=False)
    new.replace(place)


def _is_of_a_checkout(link: Path) -> bool:
    """Return True if a link points into an existing checkout of Hatchery."""
    return any((folder.parent / "scripts/hatchery").is_dir() for folder in link.readlink().parents)
