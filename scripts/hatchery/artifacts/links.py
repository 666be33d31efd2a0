"""Links: from readable paths to stored results, and from the usual folders to large storage.

Links to results are relative, so that `results/` can be moved as a whole. Links to storage are made, moved and removed
by real runs only, and only if a run made them: the user's own links stay. No file is ever deleted; when a link
changes, the files at its former target stay there.
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
    """Make `place` a link to the folder `target`, which need not exist yet.

    Raises ConfigError if there is a folder with files at `place`.
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
                f"{place}: a folder is in the way of a link to {target}: move it away or remove it"
            ) from None
    place.parent.mkdir(parents=True, exist_ok=True)
    link = place.with_name(f".{place.name}.{os.getpid()}.partial")
    link.symlink_to(relative)
    link.replace(place)


def links_to(target: str | Path, places: Iterable[Path]) -> list[Path]:
    """Return the places that are links to `target`, sorted; links are compared as written."""
    wanted = os.path.normpath(target)
    links = [place for place in sorted(places) if place.is_symlink()]
    return [place for place in links if os.path.normpath(place.parent / place.readlink()) == wanted]


ROOTS = ("resources", "results", "logs")
# The links that runs made, with their targets: the user's own links must not be removed.
RECORD = Path(".snakemake/storage_links.json")


def expanded(path: str) -> str:
    """Expand `~` in a path of the configuration to the home folder; other paths are unchanged."""
    if not path.startswith("~"):
        return path
    # If there is no such user, ~somebody is an ordinary name.
    with contextlib.suppress(RuntimeError):
        return str(Path(path).expanduser())
    return path


@dataclass
class _Changes:
    """Changes that bring `storage_root` into force."""

    # Former targets of our links that have to change.
    stale: dict[str, Path] = field(default_factory=dict)
    new: dict[str, Path] = field(default_factory=dict)


def check_roots(storage_root: str | Path | None, here: str | Path = ".") -> list[str]:
    """Return the changes of the links that a run would make, as lines for the user; nothing is changed.

    Raises ConfigError like `link_roots`.
    """
    changes = _changes(storage_root, Path(here))
    lines = [
        f"storage_root: {name} still leads to {target}, which this plan sees; a run takes the link away and begins anew"
        for name, target in changes.stale.items()
    ]
    lines += [
        f"storage_root: {target} holds files that this plan does not see yet; a run links {name} to it"
        for name, target in changes.new.items()
        if target.is_dir() and any(target.iterdir())
    ]
    return lines


def link_roots(storage_root: str | Path | None, here: str | Path = ".") -> list[str]:
    """Make `resources`, `results` and `logs` links into `storage_root`; with None remove the links made before.

    Return notes for the user on files that are no longer visible. Paths inside the workflow do not depend on the place
    of the files, so moving them causes no reruns. Raises ConfigError if one of the names is used otherwise, and for an
    impossible root: in a missing folder, not a folder, not writable, or inside a linked folder. Also raises it for
    dangling links, and for folders in which nothing can be written.
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
            raise ConfigError(f"{place}: nothing can be written in this folder; {WRITABLE}")
    if changes.stale or changes.new:
        (here / RECORD).parent.mkdir(exist_ok=True)
        write_json(here / RECORD, made)
    return [
        f"storage_root: {name} leads to {target} no longer; its files are still there: move them to go on with them"
        for name, target in changes.stale.items()
        if target.is_dir() and any(target.iterdir())
    ]


HELD = ".in_use"
_held: list[IO[str]] = []


def hold_root(storage_root: str | Path | None, here: str | Path = ".") -> None:
    """Reserve `storage_root` for this checkout until this process ends, because another would use its files as its
    own.

    Raises ConfigError, naming the other checkout, if it computes there. Snakemake itself reports a second call in this
    checkout. On a file system without locks, nothing is reserved.
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
                f"storage_root: the checkout {other} computes in {root} now ({who}); wait for its end, or give this "
                "one a storage_root of its own"
            ) from None
    except OSError:
        return
    else:
        handle.truncate(0)
        handle.write(f"{checkout}\nprocess {os.getpid()} on {socket.gethostname()}\n")
        handle.flush()
        # Closing the file would release the lock.
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
                    f"storage_root: {link} leads to {leads_to}, but there is no folder; mount that disk, or remove "
                    "the link to start without results"
                )
            if leads_to == target:
                continue
            if is_stale:
                changes.stale[name] = leads_to
            elif target is not None:
                raise ConfigError(
                    f"storage_root: {link} is a link to {leads_to} that was not made here, expected one to {target} or "
                    "none; remove the link"
                )
        elif link.exists() and not link.is_dir():
            raise ConfigError(f"{link}: is a file, expected a folder of results, or none; move it away")
        elif link.exists() and target is not None:
            raise ConfigError(
                f"storage_root: {link} exists already and is not a link to {target}; move its content there first"
            )
        if target is not None:
            changes.new[name] = target
    return changes


def _checked(root: Path, here: Path) -> Path:
    """Return the root if it is possible."""
    there = root if root.exists() else root.parent
    if not there.is_dir():
        problem = "exists and is no folder" if there.exists() else "does not exist"
        raise ConfigError(
            f"storage_root: got {root}, but {there} {problem}; expected a folder, or a new one in a folder that exists"
        )
    if not os.access(there, os.W_OK | os.X_OK):
        raise ConfigError(f"storage_root: got {root}, but you may not write in {there}")
    project, real = here.resolve(), root.resolve()
    if real == project or any(real.is_relative_to(project / name) for name in ROOTS):
        raise ConfigError(
            f"storage_root: got {root}, expected a folder outside of this project's {', '.join(ROOTS)}; null keeps "
            "them here"
        )
    return root


def _recorded(here: Path) -> dict[str, str]:
    """Return the targets of our links by name; empty if the record is missing or damaged."""
    try:
        value = json_value((here / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {str(name): str(target) for name, target in value.items()} if isinstance(value, dict) else {}
