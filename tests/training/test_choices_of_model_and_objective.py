"""Every family of models and every kind of objective goes through the whole stage: trained, stopped, resumed, exported.

What the choices mean is tested where they are made (`tests/modeling`, `tests/objectives`); here is tested that nothing
between the configuration and the exported model was forgotten.
"""

import math
from collections.abc import Callable
from typing import Any

import pytest

from hatchery.artifacts.manifests import read_manifest
from hatchery.modeling.store import load_language_model

pytestmark = pytest.mark.slow

ROBERTA = {
    "family": "roberta",
    "embedding_size": 16,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "max_position_embeddings": 32,
    "tie_word_embeddings": False,
    "initialisation": "as_published",
}
ABLATED = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "max_position_embeddings": 64,
    "normalisation": "post_norm",
    "feed_forward_activation": "gelu",
    "feed_forward_bias": True,
    "position_embedding": "absolute",
    "layer_weighting": "zero",
}
CHOICES: dict[str, dict[str, Any]] = {
    "roberta, order of sentences": {"model": ROBERTA, "objective__sentence_pairs": "order"},
    "roberta as published": {
        "model": ROBERTA,
        "objective__kind": "subword",
        "objective__segments": "documents",
        "objective__special_tokens_maskable": True,
        "objective__padding_in_loss": True,
        "objective__padding_attended": True,
        "long": None,
    },
    "roberta, literal scale": {
        "model": ROBERTA,
        "output_bias__kind": "unigram",
        "output_bias__weight_scale": "frobenius",
    },
    "ablated, whole words, unigram": {
        "model": ABLATED,
        "objective__kind": "whole_word",
        "output_bias__kind": "unigram",
    },
    "documents of pairs, BNC segments": {
        "objective__sentence_pairs": "document",
        "objective__segments": "bnc",
        "objective__kind": "subword",
    },
    "causal, unigram of the corpus": {
        "objective": {"task": "causal"},
        "output_bias__kind": "unigram",
        "output_bias__counts": "corpus",
    },
    "causal roberta, whole documents, no bias": {
        "model": ROBERTA,
        "objective": {"task": "causal", "segments": "babylm"},
        "output_bias__kind": "none",
    },
    "hybrid, a quarter causal": {"objective": {"task": "hybrid", "causal_share": 0.25}},
    "packed, span as published, no bias": {
        "objective__segments": "packed",
        "objective__reading": "as_published",
        "output_bias__kind": "none",
    },
}


@pytest.mark.parametrize("name", CHOICES)
def test_a_choice_trains_and_a_killed_run_ends_with_the_same_bits(name: str, make_command: Callable[..., Any]) -> None:
    changes = {"steps": 24, **CHOICES[name]}
    whole, killed = make_command(**changes), make_command(**changes)
    whole.finish()
    killed.kill_after(11)
    killed.finish()
    assert killed.digests() == whole.digests()

    metrics = whole.rows()
    assert all(math.isfinite(value) for row in metrics for value in row.values())
    task = changes.get("objective", {}).get("task")
    expected = (task in ("causal", "hybrid"), task != "causal")
    assert all(("next_token_accuracy" in row, "masked_accuracy" in row) == expected for row in metrics)
    has_pairs = changes.get("objective__sentence_pairs", "none") != "none"
    assert all(("pair_loss" in row) == has_pairs for row in metrics)
    if has_pairs:
        assert metrics[0]["pair_loss"] == pytest.approx(math.log(2), abs=0.3)
        assert 0 <= metrics[-1]["development_pair_accuracy"] <= 1
    model = load_language_model(whole.output.parent)
    assert (model.pair_head is not None) == has_pairs
    names = whole.weights().keys()
    assert ("head.vocabulary_bias" in names) == (changes.get("output_bias__kind") != "none")


def test_the_unigram_start_is_ahead_by_the_entropy_of_the_labels(make_command: Callable[..., Any]) -> None:
    first_losses = {}
    for kind in ("zero", "unigram", "none"):
        command = make_command(output_bias__kind=kind, steps=2, long=None, model__hidden_dropout_prob=0.0)
        command.finish()
        first_losses[kind] = command.rows()[0]["loss"]
    measures = read_manifest(command.output).measures
    assert measures["parameters"] > 0
    assert first_losses["none"] == first_losses["zero"]
    assert first_losses["zero"] == pytest.approx(math.log(300), rel=0.1)
    # The generated language has a few dozen words.
    assert first_losses["unigram"] < first_losses["zero"] - 1
