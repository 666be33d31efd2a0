"""The sample of sequences that word-split ratio and fertility are measured on.

Source: reduced-vocabulary study §3.2: sequences without replacement from all splits. Every sequence gets a seeded
random mark in the order of the corpus and the smallest marks are kept, so one pass in flat memory is enough and the
sample depends on nothing but the corpus and the seed.
"""

import heapq
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from hatchery.tokenization.documents import read_batches

DOCUMENTS_PER_BATCH = 256
Unit = Literal["documents", "lines"]


def sequences_of(texts: Iterable[str], unit: Unit) -> Iterator[str]:
    """The sequences of documents: themselves, or their non-empty lines; none is only white space."""
    for text in texts:
        for sequence in [text] if unit == "documents" else text.split("\n"):
            if sequence.strip():
                yield sequence


def texts_of(shards: Mapping[str, Sequence[Path]], splits: Sequence[str]) -> Iterator[str]:
    """The documents of the given splits, in the order of the splits and shards."""
    for split in splits:
        for path in shards.get(split, ()):
            for batch in read_batches(path, DOCUMENTS_PER_BATCH):
                yield from batch.texts


def draw(sequences: Iterable[str], count: int, seed: int) -> list[str]:
    """`count` sequences drawn without replacement, in their order; all of them where there are fewer."""
    rng = random.Random(f"word-split sample {seed}")
    # Negated marks: the heap's first element is the kept sequence with the largest mark, the next one to leave.
    kept: list[tuple[float, int, str]] = []
    for number, sequence in enumerate(sequences):
        item = (-rng.random(), number, sequence)
        if len(kept) < count:
            heapq.heappush(kept, item)
        elif item[0] > kept[0][0]:
            heapq.heapreplace(kept, item)
    return [sequence for _, _, sequence in sorted(kept, key=lambda item: item[1])]
