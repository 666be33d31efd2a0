"""What a block of the configuration may be called: its name is a folder of `results/` and a part of patterns.

A file with another name is never found by a rule. So whoever asks for it is told how to rename it.
"""

import re
import unicodedata
from collections.abc import Iterable
from pathlib import Path

NAME = r"[A-Za-z0-9][A-Za-z0-9_]*"
ALLOWED = "letters a-z and A-Z, digits and _, beginning with a letter or digit"


def is_name(name: str) -> bool:
    """Whether a block or a raw input may be called so."""
    return re.fullmatch(NAME, name) is not None


def allowed_name(name: str) -> str:
    """The name nearest to `name` that is allowed: `größe v2` becomes `grosse_v2`."""
    plain = unicodedata.normalize("NFKD", name.replace("ß", "ss")).encode("ascii", "ignore").decode()
    return re.sub(r"[^A-Za-z0-9]+", "_", plain).strip("_") or "my_name"


def misnamed_file(folder: Path, name: str, taken: Iterable[str] = ()) -> str | None:
    """What to do about a file that was meant for the block `name` and that has a wrong name or ending.

    None where `folder` has no such file.
    """
    for suffix in (".yaml", ".yml"):
        path = folder / f"{name}{suffix}"
        if not path.is_file():
            continue
        wanted = folder / f"{name if is_name(name) else allowed_name(name)}.yaml"
        if path == wanted:
            continue
        what = "the ending .yaml" if is_name(name) else f"a name of {ALLOWED}"
        advice = "it is there already" if wanted.stem in set(taken) else f"rename the file to {wanted.name}"
        return f"{path}: expected {what}; {advice}"
    return None
