"""The consequences of the official pipeline's settings (docs/papers/babylm-evaluation.md, "Official fine-tuning", a to
e), on tasks of its sizes."""

import math
from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from hatchery.evaluation.finetuning.batches import Batch, Predicted, training_batches
from hatchery.evaluation.finetuning.finetune_on_task import development_value, split
from hatchery.evaluation.finetuning.loop import BestState, Development, step_count, train_model
from hatchery.evaluation.finetuning.scored_sets import ScoredSet
from hatchery.evaluation.tasks.settings import FinetuneSettings, ProtocolSettings, TaskSettings
from hatchery.modeling.heads.targets import OneClass

OFFICIAL = ProtocolSettings(
    epochs=10,
    batch_size=64,
    learning_rates=(5e-5,),
    warmup_fraction=0.0,
    schedule="linear",
    weight_decay=0.0,
    beta1=0.9,
    beta2=0.999,
    epsilon=1e-8,
    max_gradient_norm=1.0,
    dropout=0.1,
    max_length=128,
    selection="scored",
    development_fraction=0.0,
    evaluation_interval_steps=200,
    patience_evaluations=10,
    minimum_improvement=0.001,
    selection_metric="f1",
    seeds=(12,),
)
TASK = TaskSettings(
    name="demo",
    suite="demo",
    format="rows",
    files={"train": "a", "validation": "b"},
    metrics=("accuracy", "f1"),
    labels=(0, 1),
)
SETTINGS = FinetuneSettings(TASK, OFFICIAL)


class TwoNumbers(nn.Module):
    """The smallest task model that the training loop accepts, so that thousands of steps take a second."""

    def __init__(self):
        super().__init__()
        self.output = nn.Parameter(torch.zeros(2))

    def forward(self, values):
        return values[:, None] * self.output

    def fresh_parameters(self):
        return [self.output]

    def loss(self, scores, labels):
        return OneClass().loss(scores, labels)

    def predictions(self, scores):
        return scores.argmax(dim=-1)


@dataclass(frozen=True)
class Numbers:
    labels: np.ndarray

    @property
    def lengths(self):
        return np.ones(len(self.labels), dtype=np.int64)

    @property
    def n_units(self):
        return len(self.labels)

    def batch(self, items):
        labels = torch.from_numpy(self.labels[items])
        return Batch({"values": 2.0 * labels - 0.5}, labels, items)

    def subset(self, items):
        return Numbers(self.labels[list(items)])


def numbers(n):
    return Numbers(np.arange(n) % 2)


def run(n_rows, value=lambda evaluation: 0.5, protocol=OFFICIAL):
    """Train on `n_rows` rows; return the result, the states at each evaluation, and the final state."""
    model, states = TwoNumbers(), []

    def judge(predicted):
        states.append(model.output.detach().clone())
        return value(len(states))

    result = train_model(
        model, numbers(n_rows), Development(numbers(4), judge), protocol, 5e-5, 12, torch.device("cpu")
    )
    return result, states, model.output.detach()


def test_a_the_scored_rows_choose_the_state_and_all_training_rows_are_trained_on():
    main = ScoredSet("validation", TASK, ("0", "1"), numbers(6), np.ones(6, dtype=bool))
    task = SimpleNamespace(groups=list(range(50)), sets=(main,), train=None)
    assert split(SETTINGS, task, 12) == (list(range(50)), main)


def test_b_a_task_of_fewer_steps_than_the_interval_is_never_evaluated_and_keeps_its_last_state():
    result, states, _ = run(554)  # WSC
    assert step_count(554, OFFICIAL) == 90
    assert (result.best_step, result.development_value, states) == (90, None, [])


def test_b_rte_is_evaluated_once_and_goes_back_to_that_state_although_it_was_trained_on():
    result, states, left = run(2490)
    assert step_count(2490, OFFICIAL) == 390
    assert (result.best_step, len(states)) == (200, 1)
    assert torch.equal(left, states[0])


def test_b_mrpc_is_evaluated_twice():
    result, states, left = run(3668, value=lambda evaluation: evaluation / 10)
    assert (result.best_step, len(states)) == (400, 2) and torch.equal(left, states[1])


def test_c_early_stopping_needs_more_than_ten_intervals():
    assert (step_count(16_000, OFFICIAL), step_count(12_800, OFFICIAL)) == (2500, 2000)
    # A tenth of the rows and of the interval has as many intervals.
    tenth = replace(OFFICIAL, evaluation_interval_steps=20)
    result, states, left = run(1600, protocol=tenth)
    # The first evaluation is the best. Ten more without an improvement stop the run.
    assert (result.best_step, len(states)) == (20, 11) and torch.equal(left, states[0])
    assert len(run(1280, protocol=tenth)[1]) == 10  # All 200 steps run.


def test_an_official_run_that_stops_early_keeps_the_state_of_its_last_evaluation():
    rules = {"edition": 2026, "track": "multilingual", "official": True}
    protocol = replace(OFFICIAL, evaluation_interval_steps=20, patience_evaluations=2, **rules)
    result, states, left = run(1600, value=lambda evaluation: (0.1, 0.5, 0.3, 0.2)[evaluation - 1], protocol=protocol)
    assert (result.best_step, result.development_value, len(states)) == (80, 0.2, 4) and torch.equal(left, states[3])


def test_c_a_gain_below_the_minimum_becomes_the_best_state_but_does_not_renew_the_patience():
    selection = BestState(TwoNumbers(), patience_evaluations=2, minimum_improvement=0.001)
    assert [selection.note(step, 0.5 + step * 0.0004) for step in range(3)] == [False, False, True]
    assert selection.best.best_step == 2
    renewed = BestState(TwoNumbers(), patience_evaluations=2, minimum_improvement=0.001)
    assert not any(renewed.note(step, 0.5 + step * 0.0011) for step in range(300))


def test_d_selection_by_f1_looks_at_the_positive_class():
    labels = np.array([0, 0, 0, 1])
    main = ScoredSet("validation", TASK, ("0", "1"), Numbers(labels), np.ones(4, dtype=bool))
    all_negative, half = np.array([0, 0, 0, 0]), np.array([1, 1, 0, 1])

    def value(predictions, metric):
        settings = replace(SETTINGS, protocol=replace(OFFICIAL, selection_metric=metric))
        return development_value(settings, main)(Predicted(predictions, np.zeros((4, 2), dtype=np.float32)))

    assert value(all_negative, "f1") < value(half, "f1")
    assert value(all_negative, "accuracy") > value(half, "accuracy")
    assert value(half, None) == value(half, "accuracy")  # The default is the task's first metric.


def test_e_msgs_selects_on_all_validation_rows_and_reports_the_scored_ones():
    labels = np.array([0, 1, 0, 1, 1, 0])
    is_scored = np.array([True, True, False, False, False, False])
    main = ScoredSet("validation", TASK, ("0", "1"), Numbers(labels), is_scored)
    answers = Predicted(np.array([1, 0, 0, 1, 1, 0]), np.zeros((6, 2), dtype=np.float32))
    settings = replace(SETTINGS, protocol=replace(OFFICIAL, selection_metric="accuracy"))
    assert development_value(settings, main)(answers) == pytest.approx(4 / 6)  # typical of the surface feature
    assert main.values(answers)["accuracy"] == 0.0


def test_what_is_scored_keeps_its_groups_and_facts_and_gives_accuracy_by_fact():
    kinds, labels = ("one", "many", "many", "one", "one"), np.array([0, 1, 1, 0, -1])
    facts = [{"kind": kind} for kind in kinds]
    is_scored = np.array([False, True, True, True, True])
    task = replace(TASK, facts=("kind",))
    main = ScoredSet("validation", task, ("no", "yes"), Numbers(labels), is_scored, tuple("abcde"), facts)
    answers = Predicted(np.array([0, 0, 1, 1, 0]), np.zeros((5, 2), dtype=np.float32))
    found = main.scored(answers)
    assert (found.groups, found.facts) == (list("bcde"), facts[1:]) and found.labels.tolist() == [1, 1, 0, -1]
    assert [tuple(vars(row).values()) for row in main.breakdown(answers)] == [
        ("kind", "many", "", 2, 0.5),
        ("kind", "many", "yes", 2, 0.5),
        ("kind", "one", "", 2, 0.0),
        ("kind", "one", "no", 1, 0.0),
    ]
    assert main.majority_accuracy == 2 / 4
    part = main.subset([2, 0])
    assert (part.is_scored.tolist(), part.groups, part.facts) == ([True, False], ["c", "a"], [facts[2], facts[0]])


def test_elc_bert_evaluates_after_every_epoch_whatever_their_length():
    protocol = replace(OFFICIAL, batch_size=16, evaluation_interval_steps=None, patience_evaluations=None)
    result, states, left = run(40, value=lambda evaluation: [0.1, 0.7, 0.3][min(evaluation, 3) - 1], protocol=protocol)
    assert (len(states), result.best_step) == (10, 2 * math.ceil(40 / 16)) and torch.equal(left, states[1])


def test_ltg_bert_drops_the_incomplete_batch_and_reports_the_last_state():
    protocol = replace(OFFICIAL, selection="last", batch_size=16, epochs=4, drop_incomplete_batch=True)
    task = SimpleNamespace(groups=list(range(40)), sets=(), train=None)
    assert split(FinetuneSettings(TASK, protocol), task, 12) == (list(range(40)), None)
    assert step_count(40, protocol) == 8


class Watched(TwoNumbers):
    """Records for each forward pass the training mode, the number of rows, and a random draw like dropout's."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def forward(self, values):
        self.seen.append((self.training, len(values), float(torch.rand(()))))
        return super().forward(values)


@pytest.mark.parametrize(("edition", "development"), [(2023, [70]), (2026, [64, 6])])
def test_every_step_has_dropout_by_the_seed_and_no_evaluation_has_any(edition, development):
    def passes(seed):
        model, protocol = Watched(), replace(OFFICIAL, epochs=2, evaluation_interval_steps=2, edition=edition)
        judged = Development(numbers(70), lambda predicted: 0.5)
        train_model(model, numbers(128), judged, protocol, 5e-5, seed, torch.device("cpu"))
        return model.seen

    epoch = [(True, 64), (True, 64), *((False, rows) for rows in development)]
    first, again, other = passes(12), passes(12), passes(13)
    assert [one[:2] for one in first] == epoch * 2
    assert first == again and not {one[2] for one in first} & {one[2] for one in other}


@pytest.mark.parametrize("drops", [False, True])
def test_a_run_is_adamw_written_out(drops):
    """AdamW by hand over three epochs: warm-up, schedule, uneven accumulation, clipping, moments and weight decay."""
    protocol = replace(
        OFFICIAL,
        **{"epochs": 3, "batch_size": 5, "warmup_fraction": 0.25, "final_fraction": 0.5, "decay": "all"},
        **{"weight_decay": 0.3, "beta1": 0.8, "beta2": 0.9, "epsilon": 0.05, "max_gradient_norm": 0.6},
        **{"gradient_accumulation": 2, "drop_incomplete_batch": drops},
    )
    data, model, batches = Numbers(np.array([0, 1, 1, 0, 1, 1, 1, 0, 1, 1, 1, 1])), TwoNumbers(), []
    train_model(model, data, None, protocol, 0.1, 12, torch.device("cpu"))
    for epoch in (1, 2, 3):
        batches += training_batches(data.lengths, 5, 12, epoch, drops)
    steps = len(batches)
    assert steps == (6 if drops else 9)
    weights, first, second, norms = np.zeros(2), np.zeros(2), np.zeros(2), []
    for step, items in enumerate(batches):
        warmup = int(0.25 * steps)
        rate = 0.1 * (step / warmup if step < warmup else 1 - 0.5 * (step - warmup) / (steps - warmup))
        gradient = np.zeros(2)
        for label in data.labels[items]:
            shares = np.exp((2 * label - 0.5) * weights)
            gradient += (2 * label - 0.5) * (shares / shares.sum() - np.eye(2)[label]) / len(items)
        norms.append(np.linalg.norm(gradient))
        gradient *= min(1, 0.6 / norms[-1])
        first, second = 0.8 * first + 0.2 * gradient, 0.9 * second + 0.1 * gradient**2
        weights *= 1 - rate * 0.3
        moments = first / (1 - 0.8 ** (step + 1)), second / (1 - 0.9 ** (step + 1))
        weights -= rate * moments[0] / (np.sqrt(moments[1]) + 0.05)
    assert min(norms) < 0.5 and max(norms) > 0.7
    np.testing.assert_allclose(model.output.detach().numpy(), weights, rtol=1e-4)
