"""Templates and cards: untrusted text stays text, and all templates are used."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import UndefinedError
from markdown_it import MarkdownIt

from hatchery.rendering.table import table
from hatchery.rendering.templates import FOLDER, Section, Text, card_html, card_markdown, coded, render
from hatchery.sanitize import visible
from hatchery.units import count

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
    sources = [*SCRIPTS.rglob("*.py"), *FOLDER.iterdir(), SCRIPTS.parent / "docs/site/gallery.py"]
    texts = [path.read_text(encoding="utf-8") for path in sources]
    mentioned = {name for text in texts for name in re.findall(r'"([\w.]+\.(?:j2|css|js))"', text)}
    assert {path.name for path in FOLDER.iterdir()} <= mentioned


def test_no_page_is_written_by_hand_beside_the_templates() -> None:
    for path in (SCRIPTS / "hatchery").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r'"</?(?:table|section|html|tbody)\b', text), f"{path} writes HTML of its own"


ATTACKS = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</title></style></blockquote><iframe>",
    "[link](javascript:alert(1))",
    "![image](https://example.org/x.png)",
    "<https://example.org> www.example.org me@example.org",
    "a | b | c\n| :-- |",
    "`code` **bold** _it_ ~~gone~~ &lt; &#60;",
    "# heading",
    "- item",
    "1. item",
    "12) item",
    "+",
    "=====",
    "\\<b\\>",
    "\x00\x1b[31m",
    "a\u202eb\u2066",
    "<!-- comment --> ]]>",
]
TEXTS = st.one_of(st.sampled_from(ATTACKS), st.text(max_size=60))


class Page(HTMLParser):
    """Collects tags, attributes, and texts by tag."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str | None]] = []
        self.texts: dict[str, list[str]] = {}
        self._open: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]
        self.texts.setdefault(tag, []).append("")
        self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self._open and self._open[-1] == tag:
            self._open.pop()

    def handle_data(self, data: str) -> None:
        if self._open:
            self.texts[self._open[-1]][-1] += data


def sections_with(text: str) -> list[Section]:
    shown = table(("source", text), [(text, text)], words=2, caption=f"of {text}", foreign=True)
    return [Section("Samples", ["Prose."], tables=[shown], texts=[Text(text, text)])]


@given(TEXTS)
def test_a_page_has_the_same_elements_whatever_the_text_and_shows_it_unchanged(text: str) -> None:
    page = Page(card_html(text, text or "x", sections_with(text)))
    harmless = Page(card_html("x", "x", sections_with("x")))
    assert page.tags == harmless.tags
    assert [a[:2] for a in page.attributes] == [a[:2] for a in harmless.attributes]
    # HTML has only one kind of line end.
    expected = re.sub("\r\n?", "\n", visible(text))
    assert [re.sub("\r\n?", "\n", shown) for shown in page.texts["blockquote"]] == [expected]
    assert page.texts["td"] == [visible(text)]


@given(TEXTS)
def test_markdown_is_a_table_of_plain_cells_whatever_the_text(text: str) -> None:
    markdown = card_markdown(text, text, sections_with(text))
    rendered = MarkdownIt("gfm-like", {"html": True, "linkify": False}).render(markdown)
    allowed = {"h1", "h2", "p", "table", "thead", "tbody", "tr", "th", "td"}
    page = Page(rendered)
    assert set(page.tags) <= allowed
    assert page.tags.count("td") == 2
    assert {" ".join(cell.split()) for cell in page.texts["td"]} == {" ".join(visible(text).split())}


def test_a_page_loads_nothing_and_runs_one_script_of_ours() -> None:
    page = Page(card_html("x", "x", sections_with("x")))
    assert not {"link", "img", "iframe", "object"} & set(page.tags)
    assert page.tags.count("script") == 1 and not any(name == "src" for _, name, _ in page.attributes)
    assert all(value is None or "http" not in value for _, _, value in page.attributes)
    assert ("meta", "http-equiv", "Content-Security-Policy") in page.attributes


def test_a_page_can_be_read_aloud_and_walked_by_keyboard() -> None:
    page = Page(card_html("Card", "About.", sections_with("x")))
    assert ("html", "lang", "en") in page.attributes
    assert {"main", "nav", "caption"} <= set(page.tags)
    assert ("th", "scope", "col") in page.attributes
    assert ("th", "scope", "row") in page.attributes
    # A wide table scrolls, so it must be reachable by keyboard.
    assert ("div", "tabindex", "0") in page.attributes
    anchors = {value for _, name, value in page.attributes if name == "id"}
    assert {value for _, name, value in page.attributes if name == "href"} == {f"#{anchor}" for anchor in anchors}


@pytest.mark.parametrize(
    ("number", "text"), [(None, ""), (0, "0"), (1234567, "1,234,567"), (2.5, "2.5"), (1200.0, "1,200")]
)
def test_numbers_have_thousands_separators(number: float | None, text: str) -> None:
    assert count(number) == text
