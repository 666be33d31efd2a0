"""One fine-tuning run: its training, and the state that it keeps."""

from dataclasses import dataclass, replace

import finetuning_cases as cases
import numpy as np
import pytest
import torch
from torch import nn

from hatchery.errors import EvaluationError
from hatchery.evaluation.finetuning import loop
from hatchery.evaluation.finetuning.batches import Batch, NotFiniteError, Predicted, predict
from hatchery.evaluation.finetuning.loop import (
    Development,
    build_optimizer,
    decays,
    named_by_role,
    set_rates,
    train_model,
)
from hatchery.evaluation.tasks.settings import ProtocolSettings
from hatchery.modeling.heads.registry import build_task_model
from hatchery.modeling.heads.task_model import HeadContext
from hatchery.training.optimizers import AdamW
from hatchery.typed import build

CPU = torch.device("cpu")
PROTOCOL = replace(
    build(ProtocolSettings, cases.PROTOCOL, "protocol"),
    **{"epochs": 6, "batch_size": 4, "learning_rates": (1e-2,), "seeds": (12,), "max_length": 16},
    development_fraction=0.1,
    patience_evaluations=None,
)


@dataclass(frozen=True)
class Rows:
    """The smallest data set that the training loop accepts."""

    sequences: list
    labels: np.ndarray

    @property
    def lengths(self):
        return np.array([len(sequence) for sequence in self.sequences])

    @property
    def n_units(self):
        return len(self.labels)

    def batch(self, items):
        rows = [torch.tensor(self.sequences[item]) for item in items]
        ids = nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=3)
        mask = torch.arange(ids.shape[1]) < torch.tensor([len(row) for row in rows])[:, None]
        return Batch({"input_ids": ids, "attention_mask": mask}, torch.from_numpy(self.labels[items]), items)

    def subset(self, items):
        return Rows([self.sequences[item] for item in items], self.labels[list(items)])


def rows(n, seed=0):
    """Return sequences whose label is 1 if token 7 occurs."""
    random = np.random.default_rng(seed)
    labels = np.arange(n) % 2
    bodies = [random.integers(8, 60, size=random.integers(2, 9)) for _ in range(n)]
    for body, label in zip(bodies, labels, strict=True):
        if label:
            body[random.integers(len(body))] = 7
    return Rows([[1, *body.tolist(), 2] for body in bodies], labels)


@pytest.fixture
def model(small_model):
    def make(kind="sequence_classification", dropout=0.1, **options):
        n_labels = 2 if kind == "sequence_classification" else None
        return build_task_model(kind, small_model(60).encoder, HeadContext(n_labels, dropout, 12, 3), options)

    return make


def train(model, data, development=None, protocol=PROTOCOL, seed=12, on_step=lambda steps: None):
    return train_model(model, data, development, protocol, protocol.learning_rates[0], seed, CPU, on_step)


def accuracy(data):
    return Development(data, lambda predicted: float((predicted.predictions == data.labels).mean()))


def scripted(values, model):
    """Return a development set with the given values, and a list that receives the model's state at each evaluation."""
    seen = []

    def value(predicted):
        seen.append({name: parameter.detach().clone() for name, parameter in model.named_parameters()})
        return values[len(seen) - 1]

    return Development(rows(6, seed=1), value), seen


@pytest.mark.parametrize(
    ("values", "patience", "best", "evaluations"),
    [
        ([0.5, 0.8, 0.6, 0.8, 0.7, 0.1], None, 1, 6),
        # The first of equal values is best. A value below the best does not reset the patience.
        ([0.5, 0.8, 0.6, 0.8, 0.9, 0.9], 2, 1, 4),
        # After a perfect value, training stops.
        ([0.5, 1.0, 1.0], None, 1, 2),
        # NaN is worse than any number.
        ([float("nan"), -0.5, float("nan"), -0.6, 0.0, -0.1], None, 4, 6),
    ],
)
def test_the_best_epoch_is_restored_and_training_stops_when_it_cannot_be_bettered(
    model, values, patience, best, evaluations
):
    network, steps = model(), []
    development, seen = scripted(values, network)
    protocol = replace(PROTOCOL, patience_evaluations=patience)
    result = train(network, rows(20), development, protocol, on_step=steps.append)
    assert (result.best_step, result.development_value, len(seen)) == (5 * (best + 1), values[best], evaluations)
    assert all(torch.equal(value, seen[best][name]) for name, value in network.named_parameters())
    assert not torch.equal(seen[best]["head.output.weight"], seen[best - 1]["head.output.weight"])
    assert sum(steps) == 6 * 5  # Skipped steps are reported, so that progress reaches its total.


def test_without_an_evaluation_the_last_state_stays(model):
    result = train(model(), rows(20))
    assert (result.best_step, result.development_value) == (30, None)


def test_a_seed_fixes_every_prediction_and_another_seed_trains_differently(model):
    def scores(seed):
        network = model()
        train(network, rows(40), accuracy(rows(10, seed=1)), replace(PROTOCOL, epochs=2), seed)
        return predict(network, rows(10, seed=2), CPU).scores

    torch.manual_seed(99)  # The global seed must not change the result.
    first = scores(12)
    assert np.array_equal(first, scores(12))
    assert not np.array_equal(first, scores(13))


def test_a_run_that_diverges_is_told_apart_from_a_bad_one(model):
    protocol = replace(PROTOCOL, learning_rates=(1e30,), max_gradient_norm=None, weight_decay=10.0)
    with pytest.raises(NotFiniteError):
        train(model(), rows(20), protocol=protocol)
    network = model()
    with torch.no_grad():
        network.head.output.bias[0] = float("nan")
    with pytest.raises(NotFiniteError):
        predict(network, rows(4), CPU)


def test_a_device_that_is_looked_at_rarely_finds_the_same_divergence(model, monkeypatch):
    watch = loop.FiniteWatch

    class Late(watch):
        def __init__(self, device):
            super().__init__(device)
            self._interval = 1000

    monkeypatch.setattr(loop, "FiniteWatch", Late)
    protocol = replace(PROTOCOL, learning_rates=(1e30,), max_gradient_norm=1.0, weight_decay=10.0)
    for development in (None, accuracy(rows(6, seed=1))):
        with pytest.raises(NotFiniteError):
            train(model(), rows(20), development, protocol)


def test_a_damaged_pretrained_model_is_one_clear_error(model):
    network = model()
    with torch.no_grad():
        next(network.encoder.parameters()).fill_(float("nan"))
    with pytest.raises(EvaluationError, match="the pretrained model returns scores that are not finite before any"):
        train(network, rows(20))


def test_gradients_are_clipped_to_the_global_norm_or_left_alone(model, monkeypatch):
    norms = []
    real_step = AdamW.step

    def step(optimizer, *arguments, **keywords):
        gradients = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        norms.append(float(torch.norm(torch.stack([g.norm() for g in gradients]))))
        return real_step(optimizer, *arguments, **keywords)

    monkeypatch.setattr(AdamW, "step", step)
    short = replace(PROTOCOL, epochs=1)
    train(model(), rows(20), protocol=replace(short, max_gradient_norm=0.01))
    assert len(norms) == 5 and max(norms) <= 0.01 * 1.001
    train(model(), rows(20), protocol=replace(short, max_gradient_norm=None))
    assert min(norms[5:]) > 0.01


def test_predictions_do_not_depend_on_the_order_or_the_company_of_the_rows(model):
    network, data = model(), rows(60)
    order = np.random.default_rng(0).permutation(60).tolist()
    alone = np.concatenate([predict(network, data.subset([i]), CPU).scores for i in range(60)])
    np.testing.assert_allclose(predict(network, data, CPU).scores, alone, atol=1e-5)
    np.testing.assert_allclose(predict(network, data.subset(order), CPU).scores, alone[order], atol=1e-5)


def test_32_rows_are_learnt_by_heart_within_100_steps(model):
    network = model(dropout=0.0)
    protocol = replace(PROTOCOL, epochs=25, batch_size=8, learning_rates=(3e-3,))
    data = rows(32)
    assert train(network, data, protocol=protocol).best_step == 100
    assert np.array_equal(predict(network, data, CPU).predictions, data.labels)


def test_a_regression_fits_its_numbers(model):
    data = rows(24)
    data = Rows(data.sequences, np.linspace(0, 5, 24)[np.random.default_rng(0).permutation(24)])
    network = model("regression", dropout=0.0, initial_value=2.5)
    train(network, data, protocol=replace(PROTOCOL, epochs=40, batch_size=8, learning_rates=(3e-3,)))
    found = predict(network, data, CPU)
    assert found.predictions.dtype == np.float64 and found.scores.shape == (24, 1)
    assert np.mean((found.predictions - data.labels) ** 2) < 0.05


def test_a_frozen_encoder_stays_as_it_is_while_the_head_learns(model):
    network = model(encoder_mode="frozen")
    before = {name: value.clone() for name, value in network.state_dict().items()}
    train(network, rows(20), accuracy(rows(6, seed=1)))
    after = network.state_dict()
    changed = {name for name, value in after.items() if not torch.equal(value, before[name])}
    assert changed == {name for name in after if name.startswith("head.")}


@pytest.mark.parametrize("head_rate", [None, 0.5])
def test_what_was_not_pretrained_can_have_a_learning_rate_of_its_own(model, head_rate):
    network, protocol = model(), replace(PROTOCOL, head_learning_rate=head_rate, schedule="linear", final_fraction=0.5)
    optimizer = build_optimizer(network, protocol, 0.01)
    set_rates(optimizer, protocol, step=100, steps=100)
    fresh = {id(parameter) for parameter in network.fresh_parameters()}
    for group in optimizer.param_groups:
        of_head = {id(parameter) in fresh for parameter in group["params"]}
        peak = (head_rate or 0.01) if True in of_head else 0.01
        assert group["lr"] == pytest.approx(peak * 0.5)
        assert head_rate is None or len(of_head) == 1


def test_both_readings_of_weight_decay(model):
    def decayed(reading):
        network = model()
        names = {id(parameter): name for name, parameter in network.named_parameters()}
        groups = build_optimizer(network, replace(PROTOCOL, decay=reading), 0.01).param_groups
        assert {group["weight_decay"] for group in groups} == {0.0, 0.1}
        return {names[id(p)] for group in groups if group["weight_decay"] for p in group["params"]}

    matrices, weights = decayed("matrices"), decayed("weights")
    assert matrices < weights
    assert all("embedding" in name for name in weights - matrices)
    whole = build_optimizer(model(), replace(PROTOCOL, decay="all"), 0.01).param_groups
    assert {group["weight_decay"] for group in whole} == {0.1}
    assert "head.linear.weight" in matrices and not any("bias" in name for name in weights)


class RootNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(2))


def test_norms_and_embeddings_of_external_models_are_told_by_their_modules():
    parts = {"wte": nn.Embedding(3, 2), "ln_f": nn.LayerNorm(2), "rms": RootNorm(), "fc": nn.Linear(2, 2)}
    names = [name for name, _ in named_by_role(nn.ModuleDict(parts))]
    norms = ["ln_f.weight.norm", "ln_f.bias.norm", "rms.scale.norm"]
    assert names == ["wte.weight.embedding", *norms, "fc.weight.", "fc.bias."]
    for reading, expected in (("matrices", ["fc.weight."]), ("weights", ["wte.weight.embedding", "fc.weight."])):
        assert [name for name in names if decays(name, replace(PROTOCOL, decay=reading))] == expected


def test_too_few_rows_for_one_full_batch_are_an_error(model):
    with pytest.raises(EvaluationError, match="batch_size: got 4, expected at most 3, the number of training rows"):
        train(model(), rows(3), protocol=replace(PROTOCOL, drop_incomplete_batch=True))


def test_predictions_are_put_back_in_the_order_of_the_units(model):
    network, data = model(), rows(30)
    found = predict(network, data, CPU)
    assert isinstance(found, Predicted) and found.scores.dtype == np.float32
    assert np.array_equal(found.predictions, found.scores.argmax(axis=1))
