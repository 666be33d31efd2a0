"""What a real browser says of a page."""

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

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
    labelled: Array.from(inner.querySelectorAll("table.stacked tbody td:not(:empty)")).map(e =>
      [getComputedStyle(e).display, getComputedStyle(e, "::before").content]),
    drawings: Array.from(inner.querySelectorAll(".drawing svg"))
      .map(e => e.getBoundingClientRect()).filter(b => b.width > 0)
      .map(b => [b.left, b.right, b.height / b.width]),
    frames: Array.from(inner.querySelectorAll(".drawing"))
      .map(e => [e.querySelector("svg").style.maxWidth || e.style.maxWidth, e.clientWidth,
                 Math.max(...Array.from(e.querySelectorAll("svg")).map(s => s.getBoundingClientRect().width))]),
  }});
}};
</script>"""


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
