"""Encoders of all kinds, and a small batch for every head of the registry."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from torch import Tensor

from hatchery.modeling.families import model_config
from hatchery.modeling.heads.registry import HEADS, HeadContext, build_task_model
from hatchery.modeling.heads.task_model import TaskModel
from hatchery.modeling.initialisation import initialise_
from hatchery.modeling.language_model import LanguageModel
from hatchery.modeling.layered_encoder import LayeredEncoder

PAD = 1
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


@dataclass(frozen=True)
class Case:
    """Inputs and labels that fit a head, and the shapes of its scores and predictions."""

    inputs: dict[str, Tensor]
    labels: Tensor
    scores: tuple[int, ...]
    predictions: tuple[int, ...]

    def padded(self, more: int) -> "Case":
        """The same with `more` positions of padding behind every sequence."""
        padded = dict(self.inputs)
        for name in ("input_ids", "attention_mask", "candidates"):
            if name in padded:
                padded[name] = torch.nn.functional.pad(padded[name], (0, more), value=PAD if name == "input_ids" else 0)
        return replace(self, inputs=padded)


@pytest.fixture
def make_encoder() -> Callable[..., LayeredEncoder]:
    """The initialised encoder of one of ENCODERS; keyword arguments replace fields of its configuration."""

    def make(kind: str = "ltg", **changes: Any) -> LayeredEncoder:
        model = LanguageModel(model_config({**SIZES, **ENCODERS[kind], **changes}))
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
    ids, mask = tokens
    plain = {"input_ids": ids, "attention_mask": mask}
    choices = {"input_ids": torch.stack([ids, ids.flip(0)], 1), "attention_mask": torch.stack([mask, mask.flip(0)], 1)}
    word_labels = (ids % 3).where(mask, -100)
    spans = torch.tensor([[[1, 4]], [[8, 11]], [[0, 2]], [[2, 5]]])
    targets = {"spans": spans, "sentences": torch.tensor([0, 0, 1, 2])}
    marked = {"spans": torch.tensor([[[1, 4], [8, 11]], [[0, 2], [3, 4]], [[2, 5], [4, 5]]])}
    multi_hot = torch.tensor([[1, 0, 0], [0, 1, 1], [0, 0, 0], [0, 0, 1]])
    return {
        "sequence_classification": Case(plain, torch.tensor([2, 0, 1]), (3, 3), (3,)),
        "regression": Case(plain, torch.tensor([0.5, 4.0, 2.25]), (3, 1), (3,)),
        "multiple_choice": Case(choices, torch.tensor([1, 0, 1]), (3, 2), (3,)),
        "marked_words_classification": Case({**plain, **marked}, torch.tensor([2, 0, 1]), (3, 3), (3,)),
        "token_classification": Case(plain, word_labels, (3, 12, 3), (3, 12)),
        "extractive_span": Case(plain, torch.tensor([[3, 5], [1, 2], [-100, -100]]), (3, 12, 2), (3, 2)),
        "span_classification": Case({**plain, **targets}, multi_hot, (4, 3), (4, 3)),
    }
