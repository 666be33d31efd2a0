"""The bytes of text that the tokens of a split represent: the denominator of bits per byte.

A token represents the text from the end of the token before it to its own end, so the blank before a word belongs to
that word. A line end between two sentences that are encoded one by one is in no token. [PAR] represents the blank line
between two paragraphs, and no text after the last one. Bytes of special tokens are counted by name, because not every
objective predicts these tokens.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from hatchery.tokenization.documents import PARAGRAPH_BREAK
from hatchery.tokenization.token_shards import ORDINARY
from hatchery.tokenization.tokenizer_file import Tokenizer

_TEXTS_PER_CALL = 8192


def represented_bytes(tokenizer: Tokenizer, texts: Sequence[str], bounds: np.ndarray, ids: np.ndarray) -> Counter[str]:
    """Bytes (UTF-8) that the tokens of `texts` represent: those of ordinary tokens, and of special tokens by name.

    `ids` are the concatenated tokens of all texts, `bounds` int64 [number of texts + 1] the offsets of the texts in
    `ids`. [PAR] is skipped: `paragraph_bytes` counts it.
    """
    structure = np.zeros(len(ids), dtype=bool) if tokenizer.par_id is None else ids == tokenizer.par_id
    tokens_before = np.concatenate([[0], np.cumsum(~structure)])
    filled = np.diff(tokens_before[bounds]) > 0
    sizes = (len(text.encode()) for text, has_tokens in zip(texts, filled.tolist(), strict=True) if has_tokens)
    found = Counter({ORDINARY: sum(sizes)})
    special = np.flatnonzero((ids < tokenizer.n_special) & ~structure)
    affected = np.unique(np.searchsorted(bounds, special, side="right") - 1).tolist()
    for first in range(0, len(affected), _TEXTS_PER_CALL):
        part = [texts[index] for index in affected[first : first + _TEXTS_PER_CALL]]
        for text, encoding in zip(part, tokenizer.backend.encode_batch(part, add_special_tokens=False), strict=True):
            before = 0
            for index, (_, end) in zip(encoding.ids, encoding.offsets, strict=True):
                if index < tokenizer.n_special:
                    size = len(text[before:end].encode())
                    found[tokenizer.special.order[index]] += size
                    found[ORDINARY] -= size
                before = end
    return found


def paragraph_bytes(tokenizer: Tokenizer, ends_paragraph: Sequence[bool]) -> Counter[str]:
    """Bytes that [PAR] represents in a document; `ends_paragraph` says of each sentence whether it ends a paragraph."""
    name = tokenizer.special.paragraph
    return Counter() if name is None else Counter({name: sum(ends_paragraph[:-1]) * len(PARAGRAPH_BREAK.encode())})
