"""Layers through torch.compile: one code for all of them, no break, the numbers of the plain layers, training only."""

import copy

import pytest
import torch
from torch import nn

from hatchery.modeling.gpt_bert.family import GptBertConfig
from hatchery.modeling.language_model import LanguageModel, initialise_
from hatchery.modeling.layers import EncoderLayer
from hatchery.modeling.ltg.family import LtgBertConfig
from hatchery.training import compilation
from hatchery.training.compilation import COMPILED_FROM_STEPS, chosen_compilation, compile_layers_
from hatchery.training.engine import recompute_layers_
from hatchery.training.settings import RuntimeSettings

CPU, CUDA = torch.device("cpu"), torch.device("cuda")
N_LAYERS = 3


def make_model(family: type = LtgBertConfig, **choices) -> LanguageModel:
    config = family(
        vocab_size=50,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=N_LAYERS,
        num_attention_heads=2,
        attention_probs_dropout_prob=0.0,
        hidden_dropout_prob=0.0,
        **choices,
    )
    model = LanguageModel(config)
    initialise_(model, 1)
    return model


def gradients(model: nn.Module) -> dict[str, torch.Tensor]:
    ids = torch.arange(5, 5 + 2 * 12).view(2, 12)
    mask = torch.arange(12) < torch.tensor([12, 11])[:, None]
    model.zero_grad()
    model(ids, mask, ids.where(ids % 3 == 0, -100)).loss_sum.backward()
    return {name: parameter.grad for name, parameter in model.named_parameters() if parameter.grad is not None}


@pytest.fixture(autouse=True)
def fresh_compiler():
    torch.compiler.reset()
    torch._dynamo.utils.counters.clear()


@pytest.mark.parametrize(
    ("family", "weighting", "n_graphs"),
    [
        (LtgBertConfig, "none", 1),
        # A mixture of one state, of two, and so on, are different functions.
        (LtgBertConfig, "biased", 1 + N_LAYERS),
        # Attention and feed-forward block.
        (GptBertConfig, "unrestricted", 2),
    ],
)
def test_one_graph_without_a_break_serves_all_layers_or_their_blocks(family, weighting, n_graphs):
    model = make_model(family, layer_weighting=weighting)
    expected, graphs = gradients(model), []

    def backend(graph, _):
        graphs.append(graph)
        return graph

    compile_layers_(model, backend)
    found = gradients(model)
    assert not torch._dynamo.utils.counters["graph_break"]
    assert len(graphs) == n_graphs
    assert all(torch.equal(found[name], expected[name]) for name in expected)


def test_evaluation_is_not_compiled():
    model, graphs = make_model().eval(), []
    compile_layers_(model, lambda graph, _: graphs.append(graph) or graph)
    gradients(model)
    assert not graphs


def test_compiled_layers_can_be_computed_again_in_the_backward_pass():
    model = make_model()
    expected = gradients(copy.deepcopy(model))
    compile_layers_(model, "aot_eager")
    recompute_layers_(model)
    found = gradients(model)
    for name, gradient in expected.items():
        torch.testing.assert_close(found[name], gradient, atol=1e-5, rtol=1e-5)


def test_parameters_keep_their_names_and_layers_are_what_they_were_when_the_changes_are_taken_back():
    model = make_model()
    names = list(model.state_dict())
    for module in compile_layers_(model, "eager"):
        del module.forward
    assert list(model.state_dict()) == names
    assert all("forward" not in vars(module) for module in model.modules() if isinstance(module, EncoderLayer))


def test_auto_compiles_long_trainings_on_a_gpu_that_can(monkeypatch):
    monkeypatch.setattr(compilation, "_can_compile_for_gpu", lambda: True)
    auto, many = RuntimeSettings(), COMPILED_FROM_STEPS
    assert chosen_compilation(auto, many, CUDA) == "layers"
    assert chosen_compilation(auto, many - 1, CUDA) == "off"
    assert chosen_compilation(auto, many, CPU) == "off"
    assert chosen_compilation(RuntimeSettings(zero_stage=3), many, CUDA) == "off"
    assert chosen_compilation(RuntimeSettings(compile="off"), many, CUDA) == "off"
    assert chosen_compilation(RuntimeSettings(compile="layers"), 1, CPU) == "layers"
    monkeypatch.setattr(compilation, "_can_compile_for_gpu", lambda: False)
    assert chosen_compilation(auto, many, CUDA) == "off"
