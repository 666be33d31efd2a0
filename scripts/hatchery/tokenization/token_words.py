"""The number of words that begin in each token, for the word-counting rules `adjusted` and `jieba`.

By the rule `adjusted`, a word begins every (5.43 x premium) bytes (UTF-8), where `premium` is the byte premium of the
language. The bytes of all documents of a split with the same premium are counted without a break, so B bytes contain B
/ (5.43 x premium) words, rounded up once. By the rule `jieba`, a word is a segment of the library jieba, and begins in
the token that contains its first character. Segments of white space do not count as words (inferred: docs/babylm.md,
"Words of every language").

A token represents the text from the end of the previous token to its own end, including line ends; the last token of a
document also represents the rest of the document. So every word of a document begins in exactly one token.
"""

import tempfile
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from hatchery.corpora.word_counting import WordCounting, bytes_per_word
from hatchery.errors import ConfigError, TokenizationError
from hatchery.tokenization.documents import sentence_places

if TYPE_CHECKING:
    import jieba

JIEBA_VERSION = "0.42.1"
MOST_WORDS_PER_TOKEN = np.iinfo(np.uint16).max


class WordCounter(Protocol):
    """Counts the words of consecutive documents."""

    def begin_split(self) -> None:
        """Begin a split: the words of its first document do not depend on earlier documents."""

    def __call__(self, text: str, source: str, ends: np.ndarray) -> np.ndarray:
        """Return the number of words that begin in each token of a document: int64 [tokens].

        `ends` contains for each token the index of the first character after this token, in ascending order up to the
        length of the text.
        """


class AdjustedWords:
    """Counts words by the rule `adjusted`. Documents of a split with the same byte premium are counted as one text."""

    def __init__(self, counting: WordCounting) -> None:
        self._counting = counting
        self._bytes: dict[float, int] = {}

    def begin_split(self) -> None:
        """Reset the number of bytes of the earlier documents to 0, so that the next document begins with a word."""
        self._bytes.clear()

    def __call__(self, text: str, source: str, ends: np.ndarray) -> np.ndarray:
        """Return the number of words that begin in each token: see `WordCounter`."""
        premium = self._counting.premium(source)
        size = bytes_per_word(premium)
        before = self._bytes.get(premium, 0)
        local = _byte_offsets(text)[ends]
        self._bytes[premium] = before + len(text.encode())
        # Compute with fractions, which have no rounding errors. Word k begins at byte k * size, so ceil(b / size) words
        # begin before byte b.
        _, rest = divmod(before * size.denominator, size.numerator)
        begun = -(-(rest + local * size.denominator) // size.numerator)
        return np.diff(begun, prepend=int(rest > 0))


class JiebaWords:
    """Counts the words that jieba finds in its default mode with its own dictionary."""

    def __init__(self) -> None:
        self._segmenter = load_jieba()

    def begin_split(self) -> None:
        """Do nothing, because documents are counted independently."""

    def __call__(self, text: str, source: str, ends: np.ndarray) -> np.ndarray:
        """Return the number of words that begin in each token: see `WordCounter`."""
        begins = [start for word, start, _ in self._segmenter.tokenize(text) if not word.isspace()]
        # A word begins in the first token that ends after the word's first character.
        tokens = np.searchsorted(ends, np.array(begins, dtype=np.int64), side="right")
        return np.bincount(tokens, minlength=len(ends)).astype(np.int64)


def word_counter(counting: WordCounting) -> WordCounter | None:
    """Return the counter of a word-counting rule; None for `white_space`, because the column `word_starts` marks these
    words.
    """
    if counting.word_count == "white_space":
        return None
    return AdjustedWords(counting) if counting.word_count == "adjusted" else JiebaWords()


def load_jieba() -> "jieba.Tokenizer":
    """Return jieba's segmenter with its own dictionary.

    Raises ConfigError if jieba is missing, or has another version, which may segment text differently.
    """
    import logging
    import warnings

    try:
        with warnings.catch_warnings():
            # At import, Python warns about escapes in jieba's regular expressions and about the search for its
            # dictionary. These warnings are hidden.
            warnings.simplefilter("ignore")
            import jieba
    except ImportError as error:
        raise ConfigError(
            f"word_count: jieba needs the package jieba {JIEBA_VERSION}; pip install jieba=={JIEBA_VERSION}"
        ) from error
    if jieba.__version__ != JIEBA_VERSION:
        raise ConfigError(
            f"word_count: jieba counts words with jieba {JIEBA_VERSION}, found version {jieba.__version__}"
        )
    jieba.setLogLevel(logging.WARNING)
    segmenter = jieba.Tokenizer()
    # jieba's cache is written to a private folder, because all users share the default folder for temporary files.
    with tempfile.TemporaryDirectory(prefix="jieba.") as folder:
        segmenter.tmp_dir = folder
        segmenter.initialize()
    return segmenter


def counting_measures(counting: WordCounting) -> dict[str, object]:
    """Return the measures that record a word-counting rule in a manifest; empty for `white_space`."""
    if counting.word_count == "white_space":
        return {}
    premiums = {"byte_premium": counting.byte_premium, "byte_premiums": dict(sorted(counting.byte_premiums.items()))}
    return {"word_count": counting.word_count, **{name: value for name, value in premiums.items() if value}}


def sentence_token_ends(
    text: str, sentences: Sequence[str], spans: Sequence[Sequence[tuple[int, int]]], sizes: Sequence[int]
) -> np.ndarray:
    """Return the index of the first character after each token, for a document that was encoded sentence by sentence. A
    `WordCounter` is called with these indices.

    `spans` are the character spans of each sentence's tokens, relative to the sentence. `sizes` are the numbers of
    tokens of each sentence, including [PAR].
    """
    parts = [np.zeros(0, dtype=np.int64)]
    for begin, sentence, own, size in zip(sentence_places(text), sentences, spans, sizes, strict=True):
        inside = [end for _, end in own] + [len(sentence)] * (size - len(own))
        parts.append(begin + np.array(inside, dtype=np.int64))
    return _up_to_the_end(np.concatenate(parts), text)


def whole_token_ends(text: str, begins: np.ndarray, ends: Sequence[int]) -> np.ndarray:
    """Return the index in `text` of the first character after each token, for a document that was encoded as one text
    (see `whole_text`). A `WordCounter` is called with these indices.

    The arguments `begins` and `ends` are character indices in the result of `whole_text`: `begins` are the first
    characters of sentences, and `ends` are the ends of tokens.
    """
    inside = np.array(ends, dtype=np.int64)
    sentence = np.searchsorted(begins, inside, side="right") - 1
    places = np.array(sentence_places(text), dtype=np.int64)
    return _up_to_the_end(places[sentence] + inside - begins[sentence], text)


def _up_to_the_end(ends: np.ndarray, text: str) -> np.ndarray:
    rising = np.maximum.accumulate(ends)
    rising[-1:] = len(text)
    return rising


def counts_of_document(counter: WordCounter, doc_id: str, text: str, source: str, ends: np.ndarray) -> np.ndarray:
    """Return the number of words that begin in each token of a document: uint16 [tokens].

    Raises TokenizationError if a token has more words than uint16 holds.
    """
    if not len(ends):
        return np.zeros(0, dtype=np.uint16)
    counts = counter(text, source, ends)
    most = int(counts.max())
    if most > MOST_WORDS_PER_TOKEN:
        raise TokenizationError(
            f"document {doc_id!r}: one token represents {most:,} words, expected at most {MOST_WORDS_PER_TOKEN:,}; the "
            "tokenizer has no entry for most of this text"
        )
    return counts.astype(np.uint16)


def _byte_offsets(text: str) -> np.ndarray:
    """Return the number of bytes (UTF-8) before each character, followed by the number of all bytes: int64 [characters
    + 1]."""
    codes = np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)
    sizes = 1 + (codes >= 0x80).astype(np.int64) + (codes >= 0x800) + (codes >= 0x10000)
    return np.concatenate([[0], np.cumsum(sizes)])
