"""The pages in a real browser: nothing sticks out or is cut off, and a link to a number ends at its row."""

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from page_site import METRICS, Site
from test_page import ROWS

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FRAME = """<!DOCTYPE html><body>
<iframe id="page" src="{address}" width="{width}" height="800"></iframe><pre id="out"></pre>
<script>
onload = () => {{
  const inner = document.getElementById("page").contentDocument, root = inner.scrollingElement;
  const hit = inner.querySelector(":target");
  document.getElementById("out").textContent = JSON.stringify({{
    width: root.clientWidth, needed: root.scrollWidth, loaded: inner.images.length, links: inner.links.length,
    target: hit ? hit.textContent : null,
    nav: (() => {{ root.scrollTop = 900; const b = inner.querySelector("nav").getBoundingClientRect();
      root.scrollTop = 0; return [b.top, b.bottom]; }})(),
    small: Array.from(inner.querySelectorAll("p, li, td, th"))
      .filter(e => parseFloat(getComputedStyle(e).fontSize) < 12).length,
    cut: Array.from(inner.querySelectorAll(".table, .drawing"))
      .filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.getAttribute("aria-label")),
    labelled: Array.from(inner.querySelectorAll("table.stacked tbody td")).map(e => [getComputedStyle(e).display,
      getComputedStyle(e).justifyContent, getComputedStyle(e, "::before").content]),
    drawings: Array.from(inner.querySelectorAll(".drawing svg"))
      .map(e => e.getBoundingClientRect()).filter(b => b.width > 0)
      .map(b => [b.left, b.right, b.height / b.width]),
    frames: Array.from(inner.querySelectorAll(".drawing"))
      .map(e => [e.querySelector("svg").style.maxWidth || e.style.maxWidth, e.clientWidth,
                 Math.max(...Array.from(e.querySelectorAll("svg")).map(s => s.getBoundingClientRect().width))]),
  }});
}};
</script>"""

pytestmark = [pytest.mark.slow, pytest.mark.skipif(BROWSER is None, reason="needs chromium")]


def measured(folder: Path, address: str, width: int) -> dict[str, Any]:
    """What the browser says of a page in a window of that width (CSS pixels)."""
    frame = folder / "frame.html"
    frame.write_text(FRAME.format(address=html.escape(address), width=width), encoding="utf-8")
    command = [str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files"]
    command += [f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=5000", "--dump-dom", frame.as_uri()]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True).stdout
    found = re.search(r'<pre id="out">(.*?)</pre>', shown, flags=re.DOTALL)
    assert found is not None, shown[-500:]
    return dict(json.loads(html.unescape(found[1])))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    site = Site(tmp_path_factory.mktemp("browser"))
    for model in ("ltg", "elc"):
        site.add_run(model, METRICS)
    site.write(ROWS)
    return site


@pytest.mark.parametrize("width", [400, 1280])
@pytest.mark.parametrize("name", ["index.html", "provenance.html"])
def test_no_page_is_wider_than_its_window(site: Site, tmp_path: Path, name: str, width: int) -> None:
    seen = measured(tmp_path, (site.results / name).as_uri(), width)
    assert seen["links"] > 3
    assert seen["needed"] <= seen["width"] <= width
    assert seen["small"] == 0


@pytest.mark.parametrize("width", [400, 1280])
@pytest.mark.parametrize("name", ["index.html"])
def test_no_table_and_no_figure_is_cut_off(site: Site, tmp_path: Path, name: str, width: int) -> None:
    seen = measured(tmp_path, (site.results / name).as_uri(), width)
    assert seen["cut"] == []
    # One drawing in each frame, which it fills, and nothing of it beyond the window.
    assert len(seen["drawings"]) == len(seen["frames"])
    assert all(left >= 0 and right <= width for left, right, _ in seen["drawings"])
    assert all(drawn > 0.95 * frame - 20 for limit, frame, drawn in seen["frames"] if limit)


def test_on_a_phone_panels_stand_below_each_other(site: Site, tmp_path: Path) -> None:
    wide, narrow = (measured(tmp_path, site.page.as_uri(), width)["drawings"][-1] for width in (1280, 400))
    assert wide[2] < 0.6 and narrow[2] > 1.2


def test_on_a_phone_every_count_stands_beside_its_name(site: Site, tmp_path: Path) -> None:
    wide, narrow = (measured(tmp_path, site.page.as_uri(), width)["labelled"] for width in (1280, 400))
    assert {tuple(cell[:2]) for cell in narrow} == {("flex", "space-between")}
    assert ["flex", "space-between", '"documents"'] in narrow
    assert {cell[2] for cell in wide} == {"none"}


def test_a_link_to_a_number_ends_at_its_row(site: Site, tmp_path: Path) -> None:
    address = (site.results / "provenance.html").as_uri() + "#row-elc-glue-average-score_percent"
    assert "70.2500" in measured(tmp_path, address, 1280)["target"]


@pytest.mark.parametrize("width", [400, 1280])
@pytest.mark.parametrize("name", ["index.html", "provenance.html"])
def test_the_contents_stay_in_view_when_the_page_is_scrolled(site: Site, tmp_path: Path, name: str, width: int) -> None:
    top, bottom = measured(tmp_path, (site.results / name).as_uri(), width)["nav"]
    assert -1 <= top < bottom <= 801
