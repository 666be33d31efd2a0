"""fp16 with loss scaling: the scaler's decisions, skipped steps that change nothing, and a tiny model that learns."""

import copy
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed
from torch import Tensor, nn

from hatchery.errors import CheckpointError, TrainingError
from hatchery.modeling.families import model_config
from hatchery.modeling.language_model import LanguageModel, initialise_
from hatchery.training.optimizer_settings import OptimizerSettings
from hatchery.training.optimizers import build_optimizer
from hatchery.training.precision import InPrecision, LossScaler, Precision, resolve_precision, slow_arithmetic

CPU = torch.device("cpu")
SIZES = {"vocab_size": 40, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2}
INFINITE, NO_NUMBER = float("inf"), float("nan")
OPTIMIZERS = ["lamb", "adamw"]


def tiny_model(seed: int = 1) -> LanguageModel:
    model = LanguageModel(model_config({**SIZES, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}))
    initialise_(model, seed)
    return model


def optimizer_of(model: nn.Module, name: str) -> torch.optim.Optimizer:
    return build_optimizer(model, OptimizerSettings(name))


def batches(n: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield batches of ascending sequences in which every third position is masked (id 1) and labelled."""
    generator = torch.Generator().manual_seed(5)
    for _ in range(n):
        ids = (torch.randint(2, 40, (8, 1), generator=generator) + torch.arange(12)) % 38 + 2
        asked = (torch.arange(12) % 3 == 1).expand_as(ids)
        yield ids.masked_fill(asked, 1), ids.masked_fill(~asked, -100)


def train(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    precision: Precision,
    inputs: list[tuple[Tensor, Tensor]],
    spoil: Callable[[int, nn.Module], None] = lambda step, model: None,
) -> tuple[list[float], list[bool]]:
    """Train with the engine's order of calls; return the losses, and whether each step was taken."""
    engine = InPrecision(model, precision, "cpu")
    losses, taken = [], []
    for step, (ids, labels) in enumerate(inputs):
        loss = engine(ids, None, labels).loss_sum / 32
        precision.scaled(loss).backward()
        spoil(step, model)
        taken.append(precision.unscale_(model.parameters()))
        if taken[-1]:
            nn.utils.clip_grad_norm_(model.parameters(), 2.0)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses, taken


def everything_in(model: nn.Module, optimizer: torch.optim.Optimizer) -> list[Tensor]:
    """Return copies of all parameters and of their optimiser states."""
    tensors = []
    for parameter in model.parameters():
        tensors += [parameter, *optimizer.state.get(parameter, {}).values()]
    return [tensor.detach().clone() for tensor in tensors]


def assert_same_bits(left: list[Tensor], right: list[Tensor]) -> None:
    assert len(left) == len(right)
    assert all(torch.equal(one, other) for one, other in zip(left, right, strict=True))


@pytest.mark.parametrize(("requested", "dtype"), [("fp32", None), ("bf16", torch.bfloat16), ("fp16", torch.float16)])
def test_the_name_decides_the_type_that_the_model_computes_in(requested, dtype) -> None:
    precision = resolve_precision(requested, CPU)
    seen = []
    linear = nn.Linear(4, 4)
    linear.register_forward_hook(lambda module, inputs, output: seen.append(output.dtype))
    output = InPrecision(linear, precision, "cpu")(torch.ones(2, 4))
    assert seen == [dtype or torch.float32] and not torch.is_autocast_enabled("cpu")
    assert linear.weight.dtype == torch.float32
    assert precision.name == requested and (precision.scaler is not None) == (requested == "fp16")
    loss = output.float().sum()
    assert precision.scaled(loss).item() == loss.item() * (65_536 if requested == "fp16" else 1)


def test_auto_is_full_precision_on_the_cpu() -> None:
    assert resolve_precision("auto", CPU).name == "fp32"


@pytest.mark.parametrize(("supported", "name"), [(True, "bf16"), (False, "fp32")])
def test_auto_on_a_gpu_is_bf16_or_full_precision_and_never_fp16(monkeypatch, supported, name) -> None:
    # PyTorch emulates bf16 on every GPU.
    monkeypatch.setattr(
        torch.cuda, "is_bf16_supported", lambda including_emulation=True: including_emulation or supported
    )
    assert resolve_precision("auto", torch.device("cuda", 0)).name == name


@pytest.mark.parametrize("capability", ["avx512_bf16", "amx_bf16", "avx2"])
def test_bf16_on_a_processor_without_its_instructions_is_said_in_one_line(monkeypatch, capability) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_bf16": False, capability: True})
    message = slow_arithmetic(Precision("bf16"), CPU)
    assert (message is None) == ("bf16" in capability)
    assert message is None or ("set precision: fp32" in message and "\n" not in message)
    assert slow_arithmetic(Precision("fp32"), CPU) is slow_arithmetic(Precision("bf16"), torch.device("cuda")) is None


@pytest.mark.parametrize("name", ["fp32", "bf16"])
def test_without_fp16_gradients_are_not_touched_and_a_checkpoint_holds_nothing_more(name: str) -> None:
    precision = resolve_precision(name, CPU)
    parameter = nn.Parameter(torch.zeros(2))
    parameter.grad = torch.tensor([INFINITE, 3.0])
    assert precision.unscale_([parameter])
    assert parameter.grad.tolist() == [INFINITE, 3.0]
    assert precision.state() == {}
    precision.load({})


def test_the_scale_follows_that_of_torch_through_overflows_and_growth() -> None:
    ours = LossScaler(2.0**10, growth_interval=3)
    theirs = torch.amp.GradScaler("cpu", init_scale=2.0**10, growth_interval=3)
    parameter = nn.Parameter(torch.tensor([1.0, 2.0]))
    twin = nn.Parameter(parameter.detach().clone())
    optimizer = torch.optim.SGD([twin], lr=0.1)
    bad_steps = {0, 1, 4, 8, 15, 16, 26}
    for step in range(40):
        spoiled = (INFINITE, NO_NUMBER)[step % 2] if step in bad_steps else 1.0
        ours.scaled((parameter * step).sum()).backward()
        theirs.scale((twin * step).sum()).backward()
        parameter.grad[1] *= spoiled
        twin.grad[1] *= spoiled
        finite = ours.unscale_([parameter])
        theirs.unscale_(optimizer)
        assert finite == (step not in bad_steps)
        if finite:
            assert torch.equal(parameter.grad, twin.grad) and parameter.grad.tolist() == [step, step]
        theirs.step(optimizer)
        theirs.update()
        assert ours.scale == theirs.get_scale(), step
        assert ours.good_steps == theirs.state_dict()["_growth_tracker"], step
        parameter.grad = twin.grad = None
    assert ours.scale > 2.0**10


def test_2000_good_steps_double_the_scale_and_one_bad_step_halves_it_and_starts_the_count_anew() -> None:
    scaler, parameter = LossScaler(), nn.Parameter(torch.zeros(1))
    assert scaler.scale == 65_536

    def step(gradient: float) -> bool:
        parameter.grad = torch.tensor([gradient])
        return scaler.unscale_([parameter])

    assert all(step(1.0) for _ in range(1999)) and scaler.scale == 65_536
    assert step(1.0) and scaler.scale == 131_072
    assert all(step(1.0) for _ in range(1500))
    assert not step(-INFINITE) and scaler.scale == 65_536
    assert all(step(1.0) for _ in range(1999)) and scaler.scale == 65_536
    assert step(1.0) and scaler.scale == 131_072


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("spoiled", [INFINITE, NO_NUMBER])
def test_a_skipped_step_changes_neither_parameters_nor_optimiser_state(name: str, spoiled: float) -> None:
    model, precision = tiny_model(), Precision("fp16", LossScaler(256.0))
    optimizer = optimizer_of(model, name)
    train(model, optimizer, precision, list(batches(3)))
    before = everything_in(model, optimizer)

    def spoil(step: int, model: nn.Module) -> None:
        # One overflow in one parameter is enough to skip the step.
        model.head.linear.bias.grad[3] = spoiled

    _, taken = train(model, optimizer, precision, list(batches(2)), spoil)
    assert taken == [False, False] and precision.scaler.scale == 64
    assert_same_bits(before, everything_in(model, optimizer))


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_scaling_itself_rounds_nothing(name: str) -> None:
    """Scaled fp32 does not overflow here, so training with and without a scale is equal bit by bit."""
    results = []
    for precision in (Precision("fp32"), Precision("fp32", LossScaler(1024.0, growth_interval=2))):
        model = tiny_model()
        optimizer = optimizer_of(model, name)
        train(model, optimizer, precision, list(batches(6)))
        results.append(everything_in(model, optimizer))
    assert_same_bits(*results)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_fp16_follows_full_precision_and_learns_after_an_injected_overflow(name: str) -> None:
    inputs = list(batches(60))
    reference = tiny_model()
    expected, _ = train(reference, optimizer_of(reference, name), Precision("fp32"), inputs)

    def overflow(step: int, model: nn.Module) -> None:
        if step == 20:
            model.encoder.word_embedding.weight.grad[7, 7] = INFINITE

    model, precision = tiny_model(), Precision("fp16", LossScaler(256.0))
    losses, taken = train(model, optimizer_of(model, name), precision, inputs, overflow)
    assert [step for step, was_taken in enumerate(taken) if not was_taken] == [20] and precision.scaler.scale == 128
    assert losses[:20] == pytest.approx(expected[:20], rel=0.02)
    assert expected[-1] < expected[0] - 1
    assert sum(losses[-10:]) == pytest.approx(sum(expected[-10:]), rel=0.1)


def test_a_scale_that_is_too_large_is_found_by_halving_and_training_goes_on() -> None:
    model, precision = tiny_model(), Precision("fp16", LossScaler(2.0**30))
    _, taken = train(model, optimizer_of(model, "lamb"), precision, list(batches(40)))
    first = taken.index(True)
    assert 5 < first < 30 and precision.scaler.scale <= 2.0 ** (30 - first)
    assert sum(taken[first:]) >= len(taken[first:]) - 2
    assert all(torch.isfinite(parameter).all() for parameter in model.parameters())


def test_a_gradient_that_vanishes_in_fp16_survives_with_scaling() -> None:
    weight = nn.Parameter(torch.ones(4, 4))
    small = 2.0**-26
    for precision in (Precision("fp16"), resolve_precision("fp16", CPU)):
        with precision.autocast("cpu"):
            output = nn.functional.linear(torch.ones(1, 4), weight)
        precision.scaled(output.float().sum() * small).backward()
        precision.unscale_([weight])
        expected = 0.0 if precision.scaler is None else small
        assert weight.grad.unique().tolist() == [expected]
        weight.grad = None


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_resumed_run_is_the_uninterrupted_one_bit_by_bit(name: str, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    inputs = list(batches(14))

    def overflow(step: int, model: nn.Module) -> None:
        if step % 5 == 2:
            model.head.vocabulary_bias.grad[0] = NO_NUMBER

    def fresh() -> Precision:
        return Precision("fp16", LossScaler(512.0, growth_interval=3))

    model, precision = tiny_model(), fresh()
    optimizer = optimizer_of(model, name)
    train(model, optimizer, precision, inputs[:9], overflow)
    save_file(precision.state(), tmp_path / "extra.safetensors")
    resumed_model = copy.deepcopy(model)
    resumed_optimizer = optimizer_of(resumed_model, name)
    for old, new in zip(model.parameters(), resumed_model.parameters(), strict=True):
        resumed_optimizer.state[new] = {key: value.clone() for key, value in optimizer.state[old].items()}

    resumed = fresh()
    resumed.load({"other": torch.zeros(3), **load_file(tmp_path / "extra.safetensors")})
    assert resumed.scaler.good_steps == precision.scaler.good_steps > 0 and resumed.scaler.scale != 512
    one = train(model, optimizer, precision, inputs[9:], overflow)
    other = train(resumed_model, resumed_optimizer, resumed, inputs[9:], overflow)
    assert one == other and False in one[1]
    assert_same_bits(everything_in(model, optimizer), everything_in(resumed_model, resumed_optimizer))
    assert resumed.state() == precision.state()


def test_a_checkpoint_without_the_scaler_is_refused_in_fp16() -> None:
    with pytest.raises(
        CheckpointError, match=r"contains no loss_scaler\.scale, expected the checkpoint of a run in fp16"
    ):
        resolve_precision("fp16", CPU).load({"something.else": torch.zeros(1)})


def test_a_diverged_model_ends_the_run_instead_of_halving_for_ever() -> None:
    scaler, parameter = LossScaler(), nn.Parameter(torch.zeros(1))
    with pytest.raises(TrainingError, match="fp16 gradients are not finite although the loss is scaled by") as raised:
        for _ in range(31):
            parameter.grad = torch.tensor([NO_NUMBER])
            scaler.unscale_([parameter])
    assert "\n" not in str(raised.value) and scaler.scale == 2.0**-14


def test_processes_that_sum_their_gradients_skip_the_same_steps() -> None:
    """Each process of the group is a thread."""
    store = torch.distributed.HashStore()

    def steps_of(rank: int) -> list[Any]:
        group = torch.distributed.ProcessGroupGloo(store, rank, 2, timedelta(seconds=60))
        scaler, parameter = LossScaler(16.0), nn.Parameter(torch.zeros(2))
        # In the second step only process 1 overflows; in the third step both processes overflow, with opposite signs.
        results = []
        for own in ([1.0, 3.0], [INFINITE if rank else 1.0, 1.0], [-INFINITE if rank else INFINITE, 1.0], [0.5, 0.5]):
            scaler.scaled((parameter * torch.tensor(own)).sum()).backward()
            assert parameter.grad is not None
            group.allreduce([parameter.grad]).wait()
            taken = scaler.unscale_([parameter])
            results.append((taken, scaler.scale, parameter.grad.tolist() if taken else None))
            parameter.grad = None
        return results

    with ThreadPoolExecutor(2) as threads:
        one, other = threads.map(steps_of, range(2))
    assert one == other == [(True, 16.0, [2.0, 6.0]), (False, 8.0, None), (False, 4.0, None), (True, 4.0, [1.0, 1.0])]
