"""Examples of every objective as pure functions of (seed, epoch, index), and the padding of batches."""

import hashlib
import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hatchery.errors import ConfigError
from hatchery.objectives.padded_examples import LabelledExample, Padding
from hatchery.objectives.special_ids import SpecialIds
from hatchery.tokenization.special_tokens import SPECIAL_SETS
from hatchery.training.batches import concatenate
from hatchery.training.data_order import EpochSlice, epoch_permutation, micro_batches, sequences_from, share_of_process
from hatchery.training.objectives import objective_of
from hatchery.training.objectives.causal import CausalSettings
from hatchery.training.objectives.hybrid import HybridSettings
from hatchery.training.objectives.masked import MaskedSettings, pair_term

SPAN = MaskedSettings()
KINDS = [
    *(
        MaskedSettings(kind, segments=segments)
        for kind, segments in itertools.product(
            ("subword", "whole_word", "span"), ("babylm", "bnc", "documents", "packed")
        )
    ),
    *(
        replace(SPAN, segments=segments, sentence_pairs=pairs)
        for segments, pairs in itertools.product(("babylm", "bnc"), ("document", "order"))
    ),
    MaskedSettings(reading="as_published", segments="bnc"),
    replace(SPAN, segments="documents", padding_in_loss=True, padding_attended=True),
]
DOCUMENTS = [[7, 12, 30, 4], [3], [20] * 40, [], [64, 5], [1] * 30]


def described(settings):
    pairs = "" if settings.sentence_pairs == "none" else f"-{settings.sentence_pairs}"
    return f"{settings.kind}-{settings.reading}-{settings.segments}{pairs}-{settings.padding_in_loss}"


@pytest.fixture(scope="module", params=KINDS, ids=described)
def examples(request, make_collection):
    return objective_of(request.param).examples(make_collection(DOCUMENTS, vocab_size=300), 64)


def rows(batch):
    """Return each row of a batch as plain lists without padding."""
    found = []
    for row, ids in enumerate(batch["input_ids"]):
        length = int((ids != 3).sum())
        mask = batch["attention_mask"][row]
        mask = mask[:length, :length] if mask.dim() == 2 else mask[:length]
        label = int(batch["pair_labels"][row]) if "pair_labels" in batch else None
        found.append((ids[:length].tolist(), batch["labels"][row, :length].tolist(), mask.tolist(), label))
    return found


@settings(deadline=None, max_examples=15)
@given(data=st.data())
def test_an_example_is_the_same_in_every_batch_and_order(examples, data):
    indices = st.lists(st.integers(0, len(examples) - 1), min_size=1, max_size=12)
    first, second = data.draw(indices), data.draw(indices)
    seed, epoch = data.draw(st.integers(0, 2**40)), data.draw(st.integers(0, 9))
    together = dict(zip([*first, *second], rows(examples.batch(seed, epoch, [*first, *second])), strict=True))
    for part in (first, second[::-1]):
        assert rows(examples.batch(seed, epoch, part)) == [together[index] for index in part]


@pytest.mark.parametrize("world_size", [1, 2, 4])
def test_processes_together_draw_the_global_batch(examples, world_size):
    """The batch extends over the end of an epoch and is split into micro-batches."""
    size = min(24, len(examples) + 3)

    def batch_at(step: int) -> list[EpochSlice]:
        return sequences_from(
            step * size, size, len(examples), lambda epoch: epoch_permutation(11, epoch, len(examples))
        )

    whole = next(batch for batch in map(batch_at, range(99)) if len(batch) > 1)
    expected = [row for part in whole for row in rows(examples.batch(11, part.epoch, part.indices))]
    drawn = []
    for rank in range(world_size):
        for piece in micro_batches(share_of_process(whole, rank, world_size), 5):
            drawn += [row for part in piece for row in rows(examples.batch(11, part.epoch, part.indices))]
    assert drawn == expected and len(drawn) == size


def test_a_restarted_process_draws_the_same(examples, make_collection, request):
    """Batches have no hidden state: a new object returns the same batches as an object in the middle of a run."""
    examples.batch(3, 0, np.arange(len(examples)))
    changed = request.node.callspec.params["examples"]
    fresh = objective_of(changed).examples(make_collection(DOCUMENTS, vocab_size=300), 64)
    indices = np.arange(len(examples))[::-2]
    assert rows(fresh.batch(3, 5, indices)) == rows(examples.batch(3, 5, indices))


@pytest.mark.parametrize("change", [(2, 4, 5), (1, 5, 5), (1, 4, 6)])
def test_seed_epoch_and_index_each_change_the_masking(make_collection, change):
    same = objective_of(replace(SPAN, short_probability=0.0)).examples(make_collection([[60]] * 8), 62)
    assert not np.array_equal(same.example(1, 4, 5).labels, same.example(*change).labels)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.reading == "corrected"], ids=described)
def test_predicted_and_visible_tokens_together_are_runs_of_the_documents(make_traceable, kind):
    """Without random and kept tokens, an example with its labels filled in is the text."""
    always_mask = replace(kind, random_probability=0.0, keep_probability=0.0)
    collection = make_traceable(DOCUMENTS)
    examples = objective_of(always_mask).examples(collection, 64)
    batch = examples.batch(0, 2, np.arange(len(examples)))
    clean = torch.where(batch["labels"] == -100, batch["input_ids"], batch["labels"])
    ends = set(itertools.accumulate(map(sum, DOCUMENTS), initial=len(SPECIAL_SETS["babylm"].order)))
    assert (batch["labels"] >= 6).any()
    for ids in clean.tolist():
        for is_special, group in itertools.groupby(ids, lambda id_: id_ < 6):
            text = list(group)
            assert is_special or text == list(range(text[0], text[0] + len(text)))
            assert is_special or not ends & set(text[1:]), "no run crosses from one document to the next"


@pytest.mark.parametrize(
    "chosen",
    [
        *(MaskedSettings(segments=segments) for segments in ("babylm", "bnc", "documents", "packed")),
        MaskedSettings(segments="bnc", sentence_pairs="document"),
        *(
            cls(segments=segments)
            for cls in (CausalSettings, HybridSettings)
            for segments in ("packed", "bnc", "blocks")
        ),
    ],
)
def test_the_place_of_a_sequence_is_the_position_of_its_first_token_in_the_split(make_traceable, chosen):
    # The ids of the split count up from 7.
    examples = objective_of(chosen).examples(make_traceable([[7, 12, 3], [3], [], [5, 6], [25, 4]]), 24)
    places = [int(examples.texts(0, 0, index)[0].tokens[0]) - 7 for index in range(len(examples))]
    assert examples.places().tolist() == places and len(set(places)) > 2


def pinned_collection(make_collection, name):
    """Return sixty documents computed without a random generator, so that the digests depend on no generator."""
    documents, position = [], 0
    for number in range(60):
        lengths = [1 + (7 * number + 5 * sentence * sentence) % 41 for sentence in range((number * number) % 23)]
        where = np.arange(position, position + sum(lengths), dtype=np.int64)
        position += sum(lengths)
        (document,) = make_collection([lengths]).documents
        ids = ((where * 7919 + where * where % 263) % 994).astype(np.uint16)
        documents.append(document._replace(ids=ids))
    return replace(make_collection([]), documents=documents, vocabulary_size=994, special=SPECIAL_SETS[name])


@pytest.mark.parametrize(
    ("name", "sequence_length", "expected"),
    [
        ("babylm", 32, "42c516807f20c578f11fe25375673ba93a1e869f973ec5a57c99694e83df1dee"),
        ("babylm", 128, "6fab073d51ba8dab833fee353987b5e7dd5ddba197f7e3e3fbeee031d5f1bd52"),
        ("roberta", 32, "5e14fe4af9c484c27b78c6535cf9396bb1332fa3a9855d8907e6841eac87d3c1"),
        ("roberta", 128, "da2e947291ca753075ad24fbc47a5932c0b50b25eb34a61c5a0e39f286c627c9"),
    ],
)
def test_batches_of_the_default_objective_are_those_of_earlier_runs(make_collection, name, sequence_length, expected):
    """The digests were computed before other objectives existed, so that results of earlier runs remain
    reproducible."""
    examples = objective_of(SPAN).examples(pinned_collection(make_collection, name), sequence_length)
    digest = hashlib.sha256()
    for epoch in range(3):
        order = np.random.Philox(epoch).random_raw(len(examples)).argsort(kind="stable")
        for first in range(0, len(order), 16):
            batch = examples.batch(42, epoch, order[first : first + 16])
            for key in ("input_ids", "attention_mask", "labels"):
                values = batch[key].numpy()
                digest.update(repr((key, str(values.dtype), values.shape)).encode())
                digest.update(values.tobytes())
    assert digest.hexdigest() == expected


def test_trimming_a_batch_does_not_change_what_is_masked(make_collection):
    """Spans are drawn for the nominal length, so the length of other examples does not affect the masks of
    an example."""
    collection = make_collection([[10], [62]], vocab_size=300)
    examples = objective_of(replace(SPAN, short_probability=0.0)).examples(collection, 64)
    alone, together = examples.batch(3, 0, [0]), examples.batch(3, 0, [0, 1])
    assert alone["labels"].shape[1] == 12 and together["labels"].shape[1] == 64
    assert torch.equal(alone["labels"][0], together["labels"][0, :12])


@pytest.mark.parametrize("pairs", ["document", "order"])
@pytest.mark.parametrize("segments", ["packed", "documents"])
def test_pairs_need_segments_of_several_sentences(segments, pairs):
    with pytest.raises(ConfigError, match=rf"sentence_pairs: got '{pairs}' with segments '{segments}', expected none"):
        replace(SPAN, segments=segments, sentence_pairs=pairs)


@pytest.mark.parametrize(("name", "protected", "first_random"), [("babylm", 6, 5), ("bnc", 6, 5), ("roberta", 5, 5)])
def test_protected_and_random_ids_follow_the_set_of_special_tokens(name, protected, first_random):
    special = SpecialIds.of(SPECIAL_SETS[name])
    assert (special.n_protected, special.first_random) == (protected, first_random)


CLS, SEP, PAD, MASK = 0, 2, 1, 4
LENGTHS = [9, 14, 5]


def batch_of(make_traceable, **quirks):
    """Return a batch of three documents as in the study: RoBERTa's special tokens, always [MASK], no short examples."""
    collection = make_traceable([[length] for length in LENGTHS], "roberta")
    masking = MaskedSettings("subword", "corrected", 0.5, 0.0, 0.0, special_tokens_maskable=True)
    settings = replace(masking, short_probability=0.0, segments="documents", **quirks)
    return objective_of(settings).examples(collection, 24).batch(0, 0, [0, 1, 2])


def test_examples_are_framed_and_masked_with_the_ids_of_their_set(make_traceable):
    batch = batch_of(make_traceable, special_tokens_maskable=False)
    ids, labels = batch["input_ids"], batch["labels"]
    assert (ids[:, 0] == CLS).all()
    assert all(ids[row, length + 1] == SEP for row, length in enumerate(LENGTHS))
    assert (labels != -100).any() and (ids[labels != -100] == MASK).all()


def test_without_quirks_padding_is_trimmed_hidden_and_unlabelled(make_traceable):
    batch = batch_of(make_traceable)
    assert batch["input_ids"].shape == batch["labels"].shape == batch["attention_mask"].shape == (3, 16)
    assert batch["attention_mask"].sum(dim=1).tolist() == [length + 2 for length in LENGTHS]
    assert (batch["labels"][~batch["attention_mask"]] == -100).all()
    assert (batch["input_ids"][~batch["attention_mask"]] == PAD).all()


@pytest.mark.parametrize("in_loss", [False, True])
@pytest.mark.parametrize("attended", [False, True])
def test_each_quirk_changes_its_own_part_of_the_batch_only(make_traceable, in_loss, attended):
    plain, batch = (
        batch_of(make_traceable),
        batch_of(make_traceable, padding_in_loss=in_loss, padding_attended=attended),
    )
    width = 24 if in_loss or attended else 16
    assert all(tensor.shape == (3, width) for tensor in batch.values())
    for row, length in enumerate(LENGTHS):
        tokens, behind = slice(0, length + 2), slice(length + 2, width)
        assert torch.equal(batch["input_ids"][row, tokens], plain["input_ids"][row, tokens])
        assert torch.equal(batch["labels"][row, tokens], plain["labels"][row, tokens])
        assert (batch["input_ids"][row, behind] == PAD).all()
        assert (batch["labels"][row, behind] == (PAD if in_loss else -100)).all()
        assert batch["attention_mask"][row, tokens].all()
        assert (batch["attention_mask"][row, behind] == attended).all()


def test_the_padded_loss_labels_all_positions_behind_the_sequence_and_none_within_it(make_traceable):
    """docs/papers/reduced-vocabulary.md, "Padding": padding is labelled with its own id; before the padding, only
    masked positions are labelled."""
    batch = batch_of(make_traceable, padding_in_loss=True, padding_attended=True)
    assert (batch["labels"] == PAD).sum(dim=1).tolist() == [24 - length - 2 for length in LENGTHS]
    within = batch["labels"][:, :7]
    assert ((within == -100) | (within != PAD)).all() and (within != -100).any()


def test_an_empty_share_of_a_batch_is_an_empty_batch():
    assert Padding(3, 16).batch([])["input_ids"].shape == (0, 0)
    assert Padding(3, 16, in_loss=True).batch([])["labels"].shape == (0, 16)


def test_pieces_become_blocks_and_padding_sees_nothing():
    ids = np.arange(10, 15)
    examples = [LabelledExample(ids, ids, [2, 3]), LabelledExample(ids[:3], ids[:3], [3])]
    mask = Padding(3, 16).batch(examples)["attention_mask"].int()
    assert mask[0].tolist() == [[1, 1, 0, 0, 0]] * 2 + [[0, 0, 1, 1, 1]] * 3
    assert mask[1].tolist() == [[1, 1, 1, 0, 0]] * 3 + [[0, 0, 0, 0, 0]] * 2


def test_pair_labels_are_there_only_where_pairs_are_judged():
    ids = np.arange(10, 15)
    judged = Padding(3, 16).batch([LabelledExample(ids, ids, None, label) for label in (1, 0, 1)])
    assert judged["pair_labels"].tolist() == [1, 0, 1] and judged["pair_labels"].dtype == torch.int64
    assert "pair_labels" not in Padding(3, 16).batch([LabelledExample(ids, ids)])


@pytest.mark.parametrize(
    "chosen",
    [
        MaskedSettings(sentence_pairs="order"),
        MaskedSettings(segments="packed"),
        HybridSettings(segments="documents"),
        CausalSettings(segments="blocks"),
    ],
)
def test_parts_of_a_batch_are_padded_to_the_batch(make_collection, chosen):
    examples = objective_of(chosen).examples(make_collection([[3, 2], [9, 30], [50], [4]], vocab_size=300), 24)
    order = np.argsort([len(examples.example(1, 0, index).labels) for index in range(len(examples))])
    whole = examples.batch(1, 0, order)
    joined = concatenate([examples.batch(1, 0, order[:1]), examples.batch(1, 0, order[1:])], examples.fillers)
    assert joined.keys() == whole.keys() and all(torch.equal(joined[name], whole[name]) for name in whole)
    assert examples.batch(1, 0, order[:1])["input_ids"].shape[1] < whole["input_ids"].shape[1]


@pytest.mark.parametrize(
    ("chosen", "split", "same"),
    [
        (MaskedSettings(segments="babylm", short_probability=0.5), "train", False),
        (MaskedSettings(segments="packed"), "train", True),
        (CausalSettings(segments="packed"), "train", True),
        (CausalSettings(segments="blocks"), "train", False),
        (CausalSettings(segments="blocks"), "dev", True),
        (HybridSettings(segments="packed"), "train", True),
        (HybridSettings(segments="blocks", kind="short_span"), "train", False),
        (HybridSettings(segments="blocks", kind="short_span"), "dev", True),
    ],
)
def test_text_that_changes_from_epoch_to_epoch_is_known_to_and_its_words_are_counted_anew(
    make_traceable, chosen, split, same
):
    # A word starts at each id that is not a multiple of three.
    collection = replace(make_traceable([[9, 8], [20], [13, 2, 9], [30]]), split=split)
    examples = objective_of(chosen).examples(collection, 24)
    kinds = 2 if isinstance(chosen, HybridSettings) else 1
    indices = np.arange(kinds * len(examples))
    ids, words = [], []
    for epoch in range(3):
        texts = [examples.texts(5, epoch, index) for index in indices]
        assert texts == [examples.example(5, epoch, index).texts for index in indices]
        shown = [np.concatenate([text.tokens for text in each]) for each in texts]
        ids.append([each.tolist() for each in shown])
        words.append([int((each % 3 > 0).sum()) for each in shown])
        assert examples.words(5, epoch, indices).tolist() == words[-1]
        assert examples.counted_batch(5, epoch, indices)[1] == sum(words[-1])
    assert examples.same_in_every_epoch == same
    assert (ids[0] == ids[1] == ids[2]) == same
    if not same:
        halves = [[each[: len(examples)], each[len(examples) :]][:kinds] for each in ids]
        for kind in range(kinds):
            first, second, third = (half[kind] for half in halves)
            assert first != second != third != first


def test_causal_sequences_beside_hidden_ones_are_those_of_a_causal_model_in_every_epoch(make_traceable):
    collection = make_traceable([[9, 8], [20], [13, 2, 9], [30]])
    both = objective_of(HybridSettings(segments="blocks", kind="short_span")).examples(collection, 24)
    alone = objective_of(CausalSettings(segments="blocks")).examples(collection, 24)
    for epoch in range(3):
        for index in range(len(alone)):
            ours, theirs = both.example(5, epoch, len(both) + index), alone.example(5, epoch, index)
            assert ours.input_ids.tolist() == theirs.input_ids.tolist()
            assert ours.labels.tolist() == theirs.labels.tolist() and ours.causal and theirs.causal
            assert not both.example(5, epoch, index).causal


def test_a_batch_counts_its_labels_and_its_pairs_and_hides_as_much_as_its_step_says(make_collection):
    pairs = objective_of(MaskedSettings(segments="babylm", sentence_pairs="order"))
    examples = pairs.examples(make_collection([[9, 8, 7, 6]] * 40, vocab_size=300), 32)
    labels = {}
    for rate in (None, 0.1, 0.6):
        batch = examples.batch(1, 0, range(30), rate)
        labels[rate] = sum(label != -100 for row in batch["labels"].tolist() for label in row)
        assert examples.counted(batch) == (labels[rate], 30)
    ordinary = int((examples.batch(1, 0, range(30))["input_ids"] >= 4).sum())
    shares = {rate: count / ordinary for rate, count in labels.items()}
    assert shares[0.1] < shares[None] < shares[0.6] and shares[0.6] > 0.5 and shares[0.1] < 0.15


@pytest.mark.parametrize("segments", ["packed", "blocks"])
def test_masked_sequences_beside_causal_ones_hide_as_much_as_their_step_says(make_collection, segments):
    settings = HybridSettings(kind="subword", segments=segments)
    examples = objective_of(settings).examples(make_collection([[40] * 5] * 30, vocab_size=300), 64)
    for rate, share in ((None, 0.15), (0.6, 0.6)):
        batch = examples.batch(1, 0, range(len(examples)), rate)
        tokens = int((batch["input_ids"] >= 4).sum())
        assert int((batch["labels"] != -100).sum()) / tokens == pytest.approx(share, abs=0.02)


def test_pairs_are_judged_rightly_on_the_right_side_of_even_odds():
    logits, labels = torch.tensor([0.3, -0.3, 0.7, -0.7, 0.1, 0.0]), torch.tensor([1, 0, 0, 1, 1, 0])
    term = pair_term(logits, labels)
    by_hand = sum(math.log1p(math.exp(-x if y else x)) for x, y in zip(logits.tolist(), labels.tolist(), strict=True))
    assert term.loss_sum.item() == pytest.approx(by_hand, rel=1e-6) and int(term.sums[0]) == 4


def test_no_sequence_of_two_kinds_is_cut_shorter_than_it_has_to_be(make_traceable):
    examples = objective_of(HybridSettings(segments="documents")).examples(make_traceable([[9]] * 40 + [[30]] * 40), 24)
    shown = [[len(examples.example(0, epoch, index).input_ids) for index in range(80)] for epoch in range(2)]
    assert shown == [[11] * 40 + [24] * 40] * 2
