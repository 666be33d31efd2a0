"""Configuration of Sphinx for the site of the documentation (`make site`).

Sphinx instead of MkDocs: its autodoc reads our docstrings without a plugin, its search works without a network, and
it is maintained. The pages are the Markdown files of docs/, read by MyST; the menu is made from the links of
docs/README.md, so that a page is listed once.
"""

import re
from pathlib import Path

from sphinx.application import Sphinx

project = "Hatchery"
author = "The authors of Hatchery"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_copybutton"]
root_doc = "README"
source_suffix = {".md": "markdown"}
exclude_patterns = ["*.ipynb"]
html_theme = "furo"
html_title = "Hatchery"
html_show_copyright = False
html_static_path = ["."]
html_css_files = ["site.css"]
# The anchors that the links of our Markdown files use.
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
# A docstring of ours is plain prose, in which `name` is code.
default_role = "literal"
# The lexer does not know our own abbreviations of YAML and shell.
suppress_warnings = ["misc.highlighting_failure"]

# Files of the checkout's first folder that pages of site/ include, or that a page offers as they are.
PAGES = {"README.md": "start.md", "CONTRIBUTING.md": "contributing.md", "SECURITY.md": "security.md"}
FILES = ("LICENSE", "CITATION.cff")
HEADING, LINK = re.compile(r"^## (.+)$", re.MULTILINE), re.compile(r"\]\(([\w/-]+)\.md\)")


def with_menu(app: Sphinx, page: str, source: list[str]) -> None:
    """Lead links out of docs/ to their pages, and give the root page a menu: the pages that each section links."""
    for outside, inside in PAGES.items():
        source[0] = source[0].replace(f"](../{outside}", f"](site/{inside}")
    if page != root_doc:
        return
    source[0] += (
        '\n<a href="figures.html">All figures</a>, drawn from invented numbers, with the commands that make them.\n'
    )
    _, *parts = HEADING.split(source[0])
    source[0] += "\n```{toctree}\n:hidden:\n\nsite/start\nsite/contributing\nsite/security\n```\n"
    for title, text in zip(parts[::2], parts[1::2], strict=True):
        pages = "\n".join(dict.fromkeys(LINK.findall(text)))
        source[0] += f"\n```{{toctree}}\n:hidden:\n:caption: {title}\n\n{pages}\n```\n"


def with_links(app: Sphinx, path: Path, page: str, content: list[str]) -> None:
    """Lead the links of an included file to files beside it."""
    for outside, inside in {**PAGES, **{name: f"../../{name}" for name in FILES}}.items():
        content[0] = content[0].replace(f"]({outside}", f"]({inside}")


def setup(app: Sphinx) -> None:
    """Register menu and links."""
    app.connect("source-read", with_menu)
    app.connect("include-read", with_links)
