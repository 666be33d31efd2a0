"""The rule of Gowda and May: counting by pre-tokens is counting by lines, and what the search finds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hatchery.tokenization.counts import frequency_at_95_percent
from hatchery.tokenization.documents import training_lines
from hatchery.tokenization.selection.backends import read_definition
from hatchery.tokenization.selection.frequency_rule import (
    count_pre_tokens,
    frequency_of_rule,
    largest_size,
    sizes_between,
    unigram_counts,
)
from hatchery.tokenization.tokenizer_file import open_backend
from hatchery.tokenization.trainer import train
from hatchery.tokenization.trainer_settings import TokenizerSettings


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
