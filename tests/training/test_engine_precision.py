"""The engine in half precision: bf16 is close to fp32 and casts weights once per update, fp16 scales its loss."""

from typing import Any

import pytest
import torch
from test_engine import CPU, FP32, OPTIMIZER, cut, make_batch, make_model, one_step, train_with_engine
from torch.utils._python_dispatch import TorchDispatchMode

from hatchery.tokenization.special_tokens import UNLABELLED
from hatchery.training.engine import Engine
from hatchery.training.optimizers import build_optimizer
from hatchery.training.precision import LossScaler, Precision, resolve_precision
from hatchery.training.topology import SINGLE_PROCESS

pytestmark = pytest.mark.usefixtures("single_process")


def test_bf16_autocast_keeps_parameters_and_optimizer_in_fp32_and_comes_close() -> None:
    expected, _ = train_with_engine(6)
    model, _ = train_with_engine(6, precision="bf16")
    difference = 0.0
    for parameter, other in zip(expected.parameters(), model.parameters(), strict=True):
        assert other.dtype == torch.float32
        difference = max(difference, float((parameter - other).detach().abs().max()))
    assert 0 < difference < 0.05


def losses_of(precision: str, steps: int) -> list[float]:
    """Return the mean loss of every step of a small model with dropout, on three batches in turn."""
    model, losses = make_model(dropout=0.1), []
    optimizer = build_optimizer(model, OPTIMIZER)
    with Engine(model, optimizer, 0.5, resolve_precision(precision, CPU), CPU, SINGLE_PROCESS) as engine:
        for step in range(steps):
            batch = make_batch(6, step % 3)
            labelled = int((batch["labels"] != UNLABELLED).sum())
            # At twice this rate the model memorises the batches, and rounding differences grow to several percent.
            engine.begin_step(3, step, learning_rate=0.01)
            total = 0.0
            for piece in cut(batch, 3):
                loss = engine.forward(piece).loss_sum / labelled
                engine.backward(loss)
                total += loss.item()
            engine.step()
            losses.append(total)
    return losses


def test_the_losses_of_30_steps_in_bf16_are_those_of_fp32_to_one_hundredth() -> None:
    expected = losses_of("fp32", 30)
    assert expected[-1] < 0.8 * expected[0], "nothing was learnt"
    assert losses_of("bf16", 30) == pytest.approx(expected, rel=0.01)


class CountsCasts(TorchDispatchMode):
    """Counts the tensors of a shape that are cast to bf16."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.shape, self.number = shape, 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if func is torch.ops.aten._to_copy.default and result.dtype == torch.bfloat16:
            self.number += tuple(result.shape) == self.shape
        return result


def test_weights_are_cast_to_bf16_once_per_update_and_anew_after_it() -> None:
    model = make_model()
    optimizer, precision = build_optimizer(model, OPTIMIZER), resolve_precision("bf16", CPU)
    # Only the feed-forward blocks have matrices of this shape: one in each of two layers.
    with (
        Engine(model, optimizer, 0.5, precision, CPU, SINGLE_PROCESS) as engine,
        CountsCasts((96, 32)) as casts,
    ):
        for step, pieces in enumerate((1, 3)):
            engine.begin_step(3, step, learning_rate=0.02)
            for piece in cut(make_batch(6, step), 6 // pieces):
                engine.backward(engine.forward(piece).loss_sum)
            engine.step()
            assert casts.number == 2 * (step + 1)
        assert not torch.is_autocast_enabled("cpu")
        # No step is open, so evaluation casts the current weights.
        engine.evaluate(make_batch(6, 0))
        assert casts.number > 4


def test_fp16_scales_the_loss_and_takes_the_scale_out_of_the_gradients() -> None:
    plain, scaled = make_model(), make_model()
    scaler = LossScaler(2.0**10)
    # Use fp32 arithmetic with the scaler, to test scaling without the rounding of fp16.
    precisions = (FP32, Precision("fp32", scaler))
    updates = [
        one_step(
            Engine(model, build_optimizer(model, OPTIMIZER), 0.5, precision, CPU, SINGLE_PROCESS), make_batch(6, 0)
        )
        for model, precision in zip((plain, scaled), precisions, strict=True)
    ]
    assert updates[0].gradient_norm.item() == pytest.approx(updates[1].gradient_norm.item(), rel=1e-6)
    assert (updates[0].loss_scale, updates[1].loss_scale) == (None, 2.0**10) and not updates[1].skipped
    for one, other in zip(plain.parameters(), scaled.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-7)


def test_an_overflow_in_fp16_changes_neither_model_nor_optimizer_and_halves_the_scale() -> None:
    model, scaler = make_model(), LossScaler(2.0**127)
    before = [parameter.detach().clone() for parameter in model.parameters()]
    optimizer = build_optimizer(model, OPTIMIZER)
    update = one_step(Engine(model, optimizer, 0.5, Precision("fp16", scaler), CPU, SINGLE_PROCESS), make_batch(6, 0))
    assert update.skipped and scaler.scale == 2.0**126
    assert all(torch.equal(old, new) for old, new in zip(before, model.parameters(), strict=True))
    assert not optimizer.state
