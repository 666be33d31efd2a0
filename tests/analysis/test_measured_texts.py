"""What a card measures of texts: words, the vocabulary and its growth, lengths, and which texts are shown."""

import itertools
import math
from collections import Counter
from itertools import pairwise, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hatchery.views.cards.content import common_point
from hatchery.views.cards.measure_corpus import SampleChoice, bins_of, excerpt, facts_of_lengths, shortened
from hatchery.views.cards.vocabulary import (
    PieceTable,
    Vocabulary,
    count_pre_tokens,
    expected_growth,
    facts_of,
    facts_of_all,
    growth_point,
    running_word,
)


@pytest.mark.parametrize(
    ("piece", "word"),
    [
        ("Cat", "cat"),
        ("“Don’t!”", "don’t"),
        ("(well-known),", "well-known"),
        ("--", ""),
        ("#", ""),
        ("3.14", "3.14"),
        ("$5", "5"),
        ("[UNK]", ""),
        ("[UNK]'s", "s"),
        ("[TAB]Hello", "hello"),
        ("\u200bword\ufeff", "word"),
        ("ÉTÉ", "été"),
        # A vowel sign is part of its word, not punctuation.
        ("हिन्दी", "हिन्दी"),
    ],
)
def test_a_running_word_is_the_piece_without_what_surrounds_it(piece: str, word: str) -> None:
    assert running_word(piece) == word


@pytest.mark.parametrize(
    ("text", "pre_tokens"),
    [
        ("I don't know, they're 25", "I|do|n't|know|,|they|'re|2|5"),
        ("£1,000 (50%)", "£|1|,|0|0|0|(|5|0|%|)"),
        ("wait... ### x", "wait|...|###|x"),
        ("it's 'sad'", "it|'s|'|sad|'"),
        ("Shouldn't've", "Should|n't|'ve"),
        ("x_y", "x_y"),
        ("SHE'S", "SHE|'|S"),
        ("YOU'RE", "YOU|'RE"),
        ("[UNK] said", "[UNK]|said"),
    ],
)
def test_pre_tokens_are_those_of_the_published_tokenizer(text: str, pre_tokens: str) -> None:
    assert sum(map(count_pre_tokens, text.split())) == len(pre_tokens.split("|"))


@given(st.text(alphabet=st.characters(exclude_categories=("Cs",)), max_size=40))
def test_a_word_neither_begins_nor_ends_with_punctuation_and_stays_the_same(text: str) -> None:
    for piece in text.split():
        assert count_pre_tokens(piece) >= 1
        word = running_word(piece)
        if word and word.lower() == word:
            assert running_word(word) == word


@given(st.lists(st.text(min_size=1, max_size=4), max_size=60))
def test_a_small_table_of_pieces_changes_no_result(pieces: list[str]) -> None:
    table = PieceTable(limit=3)
    for start in range(0, len(pieces), 7):
        some = pieces[start : start + 7]
        assert table.words(some) == [word for word in map(running_word, some) if word]
        assert table.pre_tokens(some) == sum(map(count_pre_tokens, some))


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
    facts = facts_of_lengths(Counter(values))
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
