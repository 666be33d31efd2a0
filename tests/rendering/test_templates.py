"""Templates escape what they fill in, do without nothing that they name, and are all used."""

import re
from pathlib import Path

import pytest
from jinja2 import UndefinedError

from hatchery.rendering.templates import FOLDER, coded, render

SCRIPTS = Path(__file__).parents[2] / "scripts"


def test_what_is_filled_in_is_escaped() -> None:
    page = render("card.html.j2", title="<b>\x1b", description='"&', sections=[])
    assert "<h1>&lt;b&gt;\ufffd</h1>" in page
    assert "&#34;&amp;" in page
    text = render("exported_models.md.j2", experiment="a|b", description="`x` <i>", table=_Nothing())
    assert text.startswith("# Models of the experiment a\\|b\n\n\\`x\\` \\<i>\n")


class _Nothing:
    def markdown(self) -> str:
        return ""


def test_a_value_that_is_missing_is_an_error() -> None:
    with pytest.raises(UndefinedError, match="sections"):
        render("card.html.j2", title="x", description="")


def test_code_in_prose_is_marked_and_the_rest_escaped() -> None:
    assert coded("a `b<` & c") == "a <code>b&lt;</code> &amp; c"


def test_every_template_is_used_by_some_module_or_template() -> None:
    texts = [path.read_text(encoding="utf-8") for path in [*SCRIPTS.rglob("*.py"), *FOLDER.iterdir()]]
    mentioned = {name for text in texts for name in re.findall(r'"([\w.]+\.(?:j2|css))"', text)}
    assert {path.name for path in FOLDER.iterdir()} <= mentioned


def test_no_page_is_written_by_hand_beside_the_templates() -> None:
    for path in (SCRIPTS / "hatchery").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r'"</?(?:table|section|html|tbody)\b', text), f"{path} writes HTML of its own"
