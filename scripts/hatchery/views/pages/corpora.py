"""The corpora of an experiment on its page: their sizes, and the way to their cards."""

from collections.abc import Mapping
from pathlib import Path

from hatchery.artifacts.manifests import read_manifest
from hatchery.rendering.table import Cell, Content, Table, table
from hatchery.units import count
from hatchery.views.pages.links import address

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
