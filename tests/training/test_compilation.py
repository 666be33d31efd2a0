"""torch.compile of layers: one graph for all layers or their blocks, no graph break, the numbers of plain layers."""

import copy

import pytest
import torch
from torch import nn

from hatchery.modeling.attention import TokenCache
from hatchery.modeling.gpt_bert.config import GptBertConfig
from hatchery.modeling.language_model import LanguageModel, initialise_
from hatchery.modeling.layers import EncoderLayer
from hatchery.modeling.ltg.config import LtgBertConfig
from hatchery.training import compilation
from hatchery.training.compilation import (
    COMPILED_FROM_STEPS,
    chosen_compilation,
    compilation_of,
    compilation_of_run,
    compile_layers_,
)
from hatchery.training.engine import recompute_layers_

CPU, CUDA = torch.device("cpu"), torch.device("cuda")
N_LAYERS = 3


def make_model(family: type = LtgBertConfig, **choices) -> LanguageModel:
    sizes = {"vocab_size": 50, "hidden_size": 32, "intermediate_size": 48, "num_attention_heads": 2}
    config = family(
        attention_probs_dropout_prob=0.0,
        hidden_dropout_prob=0.0,
        **{**sizes, "num_hidden_layers": N_LAYERS, **choices},
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
        # Mixtures of one state, of two states and so on are different functions.
        (LtgBertConfig, "biased", 1 + N_LAYERS),
        # Attention and feed-forward block have one graph each.
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


def test_auto_compiles_what_is_long_on_a_gpu_that_can(monkeypatch):
    monkeypatch.setattr(compilation, "_can_compile_for_gpu", lambda: True)
    assert chosen_compilation("auto", CUDA, True) == "layers"
    assert chosen_compilation("auto", CUDA, False) == "off"
    assert chosen_compilation("auto", CPU, True) == "off"
    assert chosen_compilation("off", CUDA, True) == "off"
    assert chosen_compilation("layers", CPU, False) == "layers"
    monkeypatch.setattr(compilation, "_can_compile_for_gpu", lambda: False)
    assert chosen_compilation("auto", CUDA, True) == "off"


@pytest.mark.parametrize(
    ("steps", "zero_stage", "pays"),
    [
        (COMPILED_FROM_STEPS, 0, True),
        (COMPILED_FROM_STEPS - 1, 0, False),
        (COMPILED_FROM_STEPS, 2, True),
        (COMPILED_FROM_STEPS, 3, False),
    ],
)
def test_a_pretraining_pays_from_some_hundred_steps_on_where_layers_are_whole(monkeypatch, steps, zero_stage, pays):
    monkeypatch.setattr(compilation, "_can_compile_for_gpu", lambda: True)
    assert compilation_of_run("auto", CUDA, steps, zero_stage) == ("layers" if pays else "off")


@pytest.mark.parametrize(
    ("family", "weighting", "layers", "most_graphs"),
    [
        # One graph serves most layers, and one the last layer, which computes only requested tokens.
        (LtgBertConfig, "none", N_LAYERS, 2),
        (LtgBertConfig, "biased", 2, 2 + 2),
        (GptBertConfig, "unrestricted", N_LAYERS, 4),
    ],
)
def test_evaluated_models_are_compiled_once_for_all_lengths_and_copies(family, weighting, layers, most_graphs):
    plain, graphs = make_model(family, layer_weighting=weighting, num_hidden_layers=layers).eval(), []
    model = copy.deepcopy(plain)
    assert compilation_of(model) == "off"

    def backend(graph, _):
        graphs.append(graph)
        return graph

    compile_layers_(model, backend, evaluated=True, any_length=True)
    assert compilation_of(model) == "layers" and not compile_layers_(model), "once"
    # The copy represents a model with another seed.
    other = copy.deepcopy(plain)
    compile_layers_(other, backend, evaluated=True, any_length=True)
    with torch.inference_mode():
        for batch, length in ((3, 12), (2, 17), (5, 9), (4, 30)):
            ids, rows = torch.arange(batch * length).view(batch, length) % 40 + 5, torch.arange(batch) * length + 3
            states = [one.encoder.hidden_at(ids, None, rows, few=True) for one in (model, other, plain)]
            assert torch.equal(states[0], states[2]) and torch.equal(states[1], states[2])
    assert len(graphs) <= most_graphs and not torch._dynamo.utils.counters["graph_break"]
    model.train()
    gradients(model)
    assert len(graphs) <= most_graphs, "its training is not compiled"


def test_texts_that_go_on_from_what_they_share_are_compiled_too():
    plain, graphs = make_model().eval(), []
    model = copy.deepcopy(plain)
    compile_layers_(model, lambda graph, _: graphs.append(graph) or graph, evaluated=True, any_length=True)
    with torch.inference_mode():
        for batch, length in ((3, 12), (2, 17), (4, 9)):
            ids = torch.arange(batch * length).view(batch, length) % 40 + 5
            states = []
            for one in (model, plain):
                caches = [TokenCache() for _ in range(N_LAYERS)]
                one.encoder.states_behind(ids[:, :5], None, caches, 0)
                states.append(one.encoder.states_behind(ids, None, caches, 5)[-1])
            assert torch.equal(*states)
    # One graph serves the shared tokens. The following tokens need two, because only the first layer's input is a view.
    assert len(graphs) <= 3 and not torch._dynamo.utils.counters["graph_break"]
