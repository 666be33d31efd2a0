"""Links from readable places to where results are kept: relative, so that `results/` can be moved as a whole."""

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from hatchery.artifacts.manifests import FINISHED, MANIFEST
from hatchery.errors import ConfigError


def put_link(place: Path, target: Path) -> None:
    """Make `place` a link to the folder `target`, which need not be there yet.

    A folder of results at `place`, as versions before 0.3 made them, is moved to `target`, where its stage decides
    whether it is what is wanted. Raises ConfigError when both are there.
    """
    relative = os.path.relpath(target, place.parent)
    if place.is_symlink():
        if place.readlink() == Path(relative):
            return
    elif place.is_dir():
        _move(place, target)
    place.parent.mkdir(parents=True, exist_ok=True)
    link = place.with_name(f".{place.name}.{os.getpid()}.partial")
    link.symlink_to(relative)
    link.replace(place)


def _move(place: Path, target: Path) -> None:
    if not any(place.iterdir()):
        place.rmdir()
        return
    if target.exists():
        raise ConfigError(f"{place}: a folder is in the way of a link to {target}: move it away or remove it")
    target.parent.mkdir(parents=True, exist_ok=True)
    place.rename(target)
    if (target / MANIFEST).is_file():
        shutil.copyfile(target / MANIFEST, target / FINISHED)


def links_to(target: str | Path, places: Iterable[Path]) -> list[Path]:
    """Those of the places that are links to `target`, sorted; compared as they are written, wherever `target` lies."""
    wanted = os.path.normpath(target)
    links = [place for place in sorted(places) if place.is_symlink()]
    return [place for place in links if os.path.normpath(place.parent / place.readlink()) == wanted]
