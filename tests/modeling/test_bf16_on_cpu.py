"""What is computed in blocks under bf16 autocast is what full precision computes, but for bf16's rounding."""

import pytest
import torch
from plain_attention import PlainFeedForward
from test_attention import ABLATIONS, MASKS, Case
from torch import Tensor, nn

from hatchery.modeling.bf16_on_cpu import cross_entropy_in_blocks, gelu_and_slope
from hatchery.modeling.ltg.encoder import ltg_feed_forward
from hatchery.modeling.ltg.family import LtgBertConfig
from hatchery.modeling.norm_and_dropout import Dropout

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


def test_gelu_and_its_slope_are_the_tanh_approximation_at_every_number_of_bf16() -> None:
    numbers = torch.arange(2**16, dtype=torch.int32).to(torch.uint16).view(torch.bfloat16)
    # Its square overflows farther out, where the approximation is the number itself or 0.
    near = numbers.abs() < 1e18
    points = numbers[near].double().requires_grad_()
    exact = nn.functional.gelu(points, approximate="tanh")
    (expected_slope,) = torch.autograd.grad(exact.sum(), points)
    gelu, slope = gelu_and_slope()
    # The sum 1 + tanh loses what sigmoid keeps, where it is 0 to the precision of the sum.
    torch.testing.assert_close(gelu[near].double(), exact, rtol=2**-8, atol=1e-15)
    torch.testing.assert_close(slope[near].double(), expected_slope, rtol=2**-8, atol=1e-13)
    far = numbers.isfinite() & ~near
    assert torch.equal(gelu[far], numbers[far].clamp(min=0)) and torch.equal(slope[far], (numbers[far] > 0).bfloat16())


@pytest.mark.parametrize("block", [1, 3 * 50, 2**19])
def test_losses_and_gradients_are_those_of_the_same_logits_in_full_precision(monkeypatch, block) -> None:
    """Also where a target is improbable beyond what fp32 holds, and where two logits are the greatest."""
    monkeypatch.setattr("hatchery.modeling.bf16_on_cpu.BLOCK", block)
    torch.manual_seed(2)
    logits, targets = torch.randn(20, 50).bfloat16(), torch.randint(50, (20,))
    logits[0, 7], targets[0] = 300, 8
    logits[1, [3, 9]], targets[1] = 20, 9
    logits[2, [3, 9]], targets[2] = 20, 3
    logits.requires_grad_()
    loss, n_correct = cross_entropy_in_blocks(logits, targets)
    (gradient,) = torch.autograd.grad(loss / 7, logits)
    full = logits.detach().float().requires_grad_()
    expected = nn.functional.cross_entropy(full, targets, reduction="sum")
    (expected_gradient,) = torch.autograd.grad(expected / 7, full)
    assert loss.dtype == torch.float32 and float(loss) == pytest.approx(float(expected), rel=1e-6)
    assert int(n_correct) == int((full.argmax(dim=1) == targets).sum()) >= 1
    # Twice rounded to bf16: before and after the factor of the sum.
    torch.testing.assert_close(gradient.float(), expected_gradient, rtol=2**-7, atol=1e-12)


def test_the_loss_of_no_positions_is_zero_and_teaches_nothing() -> None:
    hidden = torch.randn(0, 4, dtype=torch.bfloat16, requires_grad=True)
    loss, n_correct = cross_entropy_in_blocks(hidden, torch.empty(0, dtype=torch.int64))
    loss.backward()
    assert (float(loss), int(n_correct), hidden.grad.shape) == (0, 0, (0, 4))


@pytest.mark.parametrize("shape", [(3, 5), (4, 64)])
def test_what_is_dropped_does_not_depend_on_the_precision(shape) -> None:
    dropped = []
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        torch.manual_seed(4)
        dropped.append(Dropout(0.4)(torch.ones(shape, dtype=dtype)) == 0)
    assert all(torch.equal(dropped[0], other) for other in dropped) and dropped[0].any()
