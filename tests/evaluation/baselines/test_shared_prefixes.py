"""Texts with shared prefixes, scored from left to right, have the same scores as texts that are scored one by one."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hatchery.evaluation.minimal_pairs.items import Candidate, Item
from hatchery.evaluation.minimal_pairs.score_suite import candidate_scores
from hatchery.evaluation.minimal_pairs.sentence_model import HatcheryModel
from hatchery.evaluation.minimal_pairs.shared_prefixes import LEAST_SHARED, batches_of, groups_of
from hatchery.evaluation.runtime import load_pretrained, load_sentence_model
from hatchery.modeling.families import model_config
from hatchery.modeling.language_model import build_language_model, initialise_

START = "The old dogs near it sleep and"
SETS = [
    (f"{START} the", (" dogs sleep .", " cat chases the dogs .", " house .")),
    (f"{START} a cat", (" sleeps .", " likes the old house .")),
    ("", (f"{START} she sleeps .", f"{START} she sleep .")),
    ("", ("The dogs .", "A cat sleeps .")),
]
ITEMS = [
    Item("p", "p", str(number), tuple(Candidate(text, given) for text in texts))
    for number, (given, texts) in enumerate(SETS)
]


def scores_of(model, tokens_per_batch=None):
    shared = candidate_scores(ITEMS, model, tokens_per_batch=tokens_per_batch)
    return shared.scores, shared.tokens


def causal_model(family, vocabulary_size):
    """A small causal model of a family, with all switches of the modern one."""
    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 3, "num_attention_heads": 2}
    switches = ("value_residual", "head_gate", "unet_skips") if family == "modern" else ()
    config = model_config({"family": family, "vocab_size": vocabulary_size, **sizes, **dict.fromkeys(switches, True)})
    model = build_language_model(config, causal=True)
    initialise_(model, seed=0)
    return model


@pytest.mark.parametrize("tokens_per_batch", [None, 1, 100])
@pytest.mark.parametrize("name", ["ours", "modern", "roberta", "gpt2", "opt"])
def test_scores_are_those_of_every_text_by_itself(
    make_model_manifest, manifest_of, monkeypatch, name, tokens_per_batch
):
    is_ours = name in ("ours", "modern", "roberta")
    if is_ours:
        network, tokenizer = load_pretrained(make_model_manifest(causal=True))
        if name != "ours":
            network = causal_model(name, tokenizer.vocabulary_size)
        model = HatcheryModel(network, tokenizer, torch.device("cpu"))
    else:
        model = load_sentence_model(manifest_of(name), torch.device("cpu"))
    assert model.shares_prefixes
    calls = []
    behind = type(model).features_behind if is_ours else type(model).logits_behind
    monkeypatch.setattr(
        type(model), behind.__name__, lambda self, *given: (calls.append(given), behind(self, *given))[1]
    )
    shared, tokens = scores_of(model, tokens_per_batch)
    assert calls
    monkeypatch.setattr(type(model), "shares_prefixes", False)
    alone, the_same = scores_of(model, tokens_per_batch)
    np.testing.assert_allclose(shared, alone, atol=1e-5)
    assert (tokens == the_same).all()


@given(
    st.lists(st.lists(st.integers(0, 1), min_size=1, max_size=14).map(tuple), unique=True, max_size=30),
    st.integers(1, 90),
)
def test_every_text_is_in_one_batch_with_its_own_tokens(inputs, tokens_per_batch):
    groups = groups_of(inputs)
    members = [member for group in groups for member in group.members]
    assert len(members) == len(set(members))
    for group in groups:
        assert group.shared >= LEAST_SHARED and len(group.members) > 1
        assert len({inputs[member][: group.shared] for member in group.members}) == 1
    batched = []
    for batch in batches_of(groups, inputs, tokens_per_batch):
        batched += batch.members
        laid_out = np.concatenate([batch.prefixes.ravel(), batch.rest.ravel()])
        for text, member in enumerate(batch.members):
            columns = np.arange(len(inputs[member]))
            found = laid_out[batch.places(columns, np.full(len(columns), text))]
            assert tuple(found.tolist()) == inputs[member]
    assert sorted(batched) == sorted(members)
