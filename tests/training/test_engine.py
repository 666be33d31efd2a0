"""The engine computes the same numbers as a plain PyTorch loop, with any micro-batches."""

from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from hatchery.modeling.attention import AttentionInputs, attend, join_heads, split_heads
from hatchery.modeling.families import model_config
from hatchery.modeling.language_model import LanguageModel, build_language_model, initialise_
from hatchery.modeling.ltg.config import LtgBertConfig
from hatchery.tokenization.special_tokens import UNLABELLED
from hatchery.training.batches import TrainingBatches
from hatchery.training.data_order import epoch_permutation
from hatchery.training.engine import Engine, Update, recompute_layers_
from hatchery.training.optimizer_settings import OptimizerSettings
from hatchery.training.optimizers import build_optimizer
from hatchery.training.precision import Precision, resolve_precision
from hatchery.training.settings import LongSequenceSettings, TrainingSettings
from hatchery.training.step_plan import StepPlan
from hatchery.training.topology import SINGLE_PROCESS, Topology

pytestmark = pytest.mark.usefixtures("single_process")
CPU = torch.device("cpu")
FP32 = Precision("fp32")
VOCABULARY, LENGTH = 50, 12
# Use a large epsilon, because Adam's m / sqrt(v) would magnify the rounding errors of gradients near zero.
OPTIMIZER = OptimizerSettings(epsilon=1e-3, max_gradient_norm=0.5)


def make_model(dropout: float = 0.0) -> LanguageModel:
    model = LanguageModel(
        LtgBertConfig(
            vocab_size=VOCABULARY,
            hidden_size=32,
            intermediate_size=48,
            num_hidden_layers=2,
            num_attention_heads=2,
            position_bucket_size=8,
            hidden_dropout_prob=dropout,
            attention_probs_dropout_prob=dropout,
            layer_weighting="biased",
        )
    )
    initialise_(model, 7)
    return model


def make_batch(sequences: int, seed: int) -> dict[str, Tensor]:
    """Return random sequences of random lengths whose numbers of labels differ widely."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(7, VOCABULARY, (sequences, LENGTH), generator=generator)
    mask = torch.arange(LENGTH)[None] < torch.randint(3, LENGTH + 1, (sequences, 1), generator=generator)
    labelled = torch.rand(sequences, LENGTH, generator=generator) < torch.linspace(0.1, 0.9, sequences)[:, None]
    labels = torch.where(labelled & mask, ids, UNLABELLED)
    labels[:, 1] = ids[:, 1]
    return {"input_ids": ids, "attention_mask": mask, "labels": labels}


def cut(batch: dict[str, Tensor], size: int) -> list[dict[str, Tensor]]:
    pieces = range(0, len(batch["input_ids"]), size)
    return [{key: value[start : start + size] for key, value in batch.items()} for start in pieces]


def train_with_engine(
    micro_batch_size: int, precision: str = "fp32", name: str = "lamb"
) -> tuple[nn.Module, list[float]]:
    model = make_model()
    optimizer = build_optimizer(model, replace(OPTIMIZER, name=name))
    engine = Engine(
        model, optimizer, OPTIMIZER.max_gradient_norm, resolve_precision(precision, CPU), CPU, SINGLE_PROCESS
    )
    norms = []
    for step in range(4):
        batch = make_batch(6, step)
        labelled = int((batch["labels"] != UNLABELLED).sum())
        engine.begin_step(seed=3, step=step, learning_rate=0.02)
        for piece in cut(batch, micro_batch_size):
            engine.backward(engine.forward(piece).loss_sum / labelled)
        norms.append(engine.step().gradient_norm.item())
    return model, norms


def one_step(engine: Engine, *batches: dict[str, Tensor]) -> Update:
    engine.begin_step(seed=3, step=0, learning_rate=0.02)
    for batch in batches:
        engine.backward(engine.forward(batch).loss_sum / 10)
    return engine.step()


def train_plainly(name: str) -> tuple[nn.Module, list[float]]:
    """Take the same four steps in plain PyTorch, with the mean cross-entropy of the whole batch."""
    model = make_model()
    optimizer = build_optimizer(model, replace(OPTIMIZER, name=name))
    norms = []
    for step in range(4):
        batch = make_batch(6, step)
        for group in optimizer.param_groups:
            group["lr"] = 0.02
        output = model(**batch)
        (output.loss_sum / output.n_labelled).backward()
        norms.append(float(nn.utils.clip_grad_norm_(model.parameters(), OPTIMIZER.max_gradient_norm)))
        optimizer.step()
        optimizer.zero_grad()
    return model, norms


@pytest.mark.parametrize("name", ["lamb", "adamw"])
@pytest.mark.parametrize("micro_batch_size", [6, 4, 1])
def test_the_engine_equals_a_plain_loop_for_every_micro_batch_size(micro_batch_size: int, name: str) -> None:
    expected, expected_norms = train_plainly(name)
    model, norms = train_with_engine(micro_batch_size, name=name)
    assert norms == pytest.approx(expected_norms, rel=1e-5)
    assert max(norms) > OPTIMIZER.max_gradient_norm, "clipping was not put to the test"
    for (tensor, parameter), other in zip(expected.named_parameters(), model.parameters(), strict=True):
        torch.testing.assert_close(other, parameter, rtol=1e-4, atol=2e-6, msg=tensor)


@pytest.mark.parametrize("rank", [0, 1])
def test_dropout_depends_on_seed_step_and_place_in_the_global_batch_and_nothing_else(rank: int) -> None:
    model = make_model(dropout=0.2)
    topology = replace(SINGLE_PROCESS, rank=rank)
    engine = Engine(model, build_optimizer(model, OPTIMIZER), 1.0, FP32, CPU, topology)
    batch, losses = make_batch(4, 0), []
    for seed, step, first_sequence in [(1, 1, 0), (1, 1, 0), (1, 2, 0), (2, 1, 0), (1, 1, 4)]:
        torch.rand(5)
        engine.begin_step(seed, step, 0.01, first_sequence)
        losses.append(engine.forward(batch).loss_sum.item())
    assert losses[0] == losses[1] and len(set(losses)) == 4
    # Check the drawn values too, because finished runs must stay reproducible.
    torch.manual_seed(int(np.random.SeedSequence([1, 1, 0]).generate_state(1, np.uint64)[0]))
    assert model(**batch).loss_sum.item() == losses[0]


def kept_and_gradients(recomputed: bool, precision: Precision) -> tuple[int, list[Tensor]]:
    """Return the number of values kept for the backward pass of one batch, and the gradients."""
    model, saved = make_model(dropout=0.2), 0

    def count(tensor: Tensor) -> Tensor:
        nonlocal saved
        saved += tensor.numel()
        return tensor

    optimizer = build_optimizer(model, OPTIMIZER)
    with Engine(model, optimizer, 1.0, precision, CPU, SINGLE_PROCESS, recomputed=recomputed) as engine:
        engine.begin_step(seed=1, step=1, learning_rate=0.01)
        with torch.autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor):
            loss = engine.forward(make_batch(4, 0)).loss_sum
        engine.backward(loss)
        found = [parameter.grad.clone() for parameter in model.parameters() if parameter.grad is not None]
    assert all("forward" not in vars(module) for module in model.modules())
    return saved, found


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_layers_that_are_computed_again_give_the_same_numbers_and_keep_less(precision: str) -> None:
    arithmetic = resolve_precision(precision, CPU)
    (most, whole), (less, again) = (kept_and_gradients(recomputed, arithmetic) for recomputed in (False, True))
    assert less < most / 2
    assert all(torch.equal(one, other) for one, other in zip(whole, again, strict=True))


def test_a_micro_batch_drops_the_same_behind_others_and_as_the_first_of_its_process() -> None:
    model = make_model(dropout=0.2)
    engine = Engine(model, build_optimizer(model, OPTIMIZER), 1.0, FP32, CPU, SINGLE_PROCESS)
    # The first two batches contain the same sequences, so only dropout can make their losses differ.
    batches = [make_batch(sequences, 0) for sequences in (3, 3, 2)]

    def losses(first_sequence: int, number: int) -> list[float]:
        engine.begin_step(1, 1, 0.01, first_sequence)
        return [engine.forward(batch).loss_sum.item() for batch in batches[number:]]

    through = losses(0, 0)
    assert through[0] != through[1]
    assert through[1:] == losses(3, 1) and through[2:] == losses(6, 2)


class Places:
    """Sequences whose only token is their position in the order of the epoch."""

    fillers: ClassVar[dict[str, int]] = {}

    def __len__(self) -> int:
        return 17

    def places(self) -> np.ndarray:
        raise AssertionError("nobody asks where examples begin")

    def batch(self, seed: int, epoch: int, indices: np.ndarray, mask_rate: float | None = None) -> dict[str, Tensor]:
        places = torch.from_numpy(np.argsort(epoch_permutation(seed, epoch, len(self)))[indices])[:, None]
        return {"input_ids": places, "labels": places}

    def counted_batch(
        self, seed: int, epoch: int, indices: np.ndarray, mask_rate: float | None = None
    ) -> tuple[dict[str, Tensor], int]:
        return self.batch(seed, epoch, indices), 0

    def counted(self, batch: dict[str, Tensor]) -> tuple[int]:
        return (len(batch["labels"]),)

    def n_tokens(self, batch: dict[str, Tensor]) -> int:
        return len(batch["labels"])


@pytest.mark.parametrize("processes", [1, 2, 3])
def test_a_process_knows_where_its_share_of_the_global_batch_begins_at_each_length(processes: int) -> None:
    long = LongSequenceSettings(0.7, 2)
    plan = StepPlan(TrainingSettings(steps=3, batch_size=6, sequence_length=8, long_sequence=long))
    # The position restarts at the first sequence when long sequences begin.
    begins = [0, 6, 0]
    for rank in range(processes):
        batches = TrainingBatches(plan, 5, Topology(rank, processes, rank, "a", 1), 2, lambda _: Places())
        firsts = [int(batches.at(step).micro_batches[0]["input_ids"][0]) for step in range(3)]
        assert [batches.at(step).first_sequence + begin for step, begin in enumerate(begins)] == firsts


def test_evaluation_drops_nothing_and_leaves_the_model_in_training_mode() -> None:
    model = make_model(dropout=0.5)
    engine = Engine(model, build_optimizer(model, OPTIMIZER), 1.0, FP32, CPU, SINGLE_PROCESS)
    first, second = (float(engine.evaluate(make_batch(4, 0)).loss_sum) for _ in range(2))
    assert first == second
    assert model.training and all(parameter.grad is None for parameter in model.parameters())


def test_without_a_limit_nothing_is_clipped_and_the_norm_is_known_all_the_same() -> None:
    weights, norms = [], []
    for limit in (None, 1e9, 0.01):
        model = make_model()
        # Use plain gradient descent, because Adam would hide the norm of a gradient.
        engine = Engine(model, torch.optim.SGD(model.parameters(), lr=0.1), limit, FP32, CPU, SINGLE_PROCESS)
        norms.append(one_step(engine, make_batch(6, 0)).gradient_norm.item())
        weights.append(torch.cat([parameter.detach().flatten() for parameter in model.parameters()]))
    assert norms[0] == norms[1] == norms[2] > 1
    assert torch.equal(weights[0], weights[1]) and not torch.allclose(weights[0], weights[2])


def test_zero_gathers_the_state_on_the_cpu_and_takes_it_back() -> None:
    model, again = make_model(), make_model()
    optimizers = [build_optimizer(one, replace(OPTIMIZER, name="adamw")) for one in (model, again)]
    with Engine(model, optimizers[0], 1.0, FP32, CPU, SINGLE_PROCESS, zero_stage=1) as engine:
        one_step(engine, make_batch(6, 0))
        state = engine.whole_states()
        moments = {name: state[parameter] for name, parameter in model.named_parameters()}
        assert all(tensor.device.type == "cpu" for found in moments.values() for tensor in found.values())
        assert all(bool(found["exp_avg_sq"].any()) for name, found in moments.items() if name.endswith("weight"))
    for name, parameter in again.named_parameters():
        optimizers[1].state[parameter] = moments[name]
    with Engine(again, optimizers[1], 1.0, FP32, CPU, SINGLE_PROCESS, zero_stage=1) as engine:
        filled = engine.whole_states()
        for name, parameter in again.named_parameters():
            assert all(torch.equal(filled[parameter][key], moments[name][key]) for key in moments[name])


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_micro_batches_add_up_to_the_gradient_of_stage_0_at_every_stage(
    stage: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # At stage 3, DeepSpeed permanently replaces PyTorch's linear function; this patch restores it after the test.
    monkeypatch.setattr(torch.nn.functional, "linear", torch.nn.functional.linear)
    norms: list[list[float]] = []
    for zero_stage in (0, stage):
        model = make_model()
        optimizer = build_optimizer(model, replace(OPTIMIZER, name="adamw"))
        with Engine(model, optimizer, 1.0, FP32, CPU, SINGLE_PROCESS, zero_stage=zero_stage) as engine:
            steps = ([make_batch(4, 10 * step + part) for part in range(3)] for step in range(3))
            norms.append([one_step(engine, *parts).gradient_norm.item() for parts in steps])
    assert norms[1] == pytest.approx(norms[0], rel=1e-5)


def test_an_exception_that_passes_asks_no_other_process_for_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    model = make_model()
    engine = Engine(
        model, build_optimizer(model, replace(OPTIMIZER, name="adamw")), 1.0, FP32, CPU, SINGLE_PROCESS, zero_stage=1
    )

    def asked() -> None:
        raise AssertionError("other processes may be gone")

    monkeypatch.setattr(engine, "whole_parameters", asked)
    with pytest.raises(KeyboardInterrupt), engine:
        raise KeyboardInterrupt


@pytest.mark.parametrize(("family", "order"), [("roberta", "qkv"), ("encoder_decoder", "kvq")])
def test_the_gradients_of_an_attention_are_summed_in_the_order_of_earlier_runs(family: str, order: str) -> None:
    """The order of the sum determines the last bits of trained weights."""
    sizes = {"hidden_size": 32, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
    model = build_language_model(model_config({"family": family, **sizes, "vocab_size": 20}))
    initialise_(model, 5)
    attention = model.eval().encoder.layers[0].attention
    hidden = torch.randn(4, 16, 32, generator=torch.Generator().manual_seed(0), requires_grad=True)
    weights = torch.randn(4, 16, 32, generator=torch.Generator().manual_seed(1))
    names = {"q": "query_projection", "k": "key_projection", "v": "value_projection"}
    states = attention.normalised(hidden)
    made = {key: split_heads(getattr(attention, names[key])(states), 2, None) for key in order}
    context = attend(made["q"], made["k"], made["v"], attention.scale, None, attention.probability_dropout)
    by_hand = torch.autograd.grad((attention.output_projection(join_heads(context, None)) * weights).sum(), hidden)
    found = torch.autograd.grad((attention(hidden, AttentionInputs()) * weights).sum(), hidden)
    assert torch.equal(found[0], by_hand[0])


def test_recomputed_decoder_layers_have_the_gradients_of_kept_ones() -> None:
    sizes = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2}
    model = build_language_model(model_config({"family": "encoder_decoder", **sizes, "vocab_size": 20}))
    initialise_(model, 5)
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(7, 20, (3, 3, 6), generator=generator)
    found = []
    for recomputed in (False, True):
        layers = recompute_layers_(model) if recomputed else []
        assert len(layers) == (4 if recomputed else 0)
        torch.manual_seed(1)
        model.train()
        model.zero_grad()
        model(ids[0], torch.ones(3, 6, dtype=torch.bool), ids[1], ids[2]).loss_sum.backward()
        found.append([parameter.grad for parameter in model.parameters() if parameter.grad is not None])
    assert len(found[0]) == len(found[1]) > 0
    assert all(torch.equal(one, other) for one, other in zip(*found, strict=True))
