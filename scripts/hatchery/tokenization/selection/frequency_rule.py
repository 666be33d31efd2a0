"""The rule of Gowda and May (2020): 95 % of the entries of a vocabulary should occur at least 100 times in the training
text.

Source: LTG-BERT, Appendix G, and docs/papers/ltg-bert.md, "Tokenizer". Every non-empty training line is encoded, and
the entries that occur are sorted by descending frequency. The frequency in the rule is the frequency of the entry at
rank floor(0.95 x number of these entries), counted from 0. A token never extends over the end of a pre-token. Therefore
pre-tokens are counted once per corpus, and each distinct pre-token is encoded only once per vocabulary size; the
frequencies are the same as if the whole text were encoded. Special tokens that a text spells out do not count as
entries.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from hatchery.artifacts.parquet import read_table
from hatchery.tokenization.selection.measures import model_only
from hatchery.tokenization.token_counts import frequency_at_95_percent
from hatchery.tokenization.tokenizer_file import Definition, open_backend

PRE_TOKENS = pa.schema([("pre_token", pa.string()), ("occurrences", pa.int64())])
_BATCH = 8192


@dataclass(frozen=True)
class Probe:
    """A vocabulary size that the search for the largest suitable size has evaluated. The frequency is that of the
    vocabulary entry at rank floor(0.95 x number of entries), by descending frequency.
    """

    size: int
    frequency_at_95_percent: int


@dataclass(frozen=True)
class SearchResult:
    """Result of the search for the largest vocabulary size of which 95 % of the entries occur often enough: this size
    (None if there is no such size), and all evaluated vocabulary sizes in ascending order.
    """

    largest_size: int | None
    probes: list[Probe]


def count_pre_tokens(lines: Iterable[str], definition: Definition, where: str) -> Counter[str]:
    """Return the count of each normalised pre-token of the lines. Each is spelled as in the model's vocabulary."""
    backend = open_backend(definition, where)
    normalizer, pre_tokenizer = backend.normalizer, backend.pre_tokenizer
    counts: Counter[str] = Counter()
    for line in lines:
        text = line if normalizer is None else normalizer.normalize_str(line)
        if pre_tokenizer is None:
            counts[text] += 1
        else:
            counts.update(piece for piece, _ in pre_tokenizer.pre_tokenize_str(text))
    del counts[""]
    return counts


def pre_token_table(counts: Mapping[str, int]) -> pa.Table:
    """Return the counts of pre-tokens as a table, sorted by pre-token."""
    names = sorted(counts)
    return pa.table([pa.array(names, pa.string()), pa.array([counts[name] for name in names], pa.int64())], PRE_TOKENS)


def read_pre_tokens(paths: Sequence[Path]) -> Counter[str]:
    """Return the count of each pre-token, summed over several tables."""
    counts: Counter[str] = Counter()
    for path in paths:
        table = read_table(path)
        for name, occurrences in zip(*(column.to_pylist() for column in table.columns), strict=True):
            counts[name] += occurrences
    return counts


def unigram_counts(definition: Definition, pre_tokens: Mapping[str, int], where: str) -> np.ndarray:
    """Return the frequency of each token id in all counted pre-tokens: int64 [vocabulary size]."""
    backend = open_backend(model_only(definition), where)
    counts = np.zeros(backend.get_vocab_size(), dtype=np.int64)
    names = sorted(pre_tokens)
    for start in range(0, len(names), _BATCH):
        batch = names[start : start + _BATCH]
        encodings = [encoding.ids for encoding in backend.encode_batch_fast(batch, add_special_tokens=False)]
        ids = np.fromiter((index for found in encodings for index in found), dtype=np.int64)
        occurrences = np.array([pre_tokens[name] for name in batch], dtype=np.int64)
        np.add.at(counts, ids, np.repeat(occurrences, [len(found) for found in encodings]))
    return counts


def frequency_of_rule(definition: Definition, pre_tokens: Mapping[str, int], where: str) -> int:
    """Return the frequency of one vocabulary entry after a tokenizer has encoded the counted pre-tokens: the entry at
    rank floor(0.95 x number of entries), by descending frequency.
    """
    return frequency_at_95_percent(unigram_counts(definition, pre_tokens, where))


def sizes_between(lowest: int, highest: int, step: int) -> list[int]:
    """Return the vocabulary sizes `lowest`, `lowest` + `step`, ... that are below `highest`, followed by `highest`."""
    return sorted({*range(lowest, highest, step), highest})


def largest_size(frequency_of: Callable[[int], int], sizes: Sequence[int], least_frequency: int) -> SearchResult:
    """Return the largest of the ascending `sizes` for which `frequency_of` returns at least `least_frequency`; None if
    there is no such size.

    The search is a bisection, which assumes that the frequency never increases with the size. If this assumption fails,
    the returned size still satisfies the condition, and the next larger size in `sizes`, if there is one, does not. But
    a still larger size may also satisfy the condition.
    """
    seen: dict[int, int] = {}

    def satisfies(size: int) -> bool:
        seen[size] = frequency_of(size)
        return seen[size] >= least_frequency

    low, high = -1, len(sizes)
    while high - low > 1:
        # Evaluate the smallest and the largest size first, because their results may already end the search.
        middle = 0 if low < 0 else len(sizes) - 1 if high == len(sizes) else (low + high) // 2
        if satisfies(sizes[middle]):
            low = middle
        else:
            high = middle
    largest = None if low < 0 else sizes[low]
    return SearchResult(largest, [Probe(size, seen[size]) for size in sorted(seen)])
