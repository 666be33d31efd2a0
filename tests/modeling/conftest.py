"""Small models and the models measured on the authors' code, for all tests of the modeling library."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from hatchery.modeling.families import model_config
from hatchery.modeling.language_model import LanguageModel, initialise_
from hatchery.modeling.ltg.family import LtgBertConfig
from hatchery.modeling.ltg.published_names import from_published


@dataclass(frozen=True)
class GoldenModel:
    """One of the authors' models with its inputs, in our layout: batch first, mask True at tokens."""

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


@pytest.fixture
def make_model() -> Callable[..., LanguageModel]:
    """A small initialised model without dropout; keyword arguments replace fields of its configuration."""

    def make(seed: int = 1, **changes: Any) -> LanguageModel:
        fields = {
            "vocab_size": 61,
            "hidden_size": 24,
            "intermediate_size": 40,
            "num_hidden_layers": 3,
            "num_attention_heads": 3,
            "max_position_embeddings": 64,
            "position_bucket_size": 8,
            "hidden_dropout_prob": 0.0,
            "attention_probs_dropout_prob": 0.0,
        }
        model = LanguageModel(LtgBertConfig(**{**fields, **changes}))
        initialise_(model, seed)
        return model

    return make


@pytest.fixture
def batch() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Ids, mask and labels [3, 12] of sequences of 12, 9 and 5 tokens."""
    generator = torch.Generator().manual_seed(7)
    ids = torch.randint(6, 61, (3, 12), generator=generator)
    mask = torch.arange(12) < torch.tensor([12, 9, 5])[:, None]
    labelled = (torch.rand(3, 12, generator=generator) < 0.3) & mask
    return ids.where(mask, 3), mask, ids.where(labelled, -100)
