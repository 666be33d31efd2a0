"""How Hatchery is cited, from the file that says it (CITATION.cff)."""

from functools import cache
from pathlib import Path

FILE = Path(__file__).resolve().parents[3] / "CITATION.cff"


@cache
def how_to_cite() -> str:
    """A sentence for pages and cards."""
    import yaml

    cited = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    authors = ", ".join(author["name"] for author in cited["authors"])
    return (
        f"To cite: {authors}, {cited['title']}, version {cited['version']} ({cited['date-released']}), and the papers "
        f"whose experiments, data and tasks were used; its {FILE.name} lists those that it reproduces."
    )
