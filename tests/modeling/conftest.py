"""Small models of all families, a small batch for every head, and golden models measured on the authors' code."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from head_cases import PAD, Case, head_cases
from torch import Tensor

from hatchery.modeling.encoder import LayeredEncoder
from hatchery.modeling.families import model_config
from hatchery.modeling.heads.registry import HEADS, build_task_model
from hatchery.modeling.heads.task_model import HeadContext, TaskModel
from hatchery.modeling.language_model import LanguageModel, build_language_model, initialise_
from hatchery.modeling.ltg.published_names import from_published


@dataclass(frozen=True)
class GoldenModel:
    """A golden model of the authors and its inputs, in our layout: batch first, mask True at tokens."""

    model: LanguageModel
    input_ids: torch.Tensor
    attention_mask: torch.Tensor
    labels: torch.Tensor
    arrays: dict[str, np.ndarray]
    facts: dict[str, Any]


@pytest.fixture(scope="session")
def load_golden(golden_directory: Path) -> Callable[..., GoldenModel]:
    def load(path: str, **choices: str) -> GoldenModel:
        arrays = dict(np.load(golden_directory / f"{path}.npz"))
        facts = json.loads((golden_directory / f"{path}.json").read_text())
        config = model_config({**facts["config"], **choices})
        model = LanguageModel(config)
        published = {k.removeprefix("state."): torch.from_numpy(v) for k, v in arrays.items() if k.startswith("state.")}
        model.load_state_dict(from_published(published))
        return GoldenModel(
            model=model,
            input_ids=torch.from_numpy(arrays["input_ids"]).t().contiguous(),
            attention_mask=~torch.from_numpy(arrays["attention_mask"]),
            labels=torch.from_numpy(arrays["labels"]).t().contiguous(),
            arrays=arrays,
            facts=facts,
        )

    return load


SIZES: dict[str, Any] = {
    "vocab_size": 61,
    "hidden_size": 24,
    "intermediate_size": 40,
    "num_hidden_layers": 3,
    "num_attention_heads": 3,
    "max_position_embeddings": 64,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}


@pytest.fixture
def make_model() -> Callable[..., LanguageModel]:
    """A small initialised model without dropout; keyword arguments replace fields of its configuration.

    `disturbed` is the standard deviation of the noise added to every parameter, so that no parameter keeps a constant
    initial value.
    """

    def make(seed: int = 1, *, causal: bool = False, disturbed: float = 0.0, **changes: Any) -> LanguageModel:
        own = {"position_bucket_size": 8} if changes.get("family", "ltg") in ("ltg", "gpt_bert") else {}
        model = build_language_model(model_config({**SIZES, **own, **changes}), causal=causal)
        initialise_(model, seed)
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for parameter in model.parameters() if disturbed else ():
                parameter += disturbed * torch.randn(parameter.shape, generator=generator)
        return model

    return make


ENCODERS: dict[str, dict[str, Any]] = {
    "ltg": {},
    "elc": {"layer_weighting": "weighted_output"},
    "causal": {"causal": True},
    "gpt_bert": {"family": "gpt_bert"},
    "roberta": {"family": "roberta", "embedding_size": 16, "tie_word_embeddings": False},
    "modern": {"family": "modern", "value_residual": True, "head_gate": True, "unet_skips": True},
}


@pytest.fixture
def batch() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Ids, mask and labels [3, 12] of sequences of 12, 9 and 5 tokens."""
    generator = torch.Generator().manual_seed(7)
    ids = torch.randint(6, 61, (3, 12), generator=generator)
    mask = torch.arange(12) < torch.tensor([12, 9, 5])[:, None]
    labelled = (torch.rand(3, 12, generator=generator) < 0.3) & mask
    return ids.where(mask, 3), mask, ids.where(labelled, -100)


@pytest.fixture
def make_encoder(make_model: Callable[..., LanguageModel]) -> Callable[..., LayeredEncoder]:
    """The initialised encoder of one kind of ENCODERS; keyword arguments replace the kind's values."""
    return lambda kind="ltg", **changes: make_model(**{**ENCODERS[kind], **changes}).encoder


@pytest.fixture
def make_head(make_encoder: Callable[..., LayeredEncoder]) -> Callable[..., TaskModel]:
    """A head of the registry on a new encoder."""

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
