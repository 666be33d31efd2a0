"""A limit on the amount of text without spaces in the training of a tokenizer, set by memory.

A trainer stores every distinct word with its pairs of symbols. In Chinese, Japanese or Thai, the text between two
punctuation marks is one word to the trainer, and nearly every one of these words is new, so memory grows with the text:
some 110 bytes for each byte. Text of other scripts repeats its words, and needs no limit. Whole lines are left out
instead of dividing lines into pieces, because short pieces lose the pairs at their ends, and gave longer encodings of
other text (docs/babylm.md, "The multilingual track").
"""

import math
import re
from collections.abc import Iterable

from tokenizers import Tokenizer as Backend

SAMPLED_BYTES = 4_000_000
"""Number of bytes of sampled text from which the number of distinct words is extrapolated."""
# Letters of scripts without spaces between words: Thai and Lao, Tibetan, Myanmar, Khmer, Japanese, Chinese.
_SPACELESS = re.compile(
    "[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)


def share_to_train_on(backend: Backend, sample: Iterable[list[str]], total_bytes: int, most: float) -> float:
    """Return the share, at most 1, of a text of `total_bytes` in which the distinct words of scripts without spaces
    have `most` bytes.

    `sample` are lines spread over the text, split into words by `backend`. The distinct words in half of these lines
    and in all of them give the exponent of Heaps' law, by which the number of distinct words in the text is
    extrapolated.
    """
    words: tuple[set[str], set[str]] = (set(), set())
    read = [0, 0]
    for index, line in enumerate(line for lines in sample for line in lines):
        normalised = line if backend.normalizer is None else backend.normalizer.normalize_str(line)
        # Only lines with letters of these scripts are split, because splitting all text would take a tenth of the
        # training time.
        parts = backend.pre_tokenizer.pre_tokenize_str(normalised) if _SPACELESS.search(normalised) else []
        spaceless_words = {word for _, (start, end) in parts if _SPACELESS.search(word := normalised[start:end])}
        # Half of the lines are chosen by the Thue-Morse sequence, which matches no period of the text, such as
        # alternating lines of two languages.
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
