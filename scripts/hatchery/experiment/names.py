"""What a block of the configuration may be called: its name is a folder of `results/` and a part of patterns.

A file with another name is never found by a rule. So whoever asks for it is told how to rename it.
"""

import re
import unicodedata
from collections.abc import Collection
from pathlib import Path

from hatchery.settings.fields import LONGEST_NAME, NAME, NAME_IN_WORDS


def is_name(name: str) -> bool:
    """Whether a block or a raw input may be called so."""
    return re.fullmatch(NAME, name) is not None and len(name) <= LONGEST_NAME


def allowed_name(name: str) -> str:
    """The name nearest to `name` that is allowed: `größe v2` becomes `grosse_v2`."""
    plain = unicodedata.normalize("NFKD", name.replace("ß", "ss")).encode("ascii", "ignore").decode()
    return re.sub(r"[^A-Za-z0-9]+", "_", plain).strip("_")[:LONGEST_NAME] or "my_name"


def misnamed_file(folder: Path, name: str, taken: Collection[str] = ()) -> str | None:
    """What to do about a file that was meant for the block `name` and that has a wrong name or ending.

    `taken` are the names of the blocks that there are. None where `folder` has no such file.
    """
    for path in sorted(folder.glob("*.y*ml")):
        is_right = path.suffix == ".yaml" and is_name(path.stem)
        if is_right or name not in (path.stem, allowed_name(path.stem)):
            continue
        wanted = path.stem if is_name(path.stem) else allowed_name(path.stem)
        what = "the ending .yaml" if is_name(path.stem) else f"a name of {NAME_IN_WORDS}"
        there = f" ({wanted}.yaml is taken)" if wanted in taken else f" to {wanted}.yaml"
        return f"{path}: expected {what}; rename the file{there}"
    return None
