"""Hidden tokens and next tokens in one batch: what is asked where, as how much it counts, and who sees whom."""

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from hatchery.modeling.families import model_config
from hatchery.modeling.initialisation import initialise_
from hatchery.modeling.language_model import LanguageModel
from hatchery.objectives.next_tokens import TwoKinds
from hatchery.tokenization.special_tokens import UNLABELLED
from hatchery.training.measures import loss_of
from hatchery.training.objectives.causal import CausalObjective, CausalSettings
from hatchery.training.objectives.hybrid import HybridObjective, HybridSettings

CLS, SEP, PAD, MASK = 1, 2, 3, 4
DOCUMENTS = [[7, 9, 3], [2], [30, 41], [5] * 9, [11]]


def examples_of(collection: Any, length: int = 24, **changes: Any) -> TwoKinds:
    return HybridObjective(HybridSettings(**changes)).examples(collection, length)


@pytest.mark.parametrize("segments", ["packed", "babylm", "documents"])
def test_a_hidden_token_is_asked_for_at_the_position_before_it(make_traceable: Any, segments: str) -> None:
    changes = {"kind": "subword", "mask_probability": 0.4, "random_probability": 0.0, "keep_probability": 0.0}
    examples = examples_of(make_traceable(DOCUMENTS), segments=segments, **changes)
    plain = CausalObjective(CausalSettings(segments=segments)).examples(make_traceable(DOCUMENTS), 24)
    hidden = 0
    for index in range(len(examples)):
        ids, labels, *_ = examples.example(3, 1, index)
        whole = plain.example(0, 0, index).input_ids
        for position, label in enumerate(labels):
            following = ids[position + 1] if position + 1 < len(ids) else None
            assert (label != UNLABELLED) == (following == MASK)
            if label != UNLABELLED:
                assert label == whole[position + 1]
                hidden += 1
    assert hidden > 20


def test_from_the_number_of_sequences_on_they_are_those_of_a_causal_model(make_traceable: Any) -> None:
    collection = make_traceable(DOCUMENTS)
    examples, plain = examples_of(collection), CausalObjective(CausalSettings()).examples(collection, 24)
    for index in range(len(examples)):
        for ours, theirs in zip(examples.example(3, 1, len(examples) + index), plain.example(0, 0, index), strict=True):
            assert np.array_equal(ours, theirs)


def test_every_batch_has_as_many_causal_sequences_and_each_kind_reads_all_text(make_traceable: Any) -> None:
    objective, examples = HybridObjective(HybridSettings(causal_share=0.25)), examples_of(make_traceable(DOCUMENTS * 4))
    seen: dict[bool, list[tuple[int, int]]] = {False: [], True: []}
    for step in range(40):
        order = objective.order(examples, 7, step, 8)
        drawn = [(part.epoch, int(index)) for part in order for index in part.indices]
        assert [index >= len(examples) for _, index in drawn] == [False] * 6 + [True] * 2
        for epoch, index in drawn:
            seen[index >= len(examples)].append((epoch, index % len(examples)))
    for found in seen.values():
        whole = [index for epoch, index in found if epoch == 0]
        assert sorted(whole) == list(range(len(examples))) and len(set(found)) == len(found)
    assert max(epoch for epoch, _ in seen[False]) > max(epoch for epoch, _ in seen[True])
    # At least one of each, however small the share.
    (first, second) = HybridObjective(HybridSettings(causal_share=0.01)).order(examples, 7, 0, 4)
    assert (len(first.indices), len(second.indices)) == (3, 1)


@pytest.mark.parametrize("padded", [False, True])
def test_the_loss_is_the_share_of_the_causal_mean_and_the_rest_of_the_other(make_collection: Any, padded: bool) -> None:
    collection, length = make_collection(DOCUMENTS, vocab_size=300), 24
    objective = HybridObjective(HybridSettings(causal_share=0.25, segments="documents" if padded else "packed"))
    examples = objective.examples(collection, length)
    sizes = {"hidden_size": 24, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    model = LanguageModel(model_config({**sizes, "vocab_size": 300, "position_bucket_size": 8})).double().eval()
    initialise_(model, 1)
    indices = np.array([0, 1, 2, len(examples), len(examples) + 3])
    batch = examples.batch(5, 0, indices)
    counted = examples.counted(batch)
    loss = loss_of(objective.terms(model(**batch)), tuple(map(float, counted)))

    sums, counts = [0.0, 0.0], [0, 0]
    for index in indices:
        found = examples.example(5, 0, int(index))
        causal, n = int(index) >= len(examples), len(found.labels)
        mask = torch.zeros(1, n, n, dtype=torch.bool)
        end = 0
        for piece in found.piece_lengths or [n]:
            mask[:, end : end + piece, end : end + piece] = True
            end += piece
        if causal:
            mask = mask.tril()
        hidden = model.encoder(torch.from_numpy(found.input_ids)[None], mask)[-1][0]
        targets = torch.from_numpy(found.labels)
        sums[causal] += F.cross_entropy(model.logits_at(hidden), targets, reduction="sum")
        counts[causal] += int((targets != UNLABELLED).sum())
    assert counts == list(counted)
    assert float(loss.detach()) == pytest.approx(
        float(0.75 * sums[0] / counts[0] + 0.25 * sums[1] / counts[1]), abs=1e-9
    )


def test_held_out_text_is_asked_hidden_tokens(make_collection: Any) -> None:
    examples = examples_of(make_collection(DOCUMENTS, vocab_size=300))
    batch = examples.batch(5, 0, np.arange(len(examples)))
    assert not batch["causal"].any() and examples.counted(batch)[1] == 0
