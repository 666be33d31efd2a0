"""The number of words that begin in each token, for rules other than words between white space.

An adjusted word begins every (5.43 x premium) bytes of the text (UTF-8) of a language, where `premium` is the byte
premium of the language, and bytes are counted through all documents of a split: so a split of B bytes has B / (5.43 x
premium) words, rounded up once for each premium. A word of jieba begins in the token that contains its first character;
jieba's segments of white space are no words (inferred: docs/babylm.md, "Words of every language"). A token represents
the text from the end of the previous token to its own end, including line ends, and the last token of a document also
represents the rest of the document. So every word of a document begins in exactly one token.
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
    """Counts the words of documents, which are passed one after the other."""

    def begin_split(self) -> None:
        """Forget all previous documents."""

    def __call__(self, text: str, source: str, ends: np.ndarray) -> np.ndarray:
        """Return the number of words that begin in each token of a document, int64 [number of tokens].

        `ends` are the indices of the character after each token; they rise to the length of the text.
        """


class AdjustedWords:
    """Adjusted words; the bytes of a language are summed over consecutive documents."""

    def __init__(self, counting: WordCounting) -> None:
        self._counting = counting
        self._bytes: dict[float, int] = {}

    def begin_split(self) -> None:
        """Forget the bytes of previous documents, so that the next document begins with a word."""
        self._bytes.clear()

    def __call__(self, text: str, source: str, ends: np.ndarray) -> np.ndarray:
        """Return the number of words that begin in each token; see `WordCounter`."""
        premium = self._counting.premium(source)
        size = bytes_per_word(premium)
        before = self._bytes.get(premium, 0)
        local = _byte_offsets(text)[ends]
        self._bytes[premium] = before + len(text.encode())
        # Integers are exact: word k begins at byte k * size, so ceil(b / size) words begin before byte b.
        _, rest = divmod(before * size.denominator, size.numerator)
        begun = -(-(rest + local * size.denominator) // size.numerator)
        return np.diff(begun, prepend=int(rest > 0))


class JiebaWords:
    """Words of jieba, by its default mode and its own dictionary."""

    def __init__(self) -> None:
        self._segmenter = load_jieba()

    def begin_split(self) -> None:
        """Do nothing, because no state is kept between documents."""

    def __call__(self, text: str, source: str, ends: np.ndarray) -> np.ndarray:
        """Return the number of words that begin in each token; see `WordCounter`."""
        begins = [start for word, start, _ in self._segmenter.tokenize(text) if not word.isspace()]
        # A word begins in the first token that ends after the word's first character.
        tokens = np.searchsorted(ends, np.array(begins, dtype=np.int64), side="right")
        return np.bincount(tokens, minlength=len(ends)).astype(np.int64)


def word_counter(counting: WordCounting) -> WordCounter | None:
    """Return the counter of a rule, or None for words between white space, which `word_starts` finds."""
    if counting.word_count == "white_space":
        return None
    return AdjustedWords(counting) if counting.word_count == "adjusted" else JiebaWords()


def load_jieba() -> "jieba.Tokenizer":
    """Return a segmenter with jieba's own dictionary.

    Raises ConfigError if jieba is missing or has another version, which may segment text differently.
    """
    import logging
    import warnings

    try:
        with warnings.catch_warnings():
            # Suppresses Python's warnings about escapes in jieba's regular expressions, and about its search for its
            # dictionary.
            warnings.simplefilter("ignore")
            import jieba
    except ImportError as error:
        raise ConfigError(
            f"word_count: jieba needs the package jieba {JIEBA_VERSION}; pip install jieba=={JIEBA_VERSION}"
        ) from error
    if jieba.__version__ != JIEBA_VERSION:
        raise ConfigError(f"word_count: jieba counts words of jieba {JIEBA_VERSION}, found version {jieba.__version__}")
    jieba.setLogLevel(logging.WARNING)
    segmenter = jieba.Tokenizer()
    # A private folder, because jieba's cache would otherwise be in the folder for temporary files, which all users
    # share.
    with tempfile.TemporaryDirectory(prefix="jieba.") as folder:
        segmenter.tmp_dir = folder
        segmenter.initialize()
    return segmenter


def counting_measures(counting: WordCounting) -> dict[str, object]:
    """Return the manifest's measures of the rule that counts words; empty for words between white space."""
    if counting.word_count == "white_space":
        return {}
    premiums = {"byte_premium": counting.byte_premium, "byte_premiums": dict(sorted(counting.byte_premiums.items()))}
    return {"word_count": counting.word_count, **{name: value for name, value in premiums.items() if value}}


def sentence_token_ends(
    text: str, sentences: Sequence[str], spans: Sequence[Sequence[tuple[int, int]]], sizes: Sequence[int]
) -> np.ndarray:
    """Return the `ends` of a document (`WordCounter`) that was encoded sentence by sentence.

    `spans` are the character spans of the tokens in their sentence; `sizes` are the numbers of tokens of each sentence,
    including a [PAR] after the sentence.
    """
    parts = [np.zeros(0, dtype=np.int64)]
    for begin, sentence, own, size in zip(sentence_places(text), sentences, spans, sizes, strict=True):
        inside = [end for _, end in own] + [len(sentence)] * (size - len(own))
        parts.append(begin + np.array(inside, dtype=np.int64))
    return _up_to_the_end(np.concatenate(parts), text)


def whole_token_ends(text: str, begins: np.ndarray, ends: Sequence[int]) -> np.ndarray:
    """Return the `ends` of a document (`WordCounter`) that was encoded as one text (`whole_text`).

    In the result of `whole_text`, the sentences begin at the characters `begins`, and the tokens end at `ends`.
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
    """Return the number of words that begin in each token of a document, uint16 [number of tokens].

    Raises TokenizationError for a token with too many words.
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
    """Return the number of bytes (UTF-8) before each character of a text, followed by the total: int64 [characters +
    1].
    """
    codes = np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)
    sizes = 1 + (codes >= 0x80).astype(np.int64) + (codes >= 0x800) + (codes >= 0x10000)
    return np.concatenate([[0], np.cumsum(sizes)])
