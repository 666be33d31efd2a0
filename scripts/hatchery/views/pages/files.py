"""What the page of an experiment shows of other files: their addresses, its figures, and the sizes of its corpora.

Addresses are relative to the page that names them, so that a folder of results can be moved or sent.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from markupsafe import Markup

from hatchery.artifacts.checksums import vouched
from hatchery.artifacts.manifests import read_manifest
from hatchery.rendering.svg import embedded_figure, read_text
from hatchery.rendering.table import Cell, Content, Table, table
from hatchery.units import count
from hatchery.views.figures.registry import FAILED_LABEL, PUBLISHED_LABEL, declared_figures


def address(target: Path, page: Path) -> str:
    """The address of the file `target` on `page`, still to be escaped."""
    relative = Path(os.path.relpath(target.absolute(), page.absolute().parent))
    return quote(relative.as_posix())


# Said only of a drawing whose legend says it, too.
MARKS = {PUBLISHED_LABEL: "Open diamonds are published values.", FAILED_LABEL: "Hollow marks are failed runs."}


def figure_of(path: Path) -> Markup:
    """The figure with its caption, a sentence for every mark that it has, and its explanation.

    Raises ManifestError when it was altered.
    """
    drawing = read_text(vouched(path))
    # Matplotlib writes every text of a drawing, whose letters are paths, into a comment beside it.
    marks = [sentence for label, sentence in MARKS.items() if f"<!-- {label} -->" in drawing]
    declared = declared_figures()[path.stem]
    return embedded_figure(path, " ".join([declared.caption, *marks]), declared.paragraphs)


_SPLITS = ("train", "dev", "test")
_SIZES = ("documents", "sentences", "words", "characters")


def corpora(cards: Mapping[str, Path], page: Path) -> Table:
    """A row for each split of each corpus; `cards` are the manifests of corpus cards.

    Raises ManifestError when a card's manifest is missing or damaged.
    """
    rows: list[list[Content]] = []
    for corpus, path in cards.items():
        manifest = read_manifest(path)
        name: Content = Cell(corpus, link=address(manifest.file("card.html"), page))
        for split in (split for split in _SPLITS if split in manifest.measures):
            counts = manifest.measures[split]
            rows.append([name, split, *(count(counts[key]) for key in _SIZES)])
            name = ""
    return table(("corpus", "split", *_SIZES), rows, words=2, caption="Sizes of the corpora")
