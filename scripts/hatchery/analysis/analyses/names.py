"""The names of the analyses: files of this folder that hold one. Whoever plans knows them without running a file."""

from functools import cache
from pathlib import Path

_BEGINNING = "\nANALYSIS = Analysis("


@cache
def analysis_names() -> tuple[str, ...]:
    """The names of all analyses."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return tuple(path.stem for path in files if _BEGINNING in path.read_text(encoding="utf-8"))
