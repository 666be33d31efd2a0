"""Where generated files lie on disk: here, or on large storage behind links of the usual names."""

import contextlib
from pathlib import Path

from hatchery.errors import ConfigError

ROOTS = ("resources", "results", "logs")


def expanded(path: str | None) -> str | None:
    """A path of the configuration with the home folder for `~`; any other stays as it is."""
    if path is None or not path.startswith("~"):
        return path
    # ~somebody may be nobody here; then it is a name like any other.
    with contextlib.suppress(RuntimeError):
        return str(Path(path).expanduser())
    return path


def link_roots(storage_root: str | Path | None, here: str | Path = ".") -> None:
    """Make `resources`, `results` and `logs` links into `storage_root`; None leaves them as they are.

    Paths inside the workflow stay the same wherever the files lie, so moving them reruns nothing. Raises ConfigError
    when one of the names is taken by something else.
    """
    if storage_root is None:
        return
    for name in ROOTS:
        link, target = Path(here) / name, Path(expanded(str(storage_root)) or "").absolute() / name
        if link.is_symlink() and link.readlink() == target:
            continue
        if link.is_symlink() or link.exists():
            raise ConfigError(
                f"storage_root: {link} exists already and is not a link to {target}; move its content there first"
            )
        target.mkdir(parents=True, exist_ok=True)
        link.symlink_to(target)
