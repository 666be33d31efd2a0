"""Markdown on a page: headings move down, tables can be scrolled and heard, sections are found by their title."""

from page_links import Page
from page_site import MARKDOWN, TABLES

from hatchery.analysis.pages.markdown import introductions, markdown_page, rendered, section_of


def test_headings_go_down_and_tables_are_named_after_theirs() -> None:
    page = Page(rendered(TABLES, deeper=2, prefix="paper-"))
    assert page.levels() == [3, 4]
    assert page.ids == ["paper-the-tables-of-the-paper", "paper-paper-table-1"]
    frames = [attributes for tag, attributes in page.tags if tag == "div"]
    assert frames == [{"class": "table", "tabindex": "0", "role": "region", "aria-label": "Paper, Table 1"}]
    assert [attributes["scope"] for tag, attributes in page.tags if tag == "th"] == ["col"] * 4


def test_no_heading_goes_below_the_last_level() -> None:
    assert Page(rendered("#### a\n\n##### b\n", deeper=3)).levels() == [6, 6]


def test_a_section_ends_where_the_next_one_begins() -> None:
    notes = section_of(MARKDOWN, "Notes")
    assert "mean ± standard deviation" in notes
    assert "chance" not in notes
    blimp = section_of(MARKDOWN + "\n# Another\n\ntext\n", "Minimal pairs: blimp")
    assert "chance is 50" in blimp
    assert "Notes" not in blimp
    assert section_of(MARKDOWN, "Missing") == ""


def test_an_introduction_is_a_paragraph_before_a_table() -> None:
    assert introductions(MARKDOWN) == [("Minimal pairs: blimp", "Accuracy in percent by phenomenon; chance is 50.")]


def test_raw_html_stays_text() -> None:
    page = Page(markdown_page("<b>", "# T\n\n<script>x</script>\n\n[a](javascript:x)\n"))
    assert not {tag for tag, _ in page.tags} & {"script", "b", "a"}
    assert page.levels() == [1]
