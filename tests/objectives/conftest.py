"""Document collections made from lists of sentence lengths, for all tests of the objectives."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pytest


@dataclass(frozen=True)
class MadeDocument:
    ids: np.ndarray
    sentence_starts: np.ndarray


@dataclass(frozen=True)
class MadeCollection:
    documents: list[MadeDocument]

    @property
    def n_documents(self) -> int:
        return len(self.documents)

    def document(self, index: int) -> MadeDocument:
        return self.documents[index]


@pytest.fixture(scope="session")
def make_collection() -> Callable[..., MadeCollection]:
    """Documents with sentences of the given lengths; ids are ordinary tokens below `vocab_size`, or count up from 0."""

    def make(documents: Sequence[Sequence[int]], vocab_size: int | None = None, seed: int = 0) -> MadeCollection:
        generator = np.random.default_rng(seed)
        made = []
        for lengths in documents:
            total = int(np.sum(lengths))
            ids = generator.integers(6, vocab_size, total) if vocab_size else np.arange(total)
            starts = np.cumsum([0, *lengths[:-1]]) if len(lengths) else np.zeros(0)
            made.append(MadeDocument(ids.astype(np.uint16), starts.astype(np.int32)))
        return MadeCollection(made)

    return make
