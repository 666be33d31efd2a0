"""Initial weights and refused configurations of the RoBERTa-like family."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from hatchery.errors import ModelError
from hatchery.modeling.initialisation import initialise_
from hatchery.modeling.language_model import LanguageModel
from hatchery.modeling.roberta.configuration import RobertaConfig

SIZES: dict[str, Any] = {
    "vocab_size": 61,
    "embedding_size": 16,
    "hidden_size": 256,
    "intermediate_size": 40,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "extra_vocabulary_rows": 3,
    "tie_word_embeddings": False,
}


def fresh(seed: int = 3, **changes: Any) -> dict[str, Tensor]:
    """Every parameter of an initialised model by its name."""
    model = LanguageModel(RobertaConfig(**{**SIZES, **changes}))
    initialise_(model, seed)
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


def test_published_initialisation_is_xavier_and_leaves_one_norm_at_a_hundredth():
    for name, weight in fresh(initialisation="as_published").items():
        if weight.dim() == 2:
            expected = math.sqrt(2 / sum(weight.shape))
            assert float(weight.std()) == pytest.approx(expected, rel=4 / math.sqrt(2 * weight.numel())), name
            assert abs(float(weight.mean())) < 4 * expected / math.sqrt(weight.numel()), name
        elif "norm" in name and "projection" not in name:
            assert bool((weight == (1.0 if name.endswith("weight") else 0.0)).all()), name
        else:
            torch.testing.assert_close(weight, torch.full_like(weight, 0.01), atol=0, rtol=0, msg=name)
    assert fresh(initialisation="as_published")["encoder.embedding.word_embedding.weight"][1].any()


def test_corrected_initialisation_mends_only_the_constants():
    published, corrected = fresh(initialisation="as_published"), fresh()
    for name, weight in corrected.items():
        if weight.dim() == 2:
            assert torch.equal(weight, published[name]), name
        else:
            is_gain = "norm" in name and name.endswith("weight")
            assert bool((weight == float(is_gain)).all()), name


def test_initial_weights_depend_on_seed_and_name_alone():
    torch.manual_seed(1)
    first = fresh()
    torch.manual_seed(2)
    again, shallower, other = fresh(), fresh(num_hidden_layers=2), fresh(seed=4)
    assert all(torch.equal(first[name], weight) for name, weight in again.items())
    assert all(torch.equal(first[name], weight) for name, weight in shallower.items())
    assert not torch.equal(first["head.vocabulary_weight"], other["head.vocabulary_weight"])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_attention_heads": 5}, r"model.hidden_size: got 256, expected a multiple of num_attention_heads \(5\)"),
        ({"tie_word_embeddings": True}, r"model.embedding_size: got 16, expected hidden_size \(256\) or null while"),
        ({"embedding_size": 0}, "model.embedding_size: got 0, expected 1 or more"),
        ({"extra_vocabulary_rows": -1}, "model.extra_vocabulary_rows: got -1, expected 0 or more"),
        ({"pad_token_id": 61}, r"model.pad_token_id: got 61, expected an id below vocab_size \(61\)"),
        ({"max_position_embeddings": 0}, "model.max_position_embeddings: got 0, expected 1 or more"),
        ({"hidden_dropout_prob": 1.0}, "model.hidden_dropout_prob: got 1.0"),
        ({"layer_norm_eps": 0.0}, "model.layer_norm_eps: got 0.0"),
    ],
)
def test_an_impossible_configuration_is_refused_with_key_and_value(changes, message):
    with pytest.raises(ModelError, match=message):
        RobertaConfig(**{**SIZES, **changes})
