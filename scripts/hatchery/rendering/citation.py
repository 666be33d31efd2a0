"""The citation of Hatchery, read from CITATION.cff."""

from functools import cache
from pathlib import Path
from typing import Any

FILE = Path(__file__).resolve().parents[3] / "CITATION.cff"


@cache
def _citation() -> dict[str, Any]:
    import yaml

    found: dict[str, Any] = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    return found


def version() -> str:
    """Return the version of Hatchery, as CITATION.cff states it."""
    return str(_citation()["version"])


@cache
def how_to_cite() -> str:
    """Return a sentence that says how to cite Hatchery, for pages and cards."""
    cited = _citation()
    authors = ", ".join(author["name"] for author in cited["authors"])
    return (
        f"To cite: {authors}, {cited['title']}, version {cited['version']} ({cited['date-released']}), and the papers "
        f"whose experiments, data and tasks were used; {FILE.name} of Hatchery lists the papers that it reproduces."
    )
