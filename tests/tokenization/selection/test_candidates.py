"""Smaller tokenizers truncated from a larger one equal trained ones; the search by the rule of Gowda and May."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hatchery.errors import TokenizationError
from hatchery.tokenization.documents import training_lines
from hatchery.tokenization.selection.candidates import cut_down, is_nested, smallest_size, vocabulary_size
from hatchery.tokenization.selection.frequency_rule import (
    count_pre_tokens,
    frequency_of_rule,
    largest_size,
    pre_token_table,
    read_pre_tokens,
    sizes_between,
    unigram_counts,
)
from hatchery.tokenization.selection.measures import read_definition
from hatchery.tokenization.selection.table import search_csv
from hatchery.tokenization.token_counts import frequency_at_95_percent
from hatchery.tokenization.tokenizer_file import open_backend
from hatchery.tokenization.trainer import train
from hatchery.tokenization.trainer_settings import TokenizerSettings
from hatchery.typed import build

KINDS: dict[str, dict[str, Any]] = {
    "byte_bpe": {"kind": "byte_bpe", "individual_digits": False},
    "byte_bpe of the study": {"kind": "byte_bpe", "special_tokens": "roberta", "individual_digits": False},
    "byte-level WordPiece": {"kind": "wordpiece"},
    "observed bytes": {"kind": "wordpiece", "byte_alphabet": "observed"},
    "BNC WordPiece": {
        "kind": "wordpiece",
        "special_tokens": "bnc",
        "continuing_subword_prefix": "@@",
        "normalizer": "ltg_bnc",
        "pre_tokenizer": "ltg_bnc",
    },
}
SIZES = {"observed bytes": (120, 200), "BNC WordPiece": (150, 200)}


def settings_of(kind: str, size: int, min_frequency: int = 0) -> TokenizerSettings:
    return build(TokenizerSettings, {**KINDS[kind], "vocabulary_size": size, "min_frequency": min_frequency})


@pytest.fixture(scope="module")
def lines(small: SimpleNamespace) -> list[str]:
    return [line for text in small.documents(60, 5) for line in training_lines(text)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("min_frequency", [0, 3])
def test_a_cut_tokenizer_is_the_trained_one(kind: str, min_frequency: int, lines: list[str]) -> None:
    smaller, larger = SIZES.get(kind, (300, 400))
    definition = read_definition(train([lines], settings_of(kind, larger, min_frequency)).to_str(), "test")
    assert is_nested(settings_of(kind, larger))
    assert vocabulary_size(definition) == larger, "the text must support the larger size"
    for size in (smaller, smaller + 1, (smaller + larger) // 2, larger):
        trained = train([lines], settings_of(kind, size, min_frequency))
        cut = open_backend(cut_down(definition, size, "test"), "test")
        assert cut.to_str(pretty=True) == trained.to_str(pretty=True)


@pytest.mark.parametrize("kind", KINDS)
def test_the_smallest_size_has_no_merges_and_below_it_is_refused(kind: str, lines: list[str]) -> None:
    definition = read_definition(train([lines], settings_of(kind, SIZES.get(kind, (300, 400))[1])).to_str(), "test")
    smallest = smallest_size(definition)
    cut = cut_down(definition, smallest, "test")
    assert vocabulary_size(cut) == smallest
    assert not cut["model"].get("merges")
    with pytest.raises(TokenizationError, match=f"the vocabulary size {smallest - 1} is too small"):
        cut_down(definition, smallest - 1, "test")


def test_a_merge_into_an_entry_that_exists_already_makes_no_new_one() -> None:
    # ab+c and a+bc both make abc; truncation after abc keeps the merges before abc, and not the merge after it.
    vocabulary = {token: index for index, token in enumerate(["a", "b", "c", "ab", "bc", "abc", "abca"])}
    merges = [["a", "b"], ["b", "c"], ["ab", "c"], ["a", "bc"], ["abc", "a"]]
    definition = {"added_tokens": [], "model": {"type": "BPE", "vocab": vocabulary, "merges": merges}}
    assert cut_down(definition, 6, "test")["model"]["merges"] == merges[:3]
    assert cut_down(definition, 7, "test")["model"]["merges"] == merges
    assert cut_down(definition, 4, "test")["model"]["merges"] == merges[:1]


def test_unigram_is_not_nested() -> None:
    unigram = {"kind": "unigram", "special_tokens": "roberta", "pre_tokenizer": "metaspace", "min_frequency": 0}
    assert not is_nested(build(TokenizerSettings, {**unigram, "vocabulary_size": 400}))


@pytest.mark.parametrize("kind", ["wordpiece", "byte_bpe"])
def test_frequencies_by_pre_tokens_are_those_of_encoding_every_line(kind: str, small) -> None:  # type: ignore[no-untyped-def]
    lines = [line for text in small.documents(40, 3) for line in training_lines(text)]
    settings = TokenizerSettings(kind=kind, vocabulary_size=400, min_frequency=0)  # type: ignore[arg-type]
    definition = read_definition(train([lines], settings).to_str(), "test")
    backend = open_backend(definition, "test")
    expected = np.zeros(backend.get_vocab_size(), dtype=np.int64)
    for line in lines:
        np.add.at(expected, backend.encode(line, add_special_tokens=False).ids, 1)
    counts = count_pre_tokens(lines, definition, "test")
    assert np.array_equal(unigram_counts(definition, counts, "test"), expected)
    assert frequency_of_rule(definition, counts, "test") == frequency_at_95_percent(expected) > 0


def test_the_search_looks_at_few_sizes_and_finds_the_largest() -> None:
    sizes = sizes_between(1000, 33000, 64)
    result = largest_size(lambda size: 2_000_000 // size, sizes, 100)
    assert result.largest_size == max(size for size in sizes if 2_000_000 // size >= 100)
    assert len(result.probes) < 14
    assert [probe.size for probe in result.probes] == sorted({probe.size for probe in result.probes})


def test_the_search_says_when_no_size_or_every_size_satisfies() -> None:
    assert largest_size(lambda size: 99, [1, 2, 3], 100).largest_size is None
    assert largest_size(lambda size: 100, [1, 2, 3], 100).largest_size == 3


def test_the_end_of_the_range_is_considered() -> None:
    assert sizes_between(300, 310, 4) == [300, 304, 308, 310]
    assert sizes_between(300, 300, 64) == [300]


@given(st.lists(st.integers(0, 300), min_size=1, max_size=40), st.integers(1, 300))
def test_on_falling_frequencies_the_search_is_exact(frequencies: list[int], least: int) -> None:
    falling = sorted(frequencies, reverse=True)
    result = largest_size(lambda size: falling[size], range(len(falling)), least)
    satisfying = [size for size, frequency in enumerate(falling) if frequency >= least]
    assert result.largest_size == (satisfying[-1] if satisfying else None)


@given(st.lists(st.integers(0, 300), min_size=2, max_size=40), st.integers(1, 300))
def test_on_any_frequencies_the_found_size_satisfies_and_the_next_does_not(frequencies: list[int], least: int) -> None:
    found = largest_size(lambda size: frequencies[size], range(len(frequencies)), least).largest_size
    if found is None:
        assert frequencies[0] < least
    else:
        assert frequencies[found] >= least
        assert found == len(frequencies) - 1 or frequencies[found + 1] < least


def test_counts_of_shards_are_added_up(tmp_path) -> None:  # type: ignore[no-untyped-def]
    for name, counts in {"a": {"кот": 2, "猫": 3}, "b": {"猫": 4, "सात": 1}}.items():
        pq.write_table(pre_token_table(counts), tmp_path / name)
    assert read_pre_tokens([tmp_path / "a", tmp_path / "b"]) == {"кот": 2, "猫": 7, "सात": 1}


def test_the_table_of_the_search_marks_what_satisfies_the_rule_at_its_very_limit() -> None:
    result = largest_size({200: 101, 300: 100, 400: 99}.__getitem__, [200, 300, 400], 100)
    assert search_csv(result, 100).split() == [
        "size,frequency_at_95_percent,satisfies,largest",
        "200,101,1,0",
        "300,100,1,1",
        "400,99,0,0",
    ]
