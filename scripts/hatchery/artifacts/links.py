"""Symbolic links: from readable paths to shared results, and from `results/` and other folders to large storage.

Links to results are relative, so that the whole folder `results/` can be moved. Links to storage are created, changed
and removed by runs, but not by planning. Runs only change links that a run has created, not the user's links. No file
is deleted: if the target of a link changes, the files at the former target remain.
"""

import contextlib
import fcntl
import os
import socket
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from hatchery.artifacts.atomic import json_value, write_json
from hatchery.errors import WRITABLE, ConfigError


def put_link(place: Path, target: Path) -> None:
    """Create a link at `place` to the folder `target`, which need not exist yet.

    Raises ConfigError if `place` is a folder with files.
    """
    relative = os.path.relpath(target, place.parent)
    if place.is_symlink():
        if place.readlink() == Path(relative):
            return
    elif place.is_dir():
        try:
            place.rmdir()
        except OSError:
            raise ConfigError(
                f"{place}: got a folder with files, expected a link to {target}; move the folder away or remove it"
            ) from None
    place.parent.mkdir(parents=True, exist_ok=True)
    link = place.with_name(f".{place.name}.{os.getpid()}.partial")
    link.symlink_to(relative)
    link.replace(place)


def links_to(target: str | Path, places: Iterable[Path]) -> list[Path]:
    """Return the paths among `places` that are links to `target`, sorted. Only the paths written in the links are
    compared.
    """
    wanted = os.path.normpath(target)
    links = [place for place in sorted(places) if place.is_symlink()]
    return [place for place in links if os.path.normpath(place.parent / place.readlink()) == wanted]


ROOTS = ("resources", "results", "logs")
# File that lists the links that runs have created, and their targets. Other links are the user's and are not removed.
RECORD = Path(".snakemake/storage_links.json")


def expanded(path: str) -> str:
    """Return a path from the configuration with `~` replaced by the home folder; other paths are unchanged."""
    if not path.startswith("~"):
        return path
    # If a path such as `~somebody` names an unknown user, the path is returned unchanged.
    with contextlib.suppress(RuntimeError):
        return str(Path(path).expanduser())
    return path


@dataclass
class _Changes:
    """Changes that the setting `storage_root` requires: links to remove (`stale`) and links to create (`new`).

    Keys are the names of the links, values their targets.
    """

    # Links that a run has created and that do not lead into the current `storage_root`.
    stale: dict[str, Path] = field(default_factory=dict)
    new: dict[str, Path] = field(default_factory=dict)


def check_roots(storage_root: str | Path | None, here: str | Path = ".") -> list[str]:
    """Return one line for each link that a run would remove, and one line for each link that a run would create if the
    target of the link is a folder that already contains files.

    This function changes nothing. Raises ConfigError in the same cases as `link_roots`, but does not check whether
    `resources`, `results` and `logs` are writable.
    """
    changes = _changes(storage_root, Path(here))
    lines = [
        f"storage_root: {name} still links to {target}, whose files this plan uses; a run removes the link"
        for name, target in changes.stale.items()
    ]
    lines += [
        f"storage_root: {target} contains files that this plan does not use yet; a run links {name} to it"
        for name, target in changes.new.items()
        if target.is_dir() and any(target.iterdir())
    ]
    return lines


def link_roots(storage_root: str | Path | None, here: str | Path = ".") -> list[str]:
    """Make `resources`, `results` and `logs` links into `storage_root`; if `storage_root` is None, remove links that
    runs have created.

    Links from earlier runs to another folder are replaced. Return notes for the user on files that are no longer
    visible. The user may move files to another `storage_root`: their paths in the workflow do not change, so
    nothing is computed again.

    Raises ConfigError
    - if one of the three paths is a file, or a link that no run created and whose target is missing;
    - if `storage_root` is set and one of the three paths is a folder, or a link to another folder, if no run created
      this link;
    - if one of the three paths is a link to the current `storage_root`, in which the folder is missing;
    - if `storage_root` is in a missing folder, is not a folder, is not writable, is the project's folder, or is inside
      one of the three folders;
    - if one of the three folders is not writable.
    """
    here = Path(here)
    changes = _changes(storage_root, here)
    made = _recorded(here)
    for name in changes.stale:
        (here / name).unlink()
        made.pop(name, None)
    for name, target in changes.new.items():
        target.mkdir(parents=True, exist_ok=True)
        (here / name).symlink_to(target)
        made[name] = str(target)
    for place in (here / name for name in ROOTS):
        if place.exists() and not os.access(place, os.W_OK | os.X_OK):
            raise ConfigError(f"{place}: this folder is not writable; {WRITABLE}")
    if changes.stale or changes.new:
        (here / RECORD).parent.mkdir(exist_ok=True)
        write_json(here / RECORD, made)
    return [
        f"storage_root: {name} no longer links to {target}; to continue with the files in this folder, move them"
        for name, target in changes.stale.items()
        if target.is_dir() and any(target.iterdir())
    ]


HELD = ".in_use"
_held: list[IO[str]] = []


def hold_root(storage_root: str | Path | None, here: str | Path = ".") -> None:
    """Reserve `storage_root` for this checkout until this process ends.

    Without the reservation, two checkouts would overwrite each other's files. Raises ConfigError if a process of
    another checkout has reserved `storage_root`. For a second run in this checkout, no error is raised, because
    Snakemake reports the second run. On a file system without locks, nothing is reserved.
    """
    if storage_root is None:
        return
    root, checkout = Path(expanded(str(storage_root))).absolute(), str(Path(here).resolve())
    try:
        handle = (root / HELD).open("a+", encoding="utf-8")
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        handle.seek(0)
        other, _, who = handle.read().strip().partition("\n")
        handle.close()
        if other != checkout:
            raise ConfigError(
                f"storage_root: the checkout {other} is running in {root} ({who}); wait until it ends, or set another "
                "storage_root for this checkout"
            ) from None
    except OSError:
        return
    else:
        handle.truncate(0)
        handle.write(f"{checkout}\nprocess {os.getpid()} on {socket.gethostname()}\n")
        handle.flush()
        # Keep the file open, because closing the file would release the lock.
        _held.append(handle)


def _changes(storage_root: str | Path | None, here: Path) -> _Changes:
    root = None if storage_root is None else _checked(Path(expanded(str(storage_root))).absolute(), here)
    changes, made = _Changes(), _recorded(here)
    for name in ROOTS:
        link, target = here / name, None if root is None else root / name
        if link.is_symlink():
            leads_to = link.readlink()
            is_stale = leads_to != target and made.get(name) == str(leads_to)
            if not is_stale and not link.is_dir():
                raise ConfigError(
                    f"storage_root: {link} links to {leads_to}, which is not a folder; mount the disk, or remove "
                    "the link to start without results"
                )
            if leads_to == target:
                continue
            if is_stale:
                changes.stale[name] = leads_to
            elif target is not None:
                raise ConfigError(
                    f"storage_root: {link} is a link to {leads_to} that no run created, expected a link to {target} or "
                    "no file; remove the link"
                )
        elif link.exists() and not link.is_dir():
            raise ConfigError(f"{link}: is a file, expected a folder, or nothing at this path; move the file away")
        elif link.exists() and target is not None:
            raise ConfigError(
                f"storage_root: {link} is a folder, expected a link to {target} or no file; move its content there"
            )
        if target is not None:
            changes.new[name] = target
    return changes


def _checked(root: Path, here: Path) -> Path:
    """Return `root` if this folder can be the storage root; otherwise, raise ConfigError."""
    there = root if root.exists() else root.parent
    if not there.is_dir():
        problem = "is not a folder" if there.exists() else "does not exist"
        raise ConfigError(
            f"storage_root: got {root}, but {there} {problem}; expected a folder, or a new folder in an existing folder"
        )
    if not os.access(there, os.W_OK | os.X_OK):
        raise ConfigError(f"storage_root: got {root}, but {there} is not writable")
    project, real = here.resolve(), root.resolve()
    if real == project or any(real.is_relative_to(project / name) for name in ROOTS):
        raise ConfigError(
            f"storage_root: got {root}, expected a folder outside of this project's {', '.join(ROOTS)}; null keeps "
            "these folders here"
        )
    return root


def _recorded(here: Path) -> dict[str, str]:
    """Return the targets of the links that runs have created, by link; empty if the file `RECORD` is missing or
    damaged.
    """
    try:
        value = json_value((here / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {str(name): str(target) for name, target in value.items()} if isinstance(value, dict) else {}
