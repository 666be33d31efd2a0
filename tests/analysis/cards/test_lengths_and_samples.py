"""Histograms of lengths, and the choice of texts that are shown."""

import itertools
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hatchery.views.cards.lengths import bins_of, facts_of
from hatchery.views.cards.measure_corpus import SampleChoice, excerpt, shortened


def test_bins_widen_threefold_per_doubling() -> None:
    assert [(b.low, b.high, b.count) for b in bins_of(Counter({1: 4, 6: 1, 7: 2, 11: 5, 0: 9}))] == [
        *[(1, 1, 4), (2, 2, 0), (3, 3, 0), (4, 4, 0), (5, 5, 0)],
        *[(6, 7, 3), (8, 9, 0), (10, 12, 5)],
    ]
    assert bins_of(Counter()) == bins_of(Counter({0: 3})) == []


@given(st.lists(st.integers(min_value=0, max_value=5000)))
def test_every_length_lies_in_one_bin_and_quantiles_are_those_of_the_sorted_list(values: list[int]) -> None:
    bins = bins_of(Counter(values))
    known = sorted(value for value in values if value)
    assert all(b.count == sum(b.low <= value <= b.high for value in known) for b in bins)
    assert all(later.low == earlier.high + 1 for earlier, later in itertools.pairwise(bins))
    facts = facts_of(Counter(values))
    if not known:
        assert facts is None
        return
    assert facts is not None
    assert sum(b.count for b in bins) == facts.number == len(known)
    assert facts.median == known[(len(known) + 1) // 2 - 1]
    assert facts.percentile_95 == known[-(-95 * len(known) // 100) - 1]
    assert (facts.longest, facts.mean) == (known[-1], pytest.approx(sum(known) / len(known)))


def test_bars_on_a_logarithmic_axis_have_the_widths_of_their_bins() -> None:
    bins = bins_of(Counter({12: 1}))
    assert sum(b.doublings for b in bins) == pytest.approx(4.6438, abs=1e-4)  # from 0.5 to 12.5: log2(25)


@given(st.permutations([f"d{i}" for i in range(12)]))
def test_the_choice_depends_on_names_only(order: list[str]) -> None:
    choice, whole = SampleChoice(3, 50), SampleChoice(100, 50)
    for doc_id in order:
        choice.offer(doc_id, "train", f"Text of {doc_id}.")
        whole.offer(doc_id, "train", f"Text of {doc_id}.")
    assert choice.chosen() == whole.chosen()[:3]
    assert len({sample.doc_id for sample in whole.chosen()}) == 12


def test_blank_documents_and_more_samples_than_documents_do_no_harm() -> None:
    choice = SampleChoice(5, 50)
    choice.offer("a", "train", " \n")
    choice.offer("b", "dev", "Yes.")
    assert [(s.doc_id, s.split, s.text) for s in choice.chosen()] == [("b", "dev", "Yes.")]
    none = SampleChoice(0, 50)
    none.offer("b", "dev", "Yes.")
    assert none.chosen() == []


def test_an_excerpt_begins_with_a_paragraph_and_ends_between_words() -> None:
    text = "First one.\nMore of it.\n\nSecond paragraph here.\n\nThird and last paragraph of this text."
    assert excerpt(text, 1, 30) == "Second paragraph here.\n\nThird …"
    assert excerpt(text, 3, 200) == text
    # From the last paragraph there would be too little to read.
    assert excerpt(text, 2, 50).startswith("Second")


@given(st.text(max_size=80), st.integers(min_value=20, max_value=60), st.integers(min_value=0))
def test_an_excerpt_is_never_longer_than_asked_for(text: str, characters: int, number: int) -> None:
    assert len(excerpt(text, number, characters)) <= characters + 2
    assert len(shortened(text, characters)) <= characters + 2
