"""Vocabulary growth against counting in the plainest way."""

import math
from collections import Counter
from itertools import pairwise, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hatchery.views.cards.content import common_point
from hatchery.views.cards.vocabulary import (
    Vocabulary,
    expected_growth,
    facts_of,
    facts_of_all,
    growth_point,
)

WORDS = st.lists(st.sampled_from("abcdefghij"), max_size=200)


def test_the_measuring_points_are_ten_per_factor_of_ten_and_hit_its_powers() -> None:
    points = [growth_point(index) for index in range(67)]
    assert points[:12] == [1, 2, 3, 4, 5, 6, 8, 10, 13, 16, 20, 25]
    assert all(later > earlier for earlier, later in pairwise(points))
    assert {100, 1_000, 1_000_000} <= set(points)


@given(WORDS, st.integers(min_value=1, max_value=30))
def test_types_are_exact_at_every_point_however_the_text_is_cut(words: list[str], size: int) -> None:
    vocabulary = Vocabulary(max_types=1000)
    for start in range(0, len(words), size):
        vocabulary.add(words[start : start + size])
    facts = facts_of(vocabulary, top=3)
    assert facts.points == [(n, len(set(words[:n]))) for n, _ in facts.points]
    assert [n for n, _ in facts.points] == sorted(
        {growth_point(i) for i in range(30)} & set(range(len(words))) | ({len(words)} if words else set())
    )
    assert all(y2 >= y1 for (_, y1), (_, y2) in zip(facts.points, facts.points[1:], strict=False))
    counted = Counter(words)
    assert (facts.running_words, facts.types) == (len(words), len(counted))
    assert facts.hapaxes == sum(1 for count in counted.values() if count == 1)
    assert facts.top == sorted(counted.items(), key=lambda item: (-item[1], item[0]))[:3]
    assert facts.complete


def test_measuring_stops_at_the_limit_of_types_and_says_on_how_many_words() -> None:
    vocabulary = Vocabulary(max_types=3)
    vocabulary.add(["a", "b", "a"])
    vocabulary.add(["c", "d"])
    vocabulary.add(["e"] * 100)
    facts = facts_of(vocabulary, top=1)
    assert (facts.complete, facts.running_words, facts.types) == (False, 5, 4)
    assert facts.points[-1] == (5, 4)
    assert len(vocabulary.frequencies) == 4


def test_the_expected_curve_is_the_mean_over_all_orders_of_the_words() -> None:
    words = ["a", "a", "a", "b", "b", "c"]
    orders = list(permutations(words))
    mean = {n: sum(len(set(order[:n])) for order in orders) / len(orders) for n in range(1, 7)}
    assert expected_growth(Counter(words)) == [(n, pytest.approx(mean[n], abs=0.051)) for n in range(1, 7)]


def test_the_expected_curve_of_a_large_corpus_agrees_with_exact_binomials() -> None:
    frequencies = Counter({"the": 900, "cat": 90, "sat": 9, "on": 2, **{f"hapax {i}": 1 for i in range(200)}})
    total = sum(frequencies.values())
    for n, types in expected_growth(frequencies):
        exact = sum(1 - math.comb(total - f, n) / math.comb(total, n) for f in frequencies.values())
        assert types == pytest.approx(exact, abs=0.06)


def test_all_sources_together_share_their_words() -> None:
    first, second = Vocabulary(100), Vocabulary(100)
    first.add(["a", "b", "b"])
    second.add(["b", "c"])
    facts = facts_of_all([first, second], top=2)
    assert (facts.running_words, facts.types, facts.hapaxes) == (5, 3, 2)
    assert facts.top == [("b", 3), ("a", 1)]
    assert facts.points[-1] == (5, 3.0)


def test_the_growth_exponent_is_the_slope_of_the_curve() -> None:
    all_new, repeated = Vocabulary(10**6), Vocabulary(10**6)
    all_new.add([str(i) for i in range(2000)])
    repeated.add(["a", "b"] * 1000)
    assert facts_of(all_new, 0).growth_exponent() == pytest.approx(1.0)
    assert facts_of(repeated, 0).growth_exponent() == pytest.approx(0.0)
    short = Vocabulary(10)
    short.add(["a"] * 99)
    assert facts_of(short, 0).growth_exponent() is None


def test_a_source_without_words_has_no_curve() -> None:
    assert facts_of(Vocabulary(10), 5).points == []
    assert facts_of_all([Vocabulary(10), Vocabulary(10)], 5).points == []


def test_sources_are_compared_where_most_of_them_have_so_many_words() -> None:
    facts = []
    for words in (5, 1200, 1300, 9000, 20_000):
        vocabulary = Vocabulary(100)
        vocabulary.add(["a"] * words)
        facts.append(facts_of(vocabulary, 1))
    assert common_point(facts) == 1000
    assert [found.types_at(1000) for found in facts] == [None, 1, 1, 1, 1]
    assert common_point(facts[:1]) == common_point([]) == 10
