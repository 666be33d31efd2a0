"""A limit on training text without spaces, because a tokenizer's trainer needs much memory for text without spaces.

A trainer stores every distinct word with its pairs of symbols. In Chinese, Japanese or Thai, the trainer treats the
text between two punctuation marks as one word. Nearly all of these words are distinct, so memory grows with the text:
about 110 bytes per byte of text. Text with spaces repeats its words, and needs no limit. To limit the text, complete
lines are left out. Splitting lines into short pieces would lose the pairs of symbols at the ends of the pieces, and
gave longer encodings of other text (docs/babylm.md, "The multilingual track").
"""

import math
import re
from collections.abc import Iterable

from tokenizers import Tokenizer as Backend

SAMPLED_BYTES = 4_000_000
"""Number of bytes of the sample from which the number of distinct words is extrapolated."""
# Letters of scripts without spaces between words: Thai, Lao, Tibetan, Myanmar, Khmer, Japanese, Chinese.
_SPACELESS = re.compile(
    "[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)


def share_to_train_on(backend: Backend, sample: Iterable[list[str]], total_bytes: int, most: float) -> float:
    """Return the share of a text, at most 1, to train on, so that the distinct words in scripts without spaces have at
    most `most` bytes in total.

    The text has `total_bytes` bytes; `sample` contains evenly spaced lines of the text, which `backend` splits into
    words. Heaps' law extrapolates the size of the distinct words from the sample to the text; its exponent follows from
    the distinct words in half of the sample and in the complete sample.
    """
    words: tuple[set[str], set[str]] = (set(), set())
    read = [0, 0]
    for index, line in enumerate(line for lines in sample for line in lines):
        normalised = line if backend.normalizer is None else backend.normalizer.normalize_str(line)
        # Only lines with these scripts are split into words, because splitting all lines would take a tenth of the
        # training time.
        parts = backend.pre_tokenizer.pre_tokenize_str(normalised) if _SPACELESS.search(normalised) else []
        spaceless_words = {word for _, (start, end) in parts if _SPACELESS.search(word := normalised[start:end])}
        # The Thue-Morse sequence selects half of the lines; it has no period that could match a period of the text,
        # such as alternating languages.
        for part in (0, 1) if index.bit_count() % 2 else (1,):
            words[part].update(spaceless_words)
            read[part] += len(line.encode())
    bytes_of_half, bytes_of_all = (sum(len(word.encode()) for word in known) for known in words)
    if not bytes_of_all:
        return 1.0
    exponent = math.log(bytes_of_all / bytes_of_half) / math.log(read[1] / read[0]) if bytes_of_half else 1.0
    exponent = min(1.0, max(0.1, exponent))
    foretold = bytes_of_all * (total_bytes / read[1]) ** exponent
    return min(1.0, (most / foretold) ** (1 / exponent))
