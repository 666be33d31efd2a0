"""Counting what was encoded: documents, sentences, words, tokens and fertility by source, and how often types occur.

The tables of corpus sizes in the papers are drawn from these numbers (LTG-BERT, Table 1). All of them are exact.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from hatchery.sanitize import csv_text
from hatchery.tokenization.special_tokens import SpecialTokens
from hatchery.tokenization.token_shards import TokenTable


@dataclass
class Counts:
    """Counts of some documents: `subwords` are the tokens that stand for text, that is all but [PAR] and its kin.

    `words` are those of `word_starts`: between white space, or pre-tokens where the tokenizer marks continuations.
    `unknown` are unknown tokens, spelled out in the text or made by the tokenizer.
    """

    documents: int = 0
    sentences: int = 0
    words: int = 0
    tokens: int = 0
    subwords: int = 0
    unknown: int = 0

    def add(self, other: "Counts") -> None:
        """Add the counts of other documents."""
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))

    def as_measures(self) -> dict[str, int | float]:
        """The counts, the fertility (subwords per word) and the unknown rate (unknown tokens per subword).

        Both are rounded so that they are the same on every machine.
        """
        return {field.name: getattr(self, field.name) for field in fields(self)} | {
            "fertility": round(self.subwords / self.words, 6) if self.words else 0.0,
            "unknown_rate": round(self.unknown / self.subwords, 6) if self.subwords else 0.0,
        }


def count_by_source(table: TokenTable, sources: Sequence[str], special: SpecialTokens) -> dict[str, Counts]:
    """Counts of the rows of a table by the source of each row; `special` is the set that the ids belong to."""
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


def _sums(flags: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    """Number of set flags between neighbouring bounds."""
    total = np.concatenate([[0], np.cumsum(flags, dtype=np.int64)])
    return np.diff(total[bounds])


def frequency_at_95_percent(unigrams: np.ndarray) -> int:
    """How often the type at rank floor(0.95 x types) occurs, types sorted by falling frequency (LTG-BERT, Appendix G).

    The rule of Gowda and May (2020) for the size of a vocabulary: it should be 100 or more. Zero without types.
    """
    occurring = np.sort(unigrams[unigrams > 0])[::-1]
    return int(occurring[95 * len(occurring) // 100]) if len(occurring) else 0


def statistics_table(counts: dict[tuple[str, str], Counts]) -> str:
    """The text of `statistics.csv`: one row of counts and rates per split and source, sorted."""
    header = ("split", "source", *Counts().as_measures())
    return csv_text(header, ((*key, *counted.as_measures().values()) for key, counted in sorted(counts.items())))
