"""Pages and cards cite as CITATION.cff does, and CITATION.cff is complete."""

import datetime
import re
import tomllib
from pathlib import Path

import yaml

from hatchery.rendering.citation import how_to_cite
from hatchery.rendering.templates import card_html, card_markdown


def test_the_version_and_the_date_are_in_the_file_and_on_every_card(repository: Path) -> None:
    cited = yaml.safe_load((repository / "CITATION.cff").read_text(encoding="utf-8"))
    project = tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert cited["version"] == project["version"]
    assert isinstance(cited["date-released"], datetime.date)
    citation = f"The Hatchery contributors, Hatchery, version {cited['version']} ({cited['date-released']})"
    assert citation in how_to_cite()
    for card in (card_html("a", "", []), card_markdown("a", "", [])):
        assert citation in card


def test_the_papers_that_have_a_page_are_all_cited_and_counted(repository: Path) -> None:
    pages = (path.read_text(encoding="utf-8") for path in (repository / "docs/papers").glob("*.md"))
    named = (re.match(r'# .+\n\n[A-Z]\. [^"]+, "([^"]+)"', page) for page in pages)
    titles = {" ".join(found[1].rstrip(",").split()) for found in named if found}
    cited = yaml.safe_load((repository / "CITATION.cff").read_text(encoding="utf-8"))["references"]
    readme = (repository / "README.md").read_text(encoding="utf-8")
    rows = re.search(r"Five papers .*\n\n\|.*\n\|.*\n((?:\|.*\n)+)", readme)
    assert titles == {reference["title"] for reference in cited} and rows is not None
    assert len(titles) == rows[1].count("\n") == 5
