"""Which sentences of a corpus a reader sees filled in, and which word is left out: the same ones at every run.

Short sentences of the development split, which no model was trained on, with the smallest SHA-256: the choice depends
on neither order nor chance. The longest word that the tokenizer keeps whole is left out; long words say most.
"""

import hashlib
import heapq
import re
from collections.abc import Callable, Iterable, Iterator

from hatchery.artifacts.manifests import Manifest
from hatchery.errors import CorpusError
from hatchery.tokenization.documents import read_batches, split_sentences
from hatchery.tokenization.shards import shards_by_split

FEWEST_WORDS, MOST_WORDS = 5, 14
LEAST_LETTERS = 3
MOST_CHARACTERS = 120
# More than are shown: in some no word is one token.
CANDIDATES = 100
_DOCUMENTS_AT_ONCE = 256
_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_MARKER = re.compile(r"\[[A-Z]+\]|<[a-z]+>|____")


def candidates(
    corpus: Manifest, number: int = CANDIDATES, sentences_of: Callable[[str], Iterable[str]] | None = None
) -> tuple[str, list[str]]:
    """The split that is taken, and at most `number` different sentences of it, in the order of their hashes.

    `sentences_of` gives those of a document, by default the `suitable` ones. The split is `dev`; the first shard of
    `train` where there is no such split. Raises CorpusError for shards that are missing or damaged.
    """
    splits = shards_by_split(corpus)
    split = "dev" if "dev" in splits else "train"
    shards = splits.get(split, [])[: None if split == "dev" else 1]
    if not shards:
        raise CorpusError(f"{corpus.path}: has neither a development nor a training split to take sentences from")
    # Distinct before they are counted: the same sentence in a thousand documents is one.
    best: dict[str, str] = {}
    for shard in shards:
        for batch in read_batches(shard, _DOCUMENTS_AT_ONCE):
            for text in batch.texts:
                best.update((_key(sentence), sentence) for sentence in (sentences_of or suitable)(text))
            if len(best) > 10 * number:
                best = dict(heapq.nsmallest(number, best.items()))
    return split, [sentence for _, sentence in heapq.nsmallest(number, best.items())]


def suitable(text: str) -> Iterator[str]:
    """The sentences of a document that are short, whole, and free of markers such as [UNK]."""
    return filter(is_readable, split_sentences(text)[0])


def beginnings(text: str) -> Iterator[str]:
    """The first words of the lines of a document, for a text that was not cut into sentences."""
    return filter(is_readable, (" ".join(line.split()[:MOST_WORDS]) for line in split_sentences(text)[0]))


def is_readable(sentence: str) -> bool:
    """Whether a sentence is short, and free of markers and of what cannot be printed."""
    return (
        FEWEST_WORDS <= len(sentence.split()) <= MOST_WORDS
        and len(sentence) <= MOST_CHARACTERS
        and not _MARKER.search(sentence)
        and sentence.isprintable()
    )


def words_by_length(sentence: str) -> list[tuple[int, int]]:
    """Start and end of the words that may be left out, the longest first; of equally long ones the later."""
    # The first word of a sentence is mostly a small one, and its capital gives it away.
    found = [match.span() for match in _WORD.finditer(sentence) if match.start() > 0]
    long = [(start, end) for start, end in found if end - start >= LEAST_LETTERS]
    return sorted(long, key=lambda span: (span[0] - span[1], -span[0]))


def _key(sentence: str) -> str:
    return hashlib.sha256(f"fill/{sentence}".encode()).hexdigest()
