"""The number of bytes of text that tokens represent, which is the denominator of bits per byte.

A token represents the text from the end of the previous token to its own end, so a word includes the space before it.
If sentences are encoded one by one, the line end between two sentences belongs to no token. [PAR] represents the blank
line between two paragraphs; at the end of a document, [PAR] represents no text. The bytes of each special token are
counted separately, because some objectives do not predict these tokens.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from hatchery.tokenization.documents import PARAGRAPH_BREAK
from hatchery.tokenization.token_shards import ORDINARY
from hatchery.tokenization.tokenizer_file import Tokenizer
from hatchery.tokenization.word_starts import SENTENCES_PER_CALL


def represented_bytes(tokenizer: Tokenizer, texts: Sequence[str], bounds: np.ndarray, ids: np.ndarray) -> Counter[str]:
    """Return the number of bytes (UTF-8) that the tokens of `texts` represent: one sum for ordinary tokens, and one for
    each special token.

    `ids` are the concatenated tokens of all texts. `bounds`, int64 [texts + 1], contains the index of each text's first
    token, followed by the number of tokens. The bytes of [PAR] are not counted here, but by `paragraph_bytes`.
    """
    structure = np.zeros(len(ids), dtype=bool) if tokenizer.par_id is None else ids == tokenizer.par_id
    tokens_before = np.concatenate([[0], np.cumsum(~structure)])
    filled = np.diff(tokens_before[bounds]) > 0
    sizes = (len(text.encode()) for text, has_tokens in zip(texts, filled.tolist(), strict=True) if has_tokens)
    byte_counts = Counter({ORDINARY: sum(sizes)})
    special = np.flatnonzero((ids < tokenizer.n_special) & ~structure)
    affected = np.unique(np.searchsorted(bounds, special, side="right") - 1).tolist()
    for first in range(0, len(affected), SENTENCES_PER_CALL):
        part = affected[first : first + SENTENCES_PER_CALL]
        for number, spans in zip(part, tokenizer.token_spans([texts[each] for each in part]), strict=True):
            own = ids[bounds[number] : bounds[number] + len(spans)]
            for index in np.flatnonzero(own < tokenizer.n_special).tolist():
                before = spans[index - 1][1] if index else 0
                size = len(texts[number][before : spans[index][1]].encode())
                byte_counts[tokenizer.special.order[own[index]]] += size
                byte_counts[ORDINARY] -= size
    return byte_counts


def paragraph_bytes(tokenizer: Tokenizer, ends_paragraph: Sequence[bool]) -> Counter[str]:
    """Return the number of bytes that [PAR] represents in a document; `ends_paragraph` is True for each sentence that
    ends a paragraph."""
    name = tokenizer.special.paragraph
    return Counter() if name is None else Counter({name: sum(ends_paragraph[:-1]) * len(PARAGRAPH_BREAK.encode())})
