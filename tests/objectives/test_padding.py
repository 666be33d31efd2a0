"""Batches: who is padded how far, and the two quirks of the reduced-vocabulary study, each by itself."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from hatchery.objectives.padding import LabelledExample, Padding
from hatchery.training.objectives import objective_of
from hatchery.training.objectives.masked import MaskedSettings

CLS, SEP, PAD = 0, 2, 1
LENGTHS = [9, 14, 5]


def batch_of(make_traceable, **quirks):
    """Three documents as the study had them: RoBERTa's special tokens, always [MASK], no short examples."""
    collection = make_traceable([[length] for length in LENGTHS], "roberta")
    masking = MaskedSettings("subword", "corrected", 0.5, 0.0, 0.0, special_tokens_maskable=True)
    settings = replace(masking, short_probability=0.0, segments="documents", **quirks)
    return objective_of(settings).examples(collection, 24).batch(0, 0, [0, 1, 2])


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
    """docs/papers/reduced-vocabulary.md, "Padding": the label of padding is its id; in front of it only masked
    positions count."""
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
