"""Whether a raw input can be had, told by its path and settings alone: what planning knows before any job runs.

Only regular files and folders are read: a device such as `/dev/zero` never ends.
"""

import stat
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hatchery.raw.settings import SourceSettings

FORBIDDEN = "{}"
"""Characters that Snakemake would take for wildcards in the path of an input."""


def path_problem(path: str | Path) -> str | None:
    """Why nothing can be read at `path` ("is not at ..."), or None for a regular file or a folder."""
    path = Path(path)
    if any(character in str(path) for character in FORBIDDEN):
        return f"lies at {path}, a path with {{ or }}, which Snakemake would fill in; rename it or link to it"
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        broken = path.is_symlink()
        return f"is not at {path}" + (f", a link to {path.readlink()}, which does not exist" if broken else "")
    except (OSError, ValueError) as error:
        return f"cannot be read at {path}: {getattr(error, 'strerror', None) or error}"
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        return f"lies at {path}, which is a device or a pipe, expected a file or a folder"
    return None


def source_problem(source: "SourceSettings", place: str = "") -> str | None:
    """Why a raw input cannot be had, where to get it, on which terms, and what to set; None where nothing is missing.

    What is fetched from the web is taken to be there. `place` is where its path is written, if not in config.yaml.
    """
    state, fetch = "has no path", ""
    if source.path is not None:
        found = path_problem(source.path)
        if found is None:
            return None
        state = found
        fetch = ", or to null to have it fetched" if source.hub or source.hub_model or source.download else ""
    elif source.hub or source.hub_model or source.download:
        return None
    advice = f"; {source.obtain}" if source.obtain else ""
    key = place or f"data.{source.name}.path in config/config.yaml"
    return f"source {source.name!r} {state}: set {key}{fetch}{advice}{conditions(source)}"


def conditions(source: "SourceSettings") -> str:
    """Licence and terms of a source, to stand behind what is said of it."""
    parts = [("licence", source.licence), ("terms", source.terms)]
    return "".join(f"; {name}: {text}" for name, text in parts if text)
