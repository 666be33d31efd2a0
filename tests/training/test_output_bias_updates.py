"""What optimisers do to the bias of an output layer: no decay, no trust ratio, a step of at most the learning rate."""

import numpy as np
import pytest
import torch
from torch import nn

from hatchery.modeling.count_distributions import smoothed_distribution
from hatchery.modeling.families import model_config
from hatchery.modeling.initialisation import initialise_
from hatchery.modeling.language_model import LanguageModel
from hatchery.modeling.output_bias import log_prior, output_bias, set_output_bias_, vocabulary_head
from hatchery.training.optimizers import build_optimizer, parameter_groups
from hatchery.training.settings import OptimizerSettings

RATE = 0.01
SIZES = {"vocab_size": 50, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 1, "num_attention_heads": 2}


@pytest.fixture(params=["ltg tied", "ltg untied", "roberta tied", "roberta untied", "sentence pairs", "linear"])
def layer(request: pytest.FixtureRequest) -> tuple[nn.Module, torch.Tensor]:
    """A model and the bias of one of its output layers, set to a prior."""
    if request.param == "linear":
        linear = nn.Linear(8, 5)
        model: nn.Module = nn.ModuleDict({"output": linear})
        found = linear
    else:
        family, tied = ("roberta" if "roberta" in request.param else "ltg"), "untied" not in request.param
        fields = {**SIZES, "family": family, "tie_word_embeddings": tied, "sentence_pair_head": True}
        model = LanguageModel(model_config(fields))
        initialise_(model, 1)
        found = model.pair_head.output if request.param == "sentence pairs" else vocabulary_head(model.head)
    bias = output_bias(found)
    set_output_bias_(found, log_prior(smoothed_distribution(np.arange(len(bias)))) - 1)
    return model, bias


@pytest.mark.parametrize("name", ["lamb", "adamw"])
def test_one_step_moves_the_bias_by_at_most_the_learning_rate_and_never_decays_it(layer, name) -> None:
    model, bias = layer
    before = bias.detach().clone()

    def moved_by(gradient: torch.Tensor) -> torch.Tensor:
        optimizer = build_optimizer(model, OptimizerSettings(name, RATE, 0.1, 0.9, 0.98, 1e-6, 2.0))
        for parameter in model.parameters():
            parameter.grad = torch.ones_like(parameter)
        bias.grad = gradient
        optimizer.step()
        return (bias.detach() - before).abs()

    assert torch.all(moved_by(torch.zeros_like(bias)) == 0)
    moved = moved_by(torch.randn(bias.shape, generator=torch.Generator().manual_seed(1)))
    # A trust ratio would move every coordinate by the learning rate times the mean size of the bias.
    assert 0.9 * RATE < moved.max() <= RATE + 1e-6


def test_no_bias_of_an_output_layer_is_decayed(layer) -> None:
    model, bias = layer
    (group,) = [group for group in parameter_groups(model, 0.1) if any(bias is p for p in group["params"])]
    assert group["weight_decay"] == 0
