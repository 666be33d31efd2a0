"""Encoders of all kinds, and a small batch for every head of the registry."""

from collections.abc import Callable
from typing import Any

import pytest
from head_cases import PAD, Case, head_cases
from torch import Tensor

from hatchery.modeling.encoder import LayeredEncoder
from hatchery.modeling.families import model_config
from hatchery.modeling.heads.registry import HEADS, build_task_model
from hatchery.modeling.heads.task_model import HeadContext, TaskModel
from hatchery.modeling.language_model import LanguageModel, initialise_

ENCODERS: dict[str, dict[str, Any]] = {
    "ltg": {"family": "ltg", "position_bucket_size": 8},
    "elc": {"family": "ltg", "position_bucket_size": 8, "layer_weighting": "weighted_output"},
    "causal": {"family": "ltg", "position_bucket_size": 8, "causal": True},
    "roberta": {"family": "roberta", "embedding_size": 16, "tie_word_embeddings": False},
}
SIZES = {
    "vocab_size": 61,
    "hidden_size": 24,
    "intermediate_size": 40,
    "num_hidden_layers": 3,
    "num_attention_heads": 3,
    "max_position_embeddings": 32,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}


@pytest.fixture
def make_encoder() -> Callable[..., LayeredEncoder]:
    """The initialised encoder of one of ENCODERS; keyword arguments replace its values."""

    def make(kind: str = "ltg", **changes: Any) -> LayeredEncoder:
        values = {**SIZES, **ENCODERS[kind], **changes}
        causal = values.pop("causal", False)
        model = LanguageModel(model_config(values), causal=causal)
        initialise_(model, 1)
        return model.encoder

    return make


@pytest.fixture
def make_head(make_encoder: Callable[..., LayeredEncoder]) -> Callable[..., TaskModel]:
    """A head of the registry on an encoder of its own."""

    def make(name: str, encoder: str = "ltg", seed: int = 5, dropout: float = 0.0, **options: Any) -> TaskModel:
        context = HeadContext(3 if HEADS[name].has_label_set else None, dropout, seed, PAD)
        return build_task_model(name, make_encoder(encoder), context, options)

    return make


@pytest.fixture
def tokens(batch: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
    """Ids and mask [3, 12] of sequences of 12, 9 and 5 tokens."""
    ids, mask, _ = batch
    return ids.where(mask, PAD), mask


@pytest.fixture
def cases(tokens: tuple[Tensor, Tensor]) -> dict[str, Case]:
    """One case per head."""
    return head_cases(*tokens)
