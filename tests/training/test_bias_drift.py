"""The drift of the output bias: where it starts, and what a change of it is worth."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from hatchery.errors import ConfigError
from hatchery.modeling.language_model import LanguageModel
from hatchery.modeling.ltg.configuration import LtgBertConfig
from hatchery.training.output_probes import DRIFT, BiasDrift
from hatchery.training.settings import pretrain_settings


def make_model() -> LanguageModel:
    sizes = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1}
    return LanguageModel(LtgBertConfig(vocab_size=4, **sizes))


def test_a_bias_at_the_unigram_distribution_has_no_divergence_and_moves_by_what_is_added() -> None:
    model, unigram = make_model(), np.array([0.5, 0.25, 0.125, 0.125])
    bias = model.output_layer[1]
    bias.data = torch.from_numpy(np.log(unigram)).float()
    drift, engine = BiasDrift(model, unigram), SimpleNamespace(model=model)
    start = drift.score(engine)
    assert tuple(start) == DRIFT
    assert start["bias_kl_unigram"] == pytest.approx(0, abs=1e-7)
    assert start["bias_norm"] == pytest.approx(float(np.linalg.norm(np.log(unigram))))
    assert start["bias_change"] == start["largest_bias_change"] == 0
    bias.data += torch.tensor([0.3, 0.0, 0.0, -0.4])
    moved = drift.score(engine)
    assert moved["bias_change"] == pytest.approx(0.5) and moved["largest_bias_change"] == pytest.approx(0.4)
    new = np.exp(bias.detach().double().numpy())
    new /= new.sum()
    assert moved["bias_kl_unigram"] == pytest.approx(float((unigram * np.log(unigram / new)).sum()), rel=1e-5)
    assert moved["reverse_bias_kl_unigram"] == pytest.approx(float((new * np.log(new / unigram)).sum()), rel=1e-5)


def test_a_bias_of_zero_is_as_far_as_the_uniform_distribution() -> None:
    unigram = np.array([0.5, 0.25, 0.125, 0.125])
    found = BiasDrift(make_model(), unigram).score(SimpleNamespace(model=make_model()))
    assert found["bias_kl_unigram"] == pytest.approx(math.log(4) + float((unigram * np.log(unigram)).sum()))
    assert found["bias_norm"] == 0


def test_a_drift_without_a_bias_is_refused(pretrain_slice) -> None:
    with pytest.raises(ConfigError, match=r"bias_drift: got True, expected false with output_bias\.kind none"):
        pretrain_settings({**pretrain_slice(output_bias__kind="none"), "bias_drift": True})
