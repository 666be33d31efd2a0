"""Document collections made from lists of sentence lengths, for the tests of the objectives."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pytest

from hatchery.tokenization.special_tokens import SPECIAL_SETS, SpecialTokens
from hatchery.tokenization.token_shards import Document


@dataclass(frozen=True)
class MadeCollection:
    documents: list[Document]
    vocabulary_size: int = 300
    special: SpecialTokens = SPECIAL_SETS["babylm"]
    split: str = "train"

    @property
    def n_documents(self) -> int:
        return len(self.documents)

    def document(self, index: int) -> Document:
        return self.documents[index]

    def __iter__(self) -> Iterator[Document]:
        return iter(self.documents)

    def document_lengths(self) -> np.ndarray:
        return np.array([len(document.ids) for document in self.documents], dtype=np.int64)


@pytest.fixture(scope="session")
def make_collection() -> Callable[..., MadeCollection]:
    """Documents with sentences of the given lengths; ids are ordinary tokens below `vocab_size`, or count up from 0."""

    def make(documents: Sequence[Sequence[int]], vocab_size: int | None = None, seed: int = 0) -> MadeCollection:
        generator = np.random.default_rng(seed)
        made = []
        for lengths in documents:
            total = int(np.sum(lengths))
            ids = generator.integers(6, vocab_size, total) if vocab_size else np.arange(total)
            made.append(made_document(ids, lengths, generator.random(total) < 0.7))
        return MadeCollection(made, vocab_size or 300)

    return make


@pytest.fixture(scope="session")
def make_traceable() -> Callable[..., MadeCollection]:
    """Documents with sentences of the given lengths; each id occurs once, so that it identifies its position."""

    def make(documents: Sequence[Sequence[int]], name: str = "babylm") -> MadeCollection:
        made, first = [], len(SPECIAL_SETS[name].order)
        for lengths in documents:
            ids = np.arange(first, first + sum(lengths))
            first += sum(lengths)
            made.append(made_document(ids, lengths, ids % 3 > 0))
        return MadeCollection(made, max(first, 300), SPECIAL_SETS[name])

    return make


def made_document(ids: np.ndarray, lengths: Sequence[int], word_starts: np.ndarray) -> Document:
    starts = np.cumsum([0, *lengths[:-1]]) if len(lengths) else np.zeros(0)
    # Three unrelated bits precede the document's bits, as in the middle of a shard.
    bits = np.packbits(np.concatenate([[False] * 3, word_starts]), bitorder="little")
    return Document(ids.astype(np.uint16), starts.astype(np.int32), bits, first_bit=3)


class Draws:
    """A generator that returns given uniform numbers: each call returns the next entry, an array of the requested
    shape."""

    def __init__(self, *draws: float | Sequence[float] | Sequence[Sequence[float]]) -> None:
        self.draws = [np.array(draw, dtype=np.float64) for draw in draws]

    def random(self, size: int | tuple[int, ...] | None = None) -> np.ndarray:
        draw = self.draws.pop(0)
        wanted = () if size is None else size if isinstance(size, tuple) else (size,)
        assert draw.shape == wanted, f"{wanted} numbers are asked for, expected {draw.shape}"
        return draw


@pytest.fixture(scope="session")
def given_draws() -> type[Draws]:
    return Draws
