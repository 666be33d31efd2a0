"""Word-split ratio: tokens per word when each word is tokenised alone, and fertility in running text beside it.

Source: reduced-vocabulary study, Section 3.3; docs/papers/reduced-vocabulary.md, "Word-split ratio and choice". Words
stand between single spaces and are tokenised without a leading-space marker; an empty string, left by a doubled space,
counts as a word of 0 tokens. As words in running text carry the marker that most entries of a byte-level vocabulary
have, the ratio overstates it: `fertility` is the corrected figure, text tokens per word between white space, over the
same sample.

The sample has sequences without replacement from all splits. Every sequence gets a seeded random mark in the order of
the corpus and the smallest marks are kept, so one pass in flat memory is enough and the sample depends on nothing but
the corpus and the seed.
"""

import heapq
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from hatchery.errors import CorpusError
from hatchery.tokenization.documents import DOCUMENTS_PER_BATCH, read_batches
from hatchery.tokenization.selection.backends import isolated, tokens_of, unknown_token
from hatchery.tokenization.tokenizer_file import Definition, open_backend

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


def count_words(sequences: Iterable[str]) -> Counter[str]:
    """How often each space-separated word occurs; the empty string is a word where two spaces meet.

    The lines of a sequence are joined by one space and blank lines left out: the layout of documents makes no words.
    """
    words: Counter[str] = Counter()
    for sequence in sequences:
        words.update(" ".join(line for line in sequence.split("\n") if line).split(" "))
    return words


def word_split_ratio(definition: Definition, words: Counter[str], where: str) -> float:
    """Mean tokens per word in isolation. Raises CorpusError naming `where` when there is no word."""
    total = words.total()
    if not any(words):
        raise CorpusError(f"{where}: the sample has no words to measure a word-split ratio on")
    backend = open_backend(isolated(definition), where)
    distinct = sorted(words)
    tokens = sum(words[word] * len(found) for word, found in zip(distinct, tokens_of(backend, distinct), strict=True))
    return tokens / total


def running_text(definition: Definition, sequences: Sequence[str], where: str) -> tuple[float, float]:
    """Fertility (tokens per word between white space) and share of unknown tokens, over the lines of the sequences.

    Raises CorpusError when there is no word.
    """
    backend = open_backend(definition, where)
    unknown = unknown_token(definition)
    lines = [line.strip() for sequence in sequences for line in sequence.split("\n") if line.strip()]
    words = sum(len(line.split()) for line in lines)
    if not words:
        raise CorpusError(f"{where}: the sample has no words to measure fertility on")
    tokens = unknown_tokens = 0
    for found in tokens_of(backend, lines):
        tokens += len(found)
        unknown_tokens += sum(token == unknown for token in found)
    return tokens / words, unknown_tokens / tokens if tokens else 0.0
