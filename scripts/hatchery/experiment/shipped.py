"""The configuration that Hatchery ships, for a project in another folder.

Blocks of the project come first; missing blocks are read from the checkout. Tables and layouts of papers are inputs of
jobs. Their paths must not contain the checkout, or results would change when the checkout is moved: for missing files,
the project's `config/` gets links to the checkout.
"""

import os
from contextlib import suppress
from pathlib import Path

from hatchery.experiment.given_settings import Given
from hatchery.experiment.project import Project
from hatchery.shipped import shipped_config

SHIPPED = shipped_config()
COPY = "shipped"
"""Folder in a frozen configuration with a copy of the shipped configuration."""
LINKED = ("published", "paper_tables")


def shipped_for(folder: Path) -> Path | None:
    """Return the shipped configuration for a project's `config/`; None for the checkout's own configuration."""
    if (copy := folder / COPY).is_dir():
        return copy
    return SHIPPED if SHIPPED.is_dir() and SHIPPED.resolve() != folder.resolve() else None


def open_project(folder: str | Path = "config", given: Given = ()) -> Project:
    """Return the project with the configuration in `folder`, completed by shipped blocks."""
    return Project(folder, given=given, shipped=shipped_for(Path(folder)))


def link_tables(folder: Path) -> None:
    """Link tables and layouts of papers into a project's `config/`, except for names of the project's own files."""
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
    # The link gets the time of its target, because Snakemake reads the time of the link itself. On systems where Python
    # cannot set it, the link has the present time, and Snakemake may rerun jobs that read the link.
    with suppress(NotImplementedError):
        os.utime(new, (target.stat().st_atime, target.stat().st_mtime), follow_symlinks=False)
    new.replace(place)


def _is_of_a_checkout(link: Path) -> bool:
    """Return True if a link leads into the configuration of a checkout, even if this checkout does not exist any
    more.
    """
    return any((folder.parent / "scripts/hatchery").is_dir() for folder in link.readlink().parents)
