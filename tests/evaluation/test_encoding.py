"""Rows as inputs: special tokens, truncation and marked words. Also held-out rows and batches."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hatchery.errors import ConfigError, EvaluationError
from hatchery.evaluation.draws import derived_seed, generator, hold_out
from hatchery.evaluation.finetuning.batches import batches_per_epoch, prediction_batches, training_batches
from hatchery.evaluation.finetuning.encoding import encode_texts
from hatchery.evaluation.finetuning.framing import Framing, _tokens_of, kept_tokens, truncate_longest
from hatchery.evaluation.tasks.example import Example, MarkedSpan

WORDS = ["old", "dogs", "near", "house", "sleep", "cat", "chases", "likes"]


def texts(*segments, label=0, **more):
    return Example((segments,), label, **more)


def one_by_one(lengths, room):
    """Shorten by definition: remove one token of the longest segment (the last one if tied) until all segments fit."""
    lengths = list(lengths)
    while sum(lengths) > room:
        longest = max(range(len(lengths)), key=lambda index: (lengths[index], index))
        lengths[longest] -= 1
    return lengths


def rows(data):
    batch = data.batch(np.arange(data.n_units))
    ids, mask = batch.inputs["input_ids"], batch.inputs["attention_mask"]
    return [row[keep].tolist() for row, keep in zip(ids, mask, strict=True)]


@given(st.lists(st.lists(st.integers(0, 40), min_size=3, max_size=3), min_size=1, max_size=20), st.integers(0, 60))
def test_truncation_of_many_rows_equals_cutting_token_by_token_from_the_longest_segment(lengths, room):
    kept = truncate_longest(np.array(lengths), np.full(len(lengths), room))
    assert kept.tolist() == [one_by_one(row, room) for row in lengths]


@given(st.integers(0, 30), st.integers(0, 30), st.integers(6, 40))
def test_a_pair_never_exceeds_the_limit_and_loses_tokens_of_the_longer_segment_alone(first, second, limit):
    framing = Framing(1, 2, 3, 1, n_behind=1)
    before = np.array([[first, second]])
    ((a, b),) = kept_tokens(before, np.array([2]), framing, limit).tolist()
    assert a + b == min(first + second, limit - 3)
    if a + b < first + second:
        longer, shorter = max((first, a), (second, b)), min((first, a), (second, b))
        assert longer[1] < longer[0] or first == second
        # The shorter segment is truncated only if both segments have the same length.
        assert shorter[0] == shorter[1] or abs(a - b) <= 1


def test_segments_are_framed_by_separators_and_padded_at_the_end(tokenizer):
    words = [texts("old"), texts("old", "dogs near"), texts("old", "dogs", "near house")]
    data = encode_texts(words, tokenizer, 32)
    cls, sep, pad = tokenizer.cls_id, tokenizer.sep_id, tokenizer.pad_id
    ids = {text: tokenizer.encode_sentences([text])[0] for example in words for text in example.segments}
    expected = [
        [cls, *ids["old"], sep],
        [cls, *ids["old"], sep, *ids["dogs near"], sep],
        [cls, *ids["old"], sep, *ids["dogs"], sep, *ids["near house"], sep],
    ]
    assert rows(data) == expected
    assert data.lengths.tolist() == [len(row) for row in expected]
    batch = data.batch(np.arange(3))
    assert batch.inputs["input_ids"].dtype == torch.int64 and batch.inputs["attention_mask"].dtype == torch.bool
    assert bool((batch.inputs["input_ids"][~batch.inputs["attention_mask"]] == pad).all())
    assert set(batch.inputs) == {"input_ids", "attention_mask"}


def test_between_two_segments_stand_as_many_separators_as_the_special_tokens_say():
    framing = Framing(cls_id=0, separator_id=2, pad_id=1, separators_between=2, n_behind=1)
    assert framing.overhead(np.array([1, 2, 3])).tolist() == [2, 4, 6]
    assert framing.segment_starts(np.array([3, 4, 2])).tolist() == [1, 6, 12]


def test_three_segments_are_cut_to_the_limit_and_counted(tokenizer):
    long = " ".join(WORDS * 4)
    data = encode_texts([texts(long, "old dogs", long), texts("old", "dogs", "near")], tokenizer, 20)
    assert data.lengths.max() == 20 and data.truncated == 1
    whole = tokenizer.encode_sentences(["old dogs"])[0]
    assert any(rows(data)[0][i : i + len(whole)] == whole for i in range(20))
    assert data.subset([1]).truncated == 0


def test_every_distinct_text_is_encoded_once_and_subsets_share_it(tokenizer):
    passage = " ".join(WORDS)
    data = encode_texts([texts(passage, word, label=i % 2) for i, word in enumerate(WORDS)], tokenizer, 64)
    assert len(data.arrays.pool.lengths) == 1 + len(WORDS)
    part = data.subset([5, 2])
    assert part.arrays is data.arrays
    assert part.labels.tolist() == [1, 0] and part.lengths.tolist() == data.lengths[[5, 2]].tolist()
    assert rows(part) == [rows(data)[5], rows(data)[2]]
    assert part.subset([1]).batch(np.array([0])).units.tolist() == [0]
    assert rows(part.subset([1])) == [rows(data)[2]]


def test_choices_are_inputs_of_their_own_and_missing_ones_are_masked(tokenizer):
    two = Example((("old", "dogs"), ("old", "cat")), 1)
    three = Example((("old", "house"), ("old", "near"), ("old", "dogs sleep")), 2)
    data = encode_texts([two, three], tokenizer, 32)
    batch = data.batch(np.array([1, 0]))
    ids, mask = batch.inputs["input_ids"], batch.inputs["attention_mask"]
    assert ids.shape[:2] == (2, 3) and batch.labels.tolist() == [2, 1]
    assert mask.any(dim=-1).tolist() == [[True, True, True], [True, True, False]]
    alone = rows(encode_texts([texts("old", "cat")], tokenizer, 32))
    assert ids[1, 1][mask[1, 1]].tolist() == alone[0]
    assert data.lengths.tolist()[1] == int(mask.sum(dim=-1).max())
    long = Example((("old", "dogs"), ("old", " ".join(WORDS * 3))), 0)
    assert encode_texts([two, long], tokenizer, 12).truncated == 1, "one of the two choices of one row is too long"
    # A batch without the three-choice question has only two choices per row.
    assert data.batch(np.array([0])).inputs["input_ids"].shape[1] == 2


def test_numbers_stay_numbers(tokenizer):
    data = encode_texts([texts("old", label=2.5), texts("dogs", label=0.0)], tokenizer, 16)
    assert data.labels.dtype == np.float64 and data.labels.tolist() == [2.5, 0.0]


def test_marked_words_become_the_tokens_that_share_characters_with_them(tokenizer):
    first, second = "the old dogs sleep", "a cat likes dogs"
    spans = tuple(MarkedSpan(i, text.index("dogs"), text.index("dogs") + 4) for i, text in enumerate((first, second)))
    data = encode_texts([texts(first, second, marked=spans)], tokenizer, 64)
    batch = data.batch(np.array([0]))
    ids = batch.inputs["input_ids"][0]
    found = [tokenizer.decode(ids[start:end].tolist()).strip() for start, end in batch.inputs["spans"][0].tolist()]
    assert found == ["dogs", "dogs"]
    assert batch.inputs["spans"].shape == (1, 2, 2)
    # With padding in front, the spans of the shorter text move by the padding.
    longer = tuple(MarkedSpan(i, text.index("dogs"), text.index("dogs") + 4) for i, text in enumerate((second, first)))
    pair = [texts(first, second, marked=spans), texts(f"{second} {second}", first, marked=longer)]
    data = encode_texts(pair, tokenizer, 64, pads_in_front=True)
    batch = data.batch(np.array([0, 1]))
    assert batch.inputs["attention_mask"][0, 0].item() is False
    for row, its in zip(batch.inputs["input_ids"], batch.inputs["spans"].tolist(), strict=True):
        assert [tokenizer.decode(row[start:end].tolist()).strip() for start, end in its] == ["dogs", "dogs"]


def test_a_token_that_ends_where_a_mark_begins_or_begins_where_it_ends_is_not_marked():
    offsets = np.array([[0, 2], [2, 4], [4, 6]])
    assert [_tokens_of(MarkedSpan(0, *mark), offsets, "") for mark in ((2, 4), (1, 4), (2, 5), (0, 2))] == [
        *((1, 2), (0, 2), (1, 3), (0, 1))
    ]


def test_a_marked_word_that_is_cut_away_points_at_the_first_token(tokenizer):
    text = " ".join(WORDS * 3) + " dogs"
    mark = MarkedSpan(0, len(text) - 4, len(text))
    data = encode_texts([texts(text, marked=(mark,))], tokenizer, 10)
    assert data.batch(np.array([0])).inputs["spans"].tolist() == [[[0, 1]]]
    assert data.truncated == 1
    # Eight tokens remain. A span of the ninth token is lost; a longer span keeps the remaining tokens.
    ninth = tokenizer.backend.encode(text, add_special_tokens=False).offsets[8]
    for place, expected in ((ninth, [0, 1]), ((0, len(text)), [1, 9])):
        cut = encode_texts([texts(text, marked=(MarkedSpan(0, *place),))], tokenizer, 10)
        assert cut.batch(np.array([0])).inputs["spans"].tolist() == [[expected]]


@pytest.mark.parametrize(
    ("examples", "message"),
    [
        ([Example((), 0, where="f:1")], "f:1: the row has no text"),
        (
            [texts("old", marked=(MarkedSpan(0, 3, 3),), where="f:2")],
            r"f:2: no token covers the marked characters \[3, 3\)",
        ),
        ([texts("old", marked=(MarkedSpan(0, 0, 3),)), texts("old", where="f:3")], "f:3: marked words: got 0"),
    ],
    ids=["no_text", "empty_mark", "missing_mark"],
)
def test_rows_that_cannot_be_encoded_are_named(tokenizer, examples, message):
    with pytest.raises(EvaluationError, match=message):
        encode_texts(examples, tokenizer, 16)


def test_a_limit_that_only_the_frame_would_fill_is_refused(tokenizer):
    with pytest.raises(ConfigError, match=r"finetune.protocol.max_length: got 6, expected at least 7"):
        encode_texts([texts("old", "dogs", "near")], tokenizer, 6)


LENGTHS = st.lists(st.integers(2, 60), min_size=1, max_size=200).map(np.array)


@given(st.lists(st.integers(0, 15), min_size=1, max_size=80), st.floats(0.01, 0.6), st.integers(0, 5))
def test_held_out_rows_are_a_partition_that_divides_no_group(groups, fraction, seed):
    distinct = len(set(groups))
    expected = max(1, round(fraction * distinct))
    if expected >= distinct:
        with pytest.raises(EvaluationError, match=f"here: got {distinct} different rows, too few"):
            hold_out(groups, fraction, generator(seed), "here")
        return
    kept, held = hold_out(groups, fraction, generator(seed), "here")
    assert sorted(kept + held) == list(range(len(groups)))
    held_groups = {groups[index] for index in held}
    assert held_groups.isdisjoint(groups[index] for index in kept)
    assert len(held_groups) == expected
    assert (kept, held) == hold_out(groups, fraction, generator(seed), "here")


def test_each_seed_holds_out_other_rows():
    splits = {tuple(hold_out(range(100), 0.1, generator(seed, "development rows"), "")[1]) for seed in range(5)}
    assert len(splits) == 5 and all(len(held) == 10 for held in splits)


def test_purposes_of_one_seed_are_independent_and_fixed():
    assert derived_seed(12, "head") != derived_seed(12, "order") != derived_seed(13, "order")
    assert derived_seed(1, "23") != derived_seed(12, "3")
    # A changed derivation would silently change all our published numbers.
    assert derived_seed(12, "head") == 6489840010828851964


@given(LENGTHS, st.integers(1, 9), st.integers(0, 3), st.integers(1, 3))
def test_an_epoch_trains_on_every_example_once_in_an_order_fixed_by_seed_and_epoch(lengths, batch_size, seed, epoch):
    batches = training_batches(lengths, batch_size, seed, epoch)
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(lengths)))
    assert all(len(batch) <= batch_size for batch in batches)
    assert sum(len(batch) < batch_size for batch in batches) <= 1
    again = training_batches(lengths, batch_size, seed, epoch)
    assert [b.tolist() for b in batches] == [b.tolist() for b in again]


def test_epochs_and_seeds_mix_anew():
    lengths = np.arange(200) % 17
    orders = {tuple(np.concatenate(training_batches(lengths, 8, s, e)).tolist()) for s in range(3) for e in range(1, 4)}
    assert len(orders) == 9
    # An epoch also changes the batch of an example, not only the order of fixed batches.
    partners = {frozenset(b.tolist()) for e in range(1, 4) for b in training_batches(lengths, 8, 0, e) if 0 in b}
    assert len(partners) == 3


@given(LENGTHS, st.integers(1, 9), st.integers(0, 3))
def test_dropping_the_incomplete_batch_leaves_full_batches_only(lengths, batch_size, seed):
    batches = training_batches(lengths, batch_size, seed, 1, drop_incomplete=True)
    assert [len(batch) for batch in batches] == [batch_size] * (len(lengths) // batch_size)
    assert len(batches) == batches_per_epoch(len(lengths), batch_size, drop_incomplete=True)
    chosen = [index for batch in batches for index in batch.tolist()]
    assert len(set(chosen)) == len(chosen)


def test_the_items_that_a_dropped_batch_leaves_out_are_not_the_longest_ones():
    lengths = np.arange(1, 36)
    left_out = set()
    for epoch in range(40):
        batches = training_batches(lengths, 8, 0, epoch, drop_incomplete=True)
        left_out |= set(range(35)) - set(np.concatenate(batches).tolist())
    assert left_out == set(range(35))


@given(LENGTHS, st.integers(1, 400))
def test_prediction_batches_cover_everything_once_within_the_budget_of_tokens(lengths, budget):
    batches = prediction_batches(lengths, budget)
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * lengths[batch].max() <= budget


def test_training_batches_pad_much_less_than_batches_in_a_random_order():
    lengths = np.random.default_rng(0).integers(5, 40, size=2000)

    def padded(batches):
        return sum(len(batch) * int(lengths[batch].max()) for batch in batches) / lengths.sum()

    order = np.random.default_rng(1).permutation(2000)
    assert padded(training_batches(lengths, 16, 0, 1)) < 1.15
    assert padded([order[start : start + 16] for start in range(0, 2000, 16)]) > 1.5
