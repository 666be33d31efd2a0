"""Pages in a real browser: measures, results of scripts, and violations of accessibility rules."""

import html
import json
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
WIDTHS = (400, 1280)
FRAMES = """<!DOCTYPE html><body>
PAGES<pre id="out"></pre>
<script>
const measures = frame => {
  const inner = frame.contentDocument, root = inner.scrollingElement;
  const hit = inner.querySelector(":target");
  return {
    width: root.clientWidth, needed: root.scrollWidth, loaded: inner.images.length, links: inner.links.length,
    target: hit ? hit.textContent : null,
    nav: (() => { root.scrollTop = 900; const b = inner.querySelector("nav").getBoundingClientRect();
      root.scrollTop = 0; return [b.top, b.bottom]; })(),
    small: Array.from(inner.querySelectorAll("p, li, td, th"))
      .filter(e => parseFloat(getComputedStyle(e).fontSize) < 12).length,
    cut: Array.from(inner.querySelectorAll(".table, .drawing"))
      .filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.getAttribute("aria-label")),
    labelled: Array.from(inner.querySelectorAll("table.stacked tbody td:not(:empty)")).map(e =>
      [getComputedStyle(e).display, getComputedStyle(e, "::before").content]),
    drawings: Array.from(inner.querySelectorAll(".drawing svg"))
      .map(e => e.getBoundingClientRect()).filter(b => b.width > 0)
      .map(b => [b.left, b.right, b.height / b.width]),
    frames: Array.from(inner.querySelectorAll(".drawing"))
      .map(e => [e.querySelector("svg").style.maxWidth || e.style.maxWidth, e.clientWidth,
                 Math.max(...Array.from(e.querySelectorAll("svg")).map(s => s.getBoundingClientRect().width))]),
  };
};
onload = () => {
  const frames = Array.from(document.querySelectorAll("iframe"));
  document.getElementById("out").textContent = JSON.stringify(frames.map(measures));
};
</script>"""


AXE = """<pre id="out"></pre><script>
axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]}).then(found => {
  document.getElementById("out").textContent = JSON.stringify(found.violations.map(each =>
    [each.id, each.help, each.nodes.slice(0, 3).map(node => node.html.slice(0, 120))]));
});
</script>"""

_measured: dict[tuple[Path, bytes, str, tuple[int, ...]], dict[int, dict[str, Any]]] = {}


def after(folder: Path, page: Path, script: str) -> Any:
    """Return the value of the body of a JavaScript function that runs when the page has loaded."""
    copy = page.with_name(f"after-{page.name}")
    text = re.sub('<meta http-equiv="Content-Security-Policy"[^>]*>', "", page.read_text(encoding="utf-8"))
    shown = f'document.getElementById("out").textContent = JSON.stringify((() => {{{script}}})())'
    run = f'<pre id="out"></pre><script>{shown}'
    copy.write_text(text.replace("</body>", f"{run}</script></body>"), encoding="utf-8")
    return json.loads(_printed(folder, copy.as_uri(), 1280))


def violations(folder: Path, page: Path, width: int, dark: bool = False) -> list[Any]:
    """Return the rules of accessibility that axe-core finds violated on a page, with the first three elements each."""
    import axe_core_python

    script = (Path(axe_core_python.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
    text = re.sub('<meta http-equiv="Content-Security-Policy"[^>]*>', "", page.read_text(encoding="utf-8"))
    copy = page.with_name(f"axe-{page.name}")
    copy.write_text(text.replace("</main>", f"</main><script>{script}</script>{AXE}"), encoding="utf-8")
    return list(json.loads(_printed(folder, copy.as_uri(), width, ["--force-dark-mode"] if dark else [])))


def measured(
    folder: Path, page: Path, fragment: str = "", widths: tuple[int, ...] = WIDTHS
) -> dict[int, dict[str, Any]]:
    """Return the measures of a page in a frame of each width (CSS pixels); an unchanged page is opened once."""
    key = page, page.read_bytes(), fragment, widths
    if key not in _measured:
        address = html.escape(page.as_uri() + fragment)
        pages = [f'<iframe src="{address}" width="{width}" height="800"></iframe>' for width in widths]
        frames = folder / "frames.html"
        frames.write_text(FRAMES.replace("PAGES", "\n".join(pages)), encoding="utf-8")
        found = json.loads(_printed(folder, frames.as_uri(), max(widths)))
        _measured[key] = dict(zip(widths, found, strict=True))
    return _measured[key]


def _printed(folder: Path, address: str, width: int, options: Sequence[str] = ()) -> str:
    """Return the text that the page at `address` wrote into its element `out`."""
    command = [str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files", *options]
    command += [f"--user-data-dir={folder / 'profile'}", f"--window-size={max(width, 500)},900"]
    shown = subprocess.run(
        [*command, "--virtual-time-budget=5000", "--dump-dom", address],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    ).stdout
    found = re.search(r'<pre id="out">(.*?)</pre>', shown, flags=re.DOTALL)
    assert found is not None, shown[-500:]
    return html.unescape(found[1])
