"""Pages in a real browser: no overflow, no cropped content, and links to numbers that end at their rows."""

from pathlib import Path

import pytest
from browser import BROWSER, WIDTHS, after, measured, violations
from page_site import Site

from hatchery.rendering.table import Cell, Column, Group, Table
from hatchery.rendering.templates import FOLDER, Section, card_html

pytestmark = [pytest.mark.slow, pytest.mark.skipif(BROWSER is None, reason="needs chromium")]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["index.html", "provenance.html"])
def test_no_page_is_wider_than_its_window(written: Site, tmp_path: Path, name: str, width: int) -> None:
    seen = measured(tmp_path, written.results / name)[width]
    assert seen["links"] > 3
    assert seen["needed"] <= seen["width"] <= width
    assert seen["small"] == 0


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["index.html", "provenance.html"])
def test_no_table_and_no_figure_is_cut_off(written: Site, tmp_path: Path, name: str, width: int) -> None:
    seen = measured(tmp_path, written.results / name)[width]
    assert seen["cut"] == []
    # Each frame has one drawing that fills the frame and stays inside the window.
    assert len(seen["drawings"]) == len(seen["frames"])
    assert all(left >= 0 and right <= width for left, right, _ in seen["drawings"])
    assert all(drawn > 0.95 * frame - 20 for limit, frame, drawn in seen["frames"] if limit)


@pytest.mark.parametrize("width", WIDTHS)
def test_what_a_model_writes_at_length_is_not_cut_off(written: Site, tmp_path: Path, width: int) -> None:
    text = written.page.read_text(encoding="utf-8")
    assert text.count("…ing") == 2
    page = written.results / "long.html"
    page.write_text(text.replace("…ing", "a little bit of " * 12).replace(">sleep<", f">{'basketball' * 8}<"))
    assert measured(tmp_path, page)[width]["cut"] == []


@pytest.mark.parametrize("width", WIDTHS)
def test_provenance_of_a_model_with_a_long_name_is_not_cut_off(written: Site, tmp_path: Path, width: int) -> None:
    text = (written.results / "provenance.html").read_text(encoding="utf-8")
    page = written.results / "long_provenance.html"
    page.write_text(text.replace("pretraining/elc", "pretraining/causal_learning_rate_0p002_hidden_size_96"))
    assert page.read_text() != text
    assert measured(tmp_path, page)[width]["cut"] == []


def test_on_a_phone_panels_stand_below_each_other(written: Site, tmp_path: Path) -> None:
    narrow, wide = (seen["drawings"][-1] for seen in measured(tmp_path, written.page).values())
    assert narrow[2] > 2 * wide[2]


def test_on_a_phone_every_count_stands_beside_its_name(written: Site, tmp_path: Path) -> None:
    narrow, wide = (seen["labelled"] for seen in measured(tmp_path, written.page).values())
    assert {display for display, _ in narrow} == {"flow-root"}
    assert ["flow-root", '"documents"'] in narrow
    assert {display for display, _ in wide} == {"table-cell"}


def test_a_link_to_a_number_ends_at_its_row(written: Site, tmp_path: Path) -> None:
    seen = measured(tmp_path, written.results / "provenance.html", "#row-elc-glue-average-score_percent")
    assert "70.2500" in seen[1280]["target"]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["index.html", "provenance.html"])
def test_the_contents_stay_in_view_when_the_page_is_scrolled(
    written: Site, tmp_path: Path, name: str, width: int
) -> None:
    top, bottom = measured(tmp_path, written.results / name)[width]["nav"]
    assert -1 <= top < bottom <= 801


@pytest.mark.parametrize("width", [500, 1280])
@pytest.mark.parametrize("name", ["index.html", "provenance.html"])
def test_no_rule_of_accessibility_is_violated(written: Site, tmp_path: Path, name: str, width: int) -> None:
    assert violations(tmp_path, written.results / name, width) == []


def test_a_violation_would_be_found(written: Site, tmp_path: Path) -> None:
    page = written.results / "broken.html"
    page.write_text(written.page.read_text(encoding="utf-8").replace('<html lang="en">', "<html>"), encoding="utf-8")
    assert [rule for rule, _, _ in violations(tmp_path, page, 1280)] == ["html-has-lang"]


def test_a_click_on_a_heading_sorts_the_rows_by_number_and_a_second_one_backwards(tmp_path: Path) -> None:
    rows = [["b", "9.5"], ["a", "10.0 ± 2"], ["c", "-"], ["d", "-1,200.5"]]
    (page := tmp_path / "sorted.html").write_text(
        page_of([Group(rows, "first"), Group([["z", "0"], ["y", "5"], ["x", "1"]])])
    )
    seen = after(
        tmp_path,
        page,
        """
        const names = () => [...document.querySelectorAll("tbody th[scope=row]")].map(e => e.textContent);
        const buttons = document.querySelectorAll("thead button"), heads = document.querySelectorAll("thead th");
        const seen = [names()];
        for (const index of [1, 1, 0]) {
          buttons[index].click();
          seen.push([...names(), heads[index].getAttribute("aria-sort")]);
        }
        return seen;""",
    )
    assert seen == [
        ["b", "a", "c", "d", "z", "y", "x"],
        # A cell without a number sorts last; groups stay separate.
        ["d", "b", "a", "c", "z", "x", "y", "ascending"],
        ["c", "a", "b", "d", "y", "x", "z", "descending"],
        ["a", "b", "c", "d", "x", "y", "z", "ascending"],
    ]


@pytest.mark.parametrize(("count", "filtered"), [(12, False), (13, True)])
def test_a_long_table_can_be_filtered(tmp_path: Path, count: int, filtered: bool) -> None:
    (page := tmp_path / "filtered.html").write_text(page_of([Group([[f"Row {n}", "1"] for n in range(count)])]))
    seen = after(
        tmp_path,
        page,
        """
        const input = document.querySelector("input[type=search]");
        if (!input) return null;
        input.value = "row 1";
        input.dispatchEvent(new Event("input"));
        return [...document.querySelectorAll("tbody tr")].filter(e => e.offsetHeight)
          .map(e => e.cells[0].textContent);""",
    )
    assert seen == (["Row 1", "Row 10", "Row 11", "Row 12"] if filtered else None)


def page_of(groups: list[Group]) -> str:
    """Return a page with one table."""
    return card_html(
        "t", "t", [Section("s", tables=[Table([Column("name", words=True), Column("n")], groups, "caption")])]
    )


def test_a_leaderboard_fits_the_width_of_the_text(tmp_path: Path) -> None:
    values = [Cell("73.11*", deviation="112.84") for _ in range(11)]
    headings = ["BLiMP", "supplement", "EWoK", "entity tracking", "COMPS", "GLUE", "GlobalPIQA", "reading", "AoA"]
    columns = [Column(name, words=not name) for name in ("", *headings, "mean", "with AoA 0")]
    rows = [[name, *values] for name in ("wwm_curriculum_simplification_40k", "a_run_with_a_long_name (3 seeds)")]
    shown = Table(columns, [Group(rows, "published")], names=True, kind="leaderboard").html()
    style = "".join((FOLDER / name).read_text("utf-8") for name in ("document.css", "experiment.css"))
    page = tmp_path / "index.html"
    page.write_text(f"<!DOCTYPE html><style>{style}</style><body><nav></nav><main>{shown}</main>", encoding="utf-8")
    cut = {width: seen["cut"] for width, seen in measured(tmp_path, page, widths=(1280, 1920)).items()}
    assert cut == {1280: [], 1920: []}
