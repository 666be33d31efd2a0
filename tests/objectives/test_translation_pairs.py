"""Translation pairs as examples: inputs and targets of the model, rejected pairs, and batches by tokens."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hatchery.errors import TrainingError
from hatchery.objectives.special_ids import SpecialIds
from hatchery.objectives.translation_pairs import TranslationPairs
from hatchery.tokenization.special_tokens import SPECIAL_SETS
from hatchery.training.objectives.translation import TranslationSettings

Made = Callable[..., Any]
ROBERTA = SpecialIds.of(SPECIAL_SETS["roberta"])
LENGTHS = [[3, 4], [5, 2], [1, 1], [8, 8], [2, 3], [6, 9], [4, 4], [7, 5]]


def pairs_of(collection: Any, longest: int = 250, filtered: bool = True, **changes: Any) -> TranslationPairs:
    rules = TranslationSettings(**{"longest_ratio": None, **changes})
    return TranslationPairs(collection, ROBERTA, longest, rules, filtered)


def test_the_decoder_reads_the_start_and_the_target_and_predicts_the_target_and_its_end(make_traceable: Made) -> None:
    collection = make_traceable([[3, 4], [1, 2]], "roberta")
    first, second = (collection.document(index).ids.tolist() for index in range(2))
    batch = {name: tensor.tolist() for name, tensor in pairs_of(collection).batch(0, 0, [0, 1]).items()}
    start, pad, end = 0, 1, 2
    assert batch["input_ids"] == [[*first[:3], end], [*second[:1], end, pad, pad]]
    assert batch["attention_mask"] == [[True] * 4, [True, True, False, False]]
    assert batch["target_ids"] == [[start, *first[3:]], [start, *second[1:], pad, pad]]
    assert batch["labels"] == [[*first[3:], end], [*second[1:], end, -100, -100]]


def test_backward_translates_the_second_line_into_the_first(make_traceable: Made) -> None:
    collection = make_traceable(LENGTHS, "roberta")
    there, back = pairs_of(collection), pairs_of(collection, direction="backward")
    for index in range(len(LENGTHS)):
        source, target = there.sides(index)
        assert [side.tolist() for side in back.sides(index)] == [target.tolist(), source.tolist()]
    # An end token is added to each side.
    assert back.lengths.tolist() == [[second + 1, first + 1] for first, second in LENGTHS]


def test_long_and_unequal_pairs_are_left_out_of_training_and_cut_elsewhere(make_traceable: Made) -> None:
    collection = make_traceable([[249, 200], [250, 200], [4, 6], [4, 7], [10, 300]], "roberta")
    training = pairs_of(collection, longest_ratio=1.5)
    assert training.lengths.tolist() == [[250, 201], [5, 7]]
    assert training.left_out == 3
    held_out = pairs_of(collection, longest_ratio=1.5, filtered=False)
    assert held_out.lengths.tolist() == [[250, 201], [250, 201], [5, 7], [5, 8], [11, 250]]
    assert held_out.batch(0, 0, [4])["labels"].shape == (1, 250)


@pytest.mark.parametrize("filtered", [True, False])
def test_pairs_with_an_empty_side_are_left_out(make_traceable: Made, filtered: bool) -> None:
    pairs = pairs_of(make_traceable([[3, 0], [4, 4], [0, 2], [0, 0]], "roberta"), filtered=filtered)
    assert pairs.places().tolist() == [1] and pairs.left_out == 3


def test_counts_are_labels_and_the_tokens_of_both_sides(make_collection: Made) -> None:
    pairs = pairs_of(make_collection(LENGTHS))
    batch = pairs.batch(0, 0, [0, 2])
    assert pairs.counted(batch) == (4 + 1 + 1 + 1,)
    assert pairs.n_tokens(batch) == (4 + 2) + (5 + 2)


def test_a_document_that_is_no_pair_is_named(make_collection: Made) -> None:
    with pytest.raises(TrainingError, match="document 2 of the split has 3 sentences, expected two"):
        pairs_of(make_collection([[2, 2], [1, 2, 3]]))


def test_no_pair_within_the_limits_is_an_error(make_collection: Made) -> None:
    with pytest.raises(TrainingError, match="no sentence pair within the limits"):
        pairs_of(make_collection([[2, 9]]), longest_ratio=1.5)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(1, 20), st.integers(1, 20)), min_size=1, max_size=60), st.integers(1, 90))
def test_every_epoch_has_each_pair_once_in_batches_within_the_budget(
    make_traceable: Made, lengths: list[tuple[int, int]], budget: int
) -> None:
    pairs = pairs_of(make_traceable(lengths, "roberta"))
    per_epoch = pairs.batches_per_epoch(budget)
    for epoch in range(2):
        drawn = [pairs.batch_at(7, epoch * per_epoch + number, budget) for number in range(per_epoch)]
        assert {found for found, _ in drawn} == {epoch}
        assert Counter(np.concatenate([chosen for _, chosen in drawn]).tolist()) == Counter(range(len(lengths)))
        for _, chosen in drawn:
            assert len(chosen) == 1 or pairs.lengths[chosen, 1].sum() <= budget


@pytest.mark.parametrize("count", [101, 103, 110])
def test_batches_are_about_equally_large_so_none_is_left_with_a_pair_alone(make_traceable: Made, count: int) -> None:
    # A target has ten tokens with its end, so a batch of 100 tokens has ten pairs.
    pairs = pairs_of(make_traceable([[9, 9]] * count, "roberta"))
    sizes = [len(pairs.batch_at(0, step, 100)[1]) for step in range(pairs.batches_per_epoch(100))]
    assert len(sizes) == 11
    assert min(sizes) == pairs.smallest_batch(100) >= 9
    assert max(sizes) <= 10


def test_batches_are_a_function_of_seed_and_step_alone(make_collection: Made) -> None:
    collection = make_collection(LENGTHS * 20)
    forwards = [pairs_of(collection).batch_at(3, step, 40)[1].tolist() for step in range(40)]
    fresh = pairs_of(collection)
    assert [fresh.batch_at(3, step, 40)[1].tolist() for step in reversed(range(40))] == forwards[::-1]
    per_epoch = fresh.batches_per_epoch(40)
    assert forwards[:5] != [fresh.batch_at(3, per_epoch + step, 40)[1].tolist() for step in range(5)]
    assert forwards[:5] != [fresh.batch_at(4, step, 40)[1].tolist() for step in range(5)]


def test_a_batch_has_sources_of_similar_length_and_pairs_and_batches_are_shuffled(make_traceable: Made) -> None:
    # A target has ten tokens with its end, so ten pairs fill a batch of 100 tokens. Four pairs have the same lengths.
    pairs = pairs_of(make_traceable([(1 + number % 10, 9) for number in range(40)], "roberta"))
    ascending = [length for length in range(2, 12) for _ in range(4)]
    orders, shortest = set(), set()
    for epoch in range(3):
        batches = [pairs.batch_at(5, 4 * epoch + number, 100)[1] for number in range(4)]
        sources = [sorted(pairs.lengths[chosen, 0].tolist()) for chosen in batches]
        assert sorted(sources) == [ascending[first : first + 10] for first in range(0, 40, 10)]
        orders.add(tuple(lengths[0] for lengths in sources))
        shortest.add(frozenset(batches[sources.index(min(sources))].tolist()))
    assert len(orders) > 1 and len(shortest) > 1


def test_limits_of_length_ratio_and_budget_are_met_by_what_equals_them(make_traceable: Made) -> None:
    # The limit is six tokens with the end, and a length ratio of 3 : 2.
    documents = [(5, 5), (6, 5), (5, 6), (3, 2), (2, 3), (4, 2), (2, 4)]
    kept = pairs_of(make_traceable(documents, "roberta"), longest=6, longest_ratio=1.5)
    assert kept.places().tolist() == [0, 3, 4] and kept.left_out == 4
    # Targets have 2, 3, 4 and 5 tokens with their ends; the first three fill the budget of 9; sources do not count.
    pairs = pairs_of(make_traceable([(9, 1), (1, 2), (5, 3), (2, 4)], "roberta"), longest_ratio=None)
    for epoch in range(3):
        batches = [pairs.batch_at(1, 2 * epoch + number, 9) for number in range(2)]
        assert [found for found, _ in batches] == [epoch, epoch]
        assert sorted(sorted(chosen.tolist()) for _, chosen in batches) == [[0, 1, 2], [3]]
    assert (pairs.batches_per_epoch(9), pairs.batches_per_epoch(8)) == (2, 3)


def test_words_are_those_of_the_sides_as_they_are_cut(make_traceable: Made) -> None:
    # A word starts at each id that is not a multiple of three; sides are truncated to three tokens.
    for direction in ("forward", "backward"):
        pairs = pairs_of(make_traceable([(6, 2), (2, 7), (3, 5)], "roberta"), 4, False, direction=direction)
        batch, words = pairs.counted_batch(0, 0, np.arange(3))
        cut = [[*range(first, first + shown)] for first, shown in ((5, 3), (11, 2), (13, 2), (15, 3), (22, 3), (25, 3))]
        by_hand = [sum(id_ % 3 > 0 for id_ in side) for side in cut]
        assert pairs.words(0, 0, [0, 1, 2]).tolist() == [sum(by_hand[first : first + 2]) for first in (0, 2, 4)]
        assert words == sum(by_hand)
        sources, targets = (cut[::2], cut[1::2])[:: 1 if direction == "forward" else -1]
        shown = [ids[mask].tolist() for ids, mask in zip(batch["input_ids"], batch["attention_mask"], strict=True)]
        assert [ids[:-1] for ids in shown] == sources
        assert [[label for label in row if label >= 5] for row in batch["labels"].tolist()] == targets
        # All tokens of both sides, with an end token each.
        assert pairs.n_tokens(batch) == sum(map(len, cut)) + 6
