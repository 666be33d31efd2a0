"""Templates escape what they fill in, do without nothing that they name, and belong to the code of their stages."""

import re
from pathlib import Path

import pytest
from jinja2 import UndefinedError

from hatchery.environments.imports import import_closure
from hatchery.environments.stage_code import code_digest, templates_of
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


def test_every_template_is_named_by_some_stage() -> None:
    named = {path for script in SCRIPTS.glob("*.py") for path in templates_of(import_closure(script))}
    assert named == set(FOLDER.iterdir())


def test_a_change_of_a_template_changes_the_code_of_the_stages_that_use_it(tmp_path: Path) -> None:
    files = {
        "page.py": "from hatchery.rendering import templates\nfrom hatchery import page\n",
        "other.py": "from hatchery.rendering import templates\n",
        "hatchery/page.py": 'PAGE = "page.html.j2"\n',
        "hatchery/rendering/templates.py": "",
        "hatchery/rendering/templates/page.html.j2": '{% extends "base.html.j2" %}',
        "hatchery/rendering/templates/base.html.j2": '{% include "base.css" %}',
        "hatchery/rendering/templates/base.css": "p { margin: 0; }",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def code(command: str) -> str:
        return code_digest(import_closure(tmp_path / command), tmp_path)

    page, other = code("page.py"), code("other.py")
    for name in ("page.html.j2", "base.html.j2", "base.css"):
        template = tmp_path / "hatchery/rendering/templates" / name
        template.write_text(template.read_text(encoding="utf-8") + " ", encoding="utf-8")
        assert code("page.py") != page
        assert code("other.py") == other
        page = code("page.py")


def test_no_page_is_written_by_hand_beside_the_templates() -> None:
    for path in (SCRIPTS / "hatchery").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r'"</?(?:table|section|html|tbody)\b', text), f"{path} writes HTML of its own"
