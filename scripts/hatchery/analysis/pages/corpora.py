"""The corpora of an experiment on its page: their sizes, and the way to their cards."""

from collections.abc import Mapping
from pathlib import Path

from hatchery.analysis.cards.tables import html_text
from hatchery.analysis.pages.document import scrolling_table
from hatchery.analysis.pages.links import address
from hatchery.storage.manifests import read_manifest

_SPLITS = ("train", "dev", "test")
_SIZES = ("documents", "sentences", "words", "characters")


def corpora(cards: Mapping[str, Path], page: Path) -> str:
    """A row for each split of each corpus; `cards` are the manifests of corpus cards. Empty without cards.

    Raises ManifestError when a card's manifest is missing or damaged.
    """
    if not cards:
        return ""
    rows = []
    for corpus, path in cards.items():
        manifest = read_manifest(path)
        name = f'<a href="{address(manifest.file("card.html"), page)}">{html_text(corpus)}</a>'
        for split in (split for split in _SPLITS if split in manifest.measures):
            counts = manifest.measures[split]
            rows.append([name, split, *(f"{counts[key]:,}" for key in _SIZES)])
            name = ""
    return (
        "<p>Each name leads to the corpus's card: sizes beside the published ones, lengths, vocabulary, samples, and "
        "what was left out.</p>\n"
        + scrolling_table("Sizes of the corpora", ["corpus", "split", *_SIZES], rows, counts=True)
    )
