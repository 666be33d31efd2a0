"""Which split a document belongs to: drawn from its own name, so neither order nor neighbours matter.

With fractions, a document that appears, vanishes or moves leaves the split of every other document as it was. With an
exact number of development documents (the 35 texts of LTG-BERT), those with the smallest draws are taken. A fraction
above zero gives one development document at least, the one with the smallest draw: an empty development split would be
noticed only after the pretraining.
"""

import hashlib
import heapq
from collections.abc import Iterable

from hatchery.corpora.documents import Split
from hatchery.corpora.settings import SplitSettings
from hatchery.errors import CorpusError

_POINTS = 2**64


def point(*names: object) -> int:
    """A uniform number from 0 to 2^64 - 1: the beginning of the SHA-256 of the names, such as a seed and a document."""
    return int.from_bytes(hashlib.sha256("\n".join(map(str, names)).encode()).digest()[:8], "big")


def smallest(points: Iterable[int], settings: SplitSettings) -> list[int]:
    """The draws that could decide which documents are for development: as many as are wanted, or the smallest one."""
    wanted = settings.development_documents
    return heapq.nsmallest(int(settings.development_fraction > 0) if wanted is None else wanted, points)


def splitter_of(settings: SplitSettings, points: list[int], documents: int, remedy: str) -> "Splitter":
    """The splitter of so many documents, whose smallest draws are `points`.

    Raises CorpusError, which ends with the remedy, where development would take the only document.
    """
    if points and settings.development_documents is None and documents == 1:
        raise CorpusError(
            f"the corpus has one document only, so there is none to hold out for development: {remedy}, "
            "or set split.development_fraction to 0"
        )
    return Splitter(settings, points)


class Splitter:
    """Assigns splits. `smallest_points` are those of all documents that `smallest` gave, in any order.

    Leave them out where another source of the corpus brings development documents of its own. Raises CorpusError when
    there are fewer documents than the development split is to have.
    """

    def __init__(self, settings: SplitSettings, smallest_points: Iterable[int] = ()) -> None:
        self._seed = settings.seed
        wanted = settings.development_documents
        if wanted is None:
            self._development = int(settings.development_fraction * _POINTS)
            if settings.development_fraction > 0:
                self._development = max(self._development, min(smallest_points, default=-1) + 1)
        else:
            points = heapq.nsmallest(wanted, smallest_points)
            if len(points) < wanted:
                raise CorpusError(f"split.development_documents: got {wanted}, the corpus has {len(points)} documents")
            self._development = points[-1] + 1 if points else 0
        # Above the development documents, so that an exact number of those leaves the share of the test split.
        self._test = self._development + int(settings.test_fraction * _POINTS)

    def __call__(self, doc_id: str) -> Split:
        """The split of the document called `doc_id`."""
        place = point(self._seed, doc_id)
        if place < self._development:
            return "dev"
        return "test" if place < self._test else "train"
