"""Counts of documents, sentences, words, tokens, subwords and unknown tokens in encoded text, and the frequency that 95
% of the vocabulary entries reach.

The counts are exact, as in the tables of corpus sizes in papers (LTG-BERT, Table 1).
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from hatchery.tokenization.special_tokens import SpecialTokens
from hatchery.tokenization.token_shards import TokenTable


@dataclass
class Counts:
    """Counts for a group of documents. Subwords are all tokens except special tokens; unknown tokens count as subwords.

    `words` is the number of subwords at which `word_starts` is True. These subwords begin words between white space, or
    pre-tokens if the tokenizer has a continuation prefix. `unknown` is the number of unknown tokens. It includes each
    "[UNK]" that the text itself contains.
    """

    documents: int = 0
    sentences: int = 0
    words: int = 0
    tokens: int = 0
    subwords: int = 0
    unknown: int = 0

    def add(self, other: "Counts") -> None:
        """Add the counts of `other`, which were counted on other documents, to these counts."""
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))

    def as_measures(self) -> dict[str, int | float]:
        """Return the counts, the fertility (subwords per word) and the unknown rate (unknown tokens per subword).

        Fertility and unknown rate are rounded, so that they are equal on every machine.
        """
        return {field.name: getattr(self, field.name) for field in fields(self)} | {
            "fertility": round(self.subwords / self.words, 6) if self.words else 0.0,
            "unknown_rate": round(self.unknown / self.subwords, 6) if self.subwords else 0.0,
        }


def count_by_source(table: TokenTable, sources: Sequence[str], special: SpecialTokens) -> dict[str, Counts]:
    """Return the counts of a table's documents by source; `sources` contains the source of the document in each row."""
    unknown = table.ids == special.ids[special.unknown]
    structure = (table.ids < len(special.order)) & ~unknown
    per_document = np.stack(
        [
            np.ones(len(sources), dtype=np.int64),
            np.diff(table.sentence_bounds),
            _sums(table.word_starts & ~structure, table.document_starts),
            np.diff(table.document_starts),
            _sums(~structure, table.document_starts),
            _sums(unknown, table.document_starts),
        ]
    )
    names, codes = np.unique(np.array(sources, dtype=object), return_inverse=True)
    return {
        str(name): Counts(*(int(value) for value in per_document[:, codes == code].sum(axis=1)))
        for code, name in enumerate(names)
    }


def n_text_words(table: TokenTable, special: SpecialTokens) -> int:
    """Return the number of words in a table of encoded documents, by the word-counting rule of the corpus.

    With the rule `white_space`, no word begins at a special token, except the unknown token.
    """
    if table.word_counts is not None:
        return int(table.word_counts.sum(dtype=np.int64))
    starts = table.word_starts if table.text_word_starts is None else table.text_word_starts
    is_text = (table.ids >= len(special.order)) | (table.ids == special.ids[special.unknown])
    return int(np.count_nonzero(starts & is_text))


def _sums(flags: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    """Return the number of True values in `flags` between each two adjacent `bounds`, which are indices of `flags`."""
    total = np.concatenate([[0], np.cumsum(flags, dtype=np.int64)])
    return np.diff(total[bounds])


def frequency_at_95_percent(unigrams: np.ndarray) -> int:
    """Return the frequency of the vocabulary entry at rank floor(0.95 x number of entries), counted from 0 in
    descending order (LTG-BERT, Appendix G).

    Entries that do not occur are left out. By the rule of Gowda and May (2020), the frequency should be at least 100.
    The result is 0 if no entry occurs.
    """
    occurring = np.sort(unigrams[unigrams > 0])[::-1]
    return int(occurring[95 * len(occurring) // 100]) if len(occurring) else 0
