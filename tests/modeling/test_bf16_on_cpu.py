"""What is computed in blocks under bf16 autocast is what full precision computes, but for bf16's rounding."""

import pytest
import torch
from plain_attention import PlainFeedForward
from test_attention import ABLATIONS, MASKS, Case
from torch import Tensor, nn

from hatchery.modeling.bf16_on_cpu import gated_norm
from hatchery.modeling.feed_forward import ltg_feed_forward
from hatchery.modeling.ltg.configuration import LtgBertConfig
from hatchery.modeling.numerics import Dropout

CHOICES = (
    {},
    {"position_head_layout": "bnc"},
    {"position_to_content_index": "key_minus_query"},
    {"attention_probs_dropout_prob": 0.3},
    *ABLATIONS,
)


def errors(results: dict[str, Tensor], expected: dict[str, Tensor]) -> dict[str, float]:
    """Relative errors by name, as norms of whole tensors."""
    assert results.keys() == expected.keys()
    return {name: float((results[name] - expected[name]).norm() / expected[name].norm()) for name in expected}


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("choices", CHOICES, ids=lambda choices: "-".join(map(str, choices.values())) or "final")
@pytest.mark.parametrize("block", [1, 2 * 3 * 63**2, 2**18])
def test_outputs_and_gradients_of_attention_are_those_of_full_precision(monkeypatch, block, choices, mask) -> None:
    """In blocks of one sequence, of two and a rest, and of all; with dropout, the same probabilities are dropped."""
    monkeypatch.setattr("hatchery.modeling.bf16_on_cpu.BLOCK", block)
    case = Case(63, mask, **choices)
    torch.manual_seed(1)
    expected = case.results(case.fast)
    torch.manual_seed(1)
    with torch.autocast("cpu", torch.bfloat16):
        results = case.results(case.fast)
    assert results["output"].dtype == expected["output"].dtype or case.fast.post_layer_norm is None
    assert max(errors(results, expected).values()) < 0.03


def test_a_sequence_without_tokens_stays_finite_and_leaves_no_gradient_in_its_keys() -> None:
    case = Case(17, "padded")
    case.inputs.mask[1] = False
    case.weights[1] = 0
    case.hidden.grad = None
    case.weights[1, 3] = 1
    with torch.autocast("cpu", torch.bfloat16):
        output = case.fast(case.hidden, case.inputs)
        (output * case.weights).sum().backward()
    assert torch.isfinite(output).all() and torch.isfinite(case.hidden.grad).all()
    # One query asks: in full precision it reads all values alike, here none, and in neither do scores learn from it.
    assert not case.hidden.grad[1].any()


@pytest.mark.parametrize("block", [1, 7 * 40, 2**18])
def test_outputs_and_gradients_of_the_feed_forward_block_are_those_of_the_plain_definition(monkeypatch, block) -> None:
    monkeypatch.setattr("hatchery.modeling.bf16_on_cpu.BLOCK", block)
    torch.manual_seed(2)
    sizes = {"hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 1, "num_attention_heads": 3}
    config = LtgBertConfig(vocab_size=9, hidden_dropout_prob=0.0, **sizes)
    module = ltg_feed_forward(config)
    for parameter in module.parameters():
        nn.init.normal_(parameter)
    hidden, weights = torch.randn(3, 5, 24, requires_grad=True), torch.randn(3, 5, 24)

    def results(module: nn.Module) -> dict[str, Tensor]:
        hidden.grad = None
        module.zero_grad()
        output = module(hidden)
        (output * weights).sum().backward()
        gradients = {name: parameter.grad.clone() for name, parameter in module.named_parameters()}
        return {"output": output.detach(), "hidden": hidden.grad.clone(), **gradients}

    expected = results(PlainFeedForward(module, config))
    assert max(errors(results(module), expected).values()) < 1e-5
    with torch.autocast("cpu", torch.bfloat16):
        assert max(errors(results(module), expected).values()) < 0.02


def test_the_gate_is_the_tanh_approximation_of_gelu_also_far_out() -> None:
    gate = torch.cat([torch.linspace(-200, 200, 400), torch.linspace(-6, 6, 400)]).bfloat16()
    projected = torch.stack([torch.ones_like(gate), gate], dim=-1).flatten(0).view(-1, 2)
    # Two numbers per row, of which the norm makes the sign of their difference; a large eps keeps their size.
    pair = torch.cat([projected, projected.new_zeros(800, 2)], dim=-1)[:, [0, 2, 1, 3]].requires_grad_()
    normalised = gated_norm(pair, 1e12)
    normalised.sum().backward()
    exact = nn.functional.gelu(gate.double(), approximate="tanh")
    torch.testing.assert_close(normalised[:, 0].double(), exact / 2 / 1e6, rtol=0.01, atol=1e-10)
    assert torch.isfinite(pair.grad).all()


@pytest.mark.parametrize("shape", [(3, 5), (4, 64)])
def test_what_is_dropped_does_not_depend_on_the_precision(shape) -> None:
    dropped = []
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        torch.manual_seed(4)
        dropped.append(Dropout(0.4)(torch.ones(shape, dtype=dtype)) == 0)
    assert all(torch.equal(dropped[0], other) for other in dropped) and dropped[0].any()
