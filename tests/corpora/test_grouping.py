"""Greedy grouping: each published rule by hand, no text lost or repeated; orders and draws do not depend on memory."""

import tempfile
from array import array
from collections import Counter
from collections.abc import Sequence as Items
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hatchery.corpora import grouping
from hatchery.corpora.grouping import Item, Sequence, drawn, grouped, point_of_the_last, shuffled_units
from hatchery.corpora.settings import SequenceLength


def words(number: int, mark: str = "w") -> str:
    return " ".join([mark] * number)


def sequences_of(
    texts: Items[str], reading: Any, lost: list[Item] | None = None, selection: str = "s"
) -> list[Sequence]:
    losses: list[Item] = [] if lost is None else lost
    return list(grouped((Item(selection, text) for text in texts), SequenceLength(), reading, losses.append))


# Published reading


def test_published_sequences_hold_105_words_at_most_because_the_last_space_counts_as_a_piece() -> None:
    # 106 pieces * 1.2 = 127.2 < 128 <= 107 * 1.2; one of the 106 pieces is the empty piece after the last space.
    fitting = sequences_of([words(60, "a"), words(45, "b"), "c"], "as_published")
    assert [sequence.text for sequence in fitting] == [f"{words(60, 'a')} {words(45, 'b')} "]
    too_long = sequences_of([words(60, "a"), words(46, "b"), "c"], "as_published")
    assert [sequence.text for sequence in too_long] == [f"{words(60, 'a')} "]


def test_a_published_span_of_110_words_is_alone_and_the_first_one_gives_an_empty_sequence() -> None:
    spans = [words(110, "a"), words(110, "b"), words(30, "c"), words(75, "d"), words(110, "e"), "f"]
    lost: list[Item] = []
    found = [sequence.text for sequence in sequences_of(spans, "as_published", lost)]
    assert found == ["", f"{spans[0]} ", f"{spans[1]} ", f"{spans[2]} {spans[3]} ", f"{spans[4]} "]
    assert [item.text for item in lost] == ["f"]


def test_the_last_partial_published_sequence_is_lost() -> None:
    lost: list[Item] = []
    assert sequences_of(["one", "two"], "as_published", lost) == []
    assert [item.text for item in lost] == ["one", "two"]
    assert sequences_of([], "as_published", lost) == []


def test_published_sequences_run_across_selections_which_is_inferred_and_belong_to_their_first_item() -> None:
    items = [Item("a", "one"), Item("b", words(104)), Item("b", "two"), Item("b", words(110))]
    found = list(grouped(items, SequenceLength(), "as_published", lambda item: None))
    assert found == [Sequence("a", f"one {words(104)} ", 2), Sequence("b", "two ", 1)]


def test_several_spaces_count_as_published_pieces_which_is_inferred() -> None:
    assert sequences_of(["a" + " " * 104, "b"], "as_published")[0].text == "a" + " " * 105
    assert sequences_of(["a" + " " * 105, "b"], "as_published")[0].text == ""


# Corrected reading


def test_corrected_sequences_hold_106_words_one_sentence_per_line() -> None:
    found = sequences_of([words(60, "a"), words(46, "b"), words(3, "c")], "corrected")
    assert found == [
        Sequence("s", f"{words(60, 'a')}\n{words(46, 'b')}", 2),
        Sequence("s", words(3, "c"), 1),
    ]


def test_corrected_spans_of_110_words_are_alone_without_an_empty_sequence() -> None:
    spans = [words(110, "a"), words(110, "b"), words(50, "c")]
    assert [sequence.text for sequence in sequences_of(spans, "corrected")] == spans


def test_corrected_sequences_end_with_their_selection() -> None:
    items = [Item("a", "one"), Item("b", "two"), Item("b", "three")]
    found = list(grouped(items, SequenceLength(), "corrected", lambda item: None))
    assert found == [Sequence("a", "one", 1), Sequence("b", "two\nthree", 2)]


def test_line_ends_inside_an_item_are_kept_as_sentence_boundaries_and_white_space_is_collapsed() -> None:
    assert sequences_of(["the  title\n\n the text\tgoes on", "end"], "corrected") == [
        Sequence("s", "the title\nthe text goes on\nend", 2)
    ]


def test_an_item_without_a_word_is_told_not_kept() -> None:
    lost: list[Item] = []
    assert sequences_of([" \n", "a"], "corrected", lost) == [Sequence("s", "a", 1)]
    assert [item.text for item in lost] == [" \n"]


TEXTS = st.lists(st.integers(1, 130).map(lambda n: f"i{n} " + words(n - 1)).map(str.strip), max_size=40)


@given(TEXTS)
def test_corrected_grouping_loses_and_doubles_nothing_and_fills_greedily(texts: list[str]) -> None:
    found = sequences_of(texts, "corrected")
    assert [line for sequence in found for line in sequence.text.split("\n")] == texts
    assert sum(sequence.items for sequence in found) == len(texts)
    for sequence in found:
        assert sequence.items == 1 or len(sequence.text.split()) <= 106
    for before, after in pairwise(found):
        assert len(before.text.split()) + len(after.text.split("\n")[0].split()) > 106


@given(TEXTS)
def test_published_grouping_keeps_every_item_once_but_for_the_last_sequence(texts: list[str]) -> None:
    lost: list[Item] = []
    found = sequences_of(texts, "as_published", lost)
    assert "".join(sequence.text for sequence in found) + "".join(f"{item.text} " for item in lost) == "".join(
        f"{text} " for text in texts
    )
    for sequence in found:
        assert sequence.items <= 1 or len(sequence.text.split(" ")) <= 106
    assert all(sequence.text for sequence in found[1:])


# Orders and draws


@given(st.lists(st.tuples(st.integers(0, 2), st.text(max_size=5)), max_size=60), st.integers(1, 2000))
def test_the_order_within_units_is_a_permutation_that_does_not_depend_on_memory(
    texts: list[tuple[int, str]], run_characters: int
) -> None:
    texts.sort(key=lambda pair: pair[0])
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        in_memory = list(shuffled_units(texts, 0, "s", Path(folder)))
        patch.setattr(grouping, "RUN_CHARACTERS", run_characters)
        assert list(shuffled_units(texts, 0, "s", Path(folder))) == in_memory
    for unit in range(3):
        mine = [text for of, text in texts if of == unit]
        start = sum(1 for of, _ in texts if of < unit)
        assert Counter(in_memory[start : start + len(mine)]) == Counter(mine)


def test_seed_name_and_unit_each_give_another_order(tmp_path: Path) -> None:
    letters = [*"abcdefghijklmnop"]

    def order(seed: int = 0, name: str = "s", unit: int = 0) -> list[str]:
        return list(shuffled_units([(unit, letter) for letter in letters], seed, name, tmp_path))

    orders = [order(), order(seed=1), order(name="t"), order(unit=1)]
    assert order() == orders[0] and all(sorted(found) == letters for found in orders)
    assert len({tuple(found) for found in orders}) == 4


def test_units_larger_than_memory_are_merged_from_disk_in_the_same_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [(unit, f"{unit} text ü{index}") for unit in range(2) for index in range(3000)]
    expected = list(shuffled_units(texts, 5, "s", tmp_path))
    assert expected != [text for _, text in texts]
    monkeypatch.setattr(grouping, "RUN_CHARACTERS", 40_000)
    runs_seen = 0
    found = []
    for text in shuffled_units(texts, 5, "s", tmp_path):
        runs_seen = max(runs_seen, len(list(tmp_path.iterdir())))
        found.append(text)
    assert found == expected
    assert runs_seen > 10
    assert list(tmp_path.iterdir()) == []


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=50), st.data())
def test_draws_are_exact_even_when_points_are_equal(points: list[int], data: st.DataObject) -> None:
    first = data.draw(st.integers(0, len(points)))
    second = data.draw(st.integers(0, len(points) - first))
    codes = drawn(array("Q", points), first, second)
    assert Counter(codes.tolist()) == Counter({1: first, 2: second, 0: len(points) - first - second})
    if first:
        assert point_of_the_last(points, first) == sorted(points)[first - 1]
