"""A step's number determines its rates and data: published schedules, order of data, and totals as sums of steps."""

import csv
import json
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hatchery.errors import ConfigError
from hatchery.training.data_order import DataOrder, epochs_of
from hatchery.training.objectives import objective_of
from hatchery.training.objectives.hybrid import HybridSettings
from hatchery.training.objectives.masked import MaskedSettings
from hatchery.training.optimizer_settings import OptimizerSettings
from hatchery.training.settings import (
    LongSequenceSettings,
    ScheduleSettings,
    TrainingSettings,
    pretrain_settings,
)
from hatchery.training.step_plan import StepPlan

LENGTHS = (LongSequenceSettings(0.7, 2), LongSequenceSettings(0.9, 4))


def published(steps: int, peak: float = 0.01) -> TrainingSettings:
    """Return settings with the schedules of GPT-BERT, 2024."""
    return TrainingSettings(
        steps=steps,
        batch_size=32_768,
        sequence_length=128,
        length_schedule=LENGTHS,
        initial_batch_fraction=0.25,
        objective=MaskedSettings(mask_probability=0.3, final_mask_probability=0.15),
        optimizer=OptimizerSettings(learning_rate=peak),
        schedule=ScheduleSettings(cooldown_fraction=0.016),
    )


def golden(directory: Path, name: str) -> list[dict[str, str]]:
    return list(csv.DictReader((directory / "gpt_bert" / "schedule" / name).open(encoding="utf-8")))


def test_learning_rates_of_gpt_bert_are_those_of_its_code(golden_directory: Path) -> None:
    for row in golden(golden_directory, "learning_rate.csv"):
        plan = StepPlan(published(int(row["total_steps"]), float(row["peak"])))
        assert plan.learning_rate(int(row["step"])) == pytest.approx(float(row["lr"]), rel=1e-12, abs=1e-18), row


def test_rates_of_masking_are_those_of_the_code_of_gpt_bert(golden_directory: Path) -> None:
    for row in golden(golden_directory, "mask_rate.csv"):
        steps, step = int(row["total_steps"]), int(row["step"])
        if step < steps:
            assert StepPlan(published(steps)).at(step).mask_rate == pytest.approx(float(row["rate"]), rel=1e-12)


def test_batches_and_lengths_are_those_that_the_code_of_gpt_bert_decides_for_an_epoch(golden_directory: Path) -> None:
    for row in golden(golden_directory, "batch_and_length.csv"):
        steps, step = int(row["total_steps"]), int(row["step"])
        if step == steps:
            continue
        planned = StepPlan(published(steps)).at(step)
        assert planned.sequence_length == int(row["length"]), row
        assert planned.batch_size == int(row["sequences_nominal"]), row


def test_an_epoch_of_the_published_loop_has_the_length_the_batch_and_the_rates_of_its_first_step(
    golden_directory: Path,
) -> None:
    """One length begins exactly at a whole number of steps: after step 41 of 60 (from 0), seven tenths are done."""
    loop = json.loads((golden_directory / "gpt_bert" / "schedule" / "step_structure.json").read_text("utf-8"))
    facts = loop["settings"]
    schedule = ScheduleSettings(
        warmup_fraction=facts["warmup"] / facts["max_steps"], cooldown_fraction=facts["cooldown"] / facts["max_steps"]
    )
    sizes = {"batch_size": facts["global_batch_size"], "sequence_length": facts["first_length"]}
    plan = StepPlan(replace(published(facts["max_steps"]), schedule=schedule, **sizes))
    for epoch in loop["worker_0"]["epochs"]:
        first = plan.at(epoch["first_step"])
        assert (first.sequence_length, first.batch_size) == (epoch["length"], epoch["sequences_nominal"]), epoch
        rates = [plan.learning_rate(first.number + step) for step in range(epoch["optimiser_steps"])]
        assert rates == pytest.approx(epoch["lr_of_each_step"], rel=1e-12)


def test_the_ramp_ends_at_the_whole_batch_and_asks_for_five_eighths_of_its_tokens() -> None:
    settings = published(15_625)
    plan = StepPlan(settings)
    assert plan.at(0).batch_size == 8_192
    assert (plan.at(15_624).batch_size, plan.at(15_624).sequence_length) == (8_192, 512)
    assert plan.tokens() == pytest.approx(15_625 * 32_768 * 128 * 0.625, rel=1e-3)


class Grid:
    """A text of `tokens` tokens, split into sequences of `length` tokens."""

    def __init__(self, tokens: int, length: int) -> None:
        self.length, self.n = length, tokens // length

    def __len__(self) -> int:
        return self.n

    def places(self) -> np.ndarray:
        return np.arange(self.n) * self.length


@given(
    steps=st.integers(4, 60),
    batch=st.integers(1, 8),
    windows=st.integers(1, 30),
    initial=st.sampled_from([0.25, 0.6, 1.0]),
    seed=st.integers(0, 2**20),
    fractions=st.tuples(st.floats(0, 0.99), st.floats(0, 0.99)).filter(lambda pair: pair[0] < pair[1]),
)
def test_no_text_is_read_again_before_all_of_it_was_read_as_often(
    steps: int, batch: int, windows: int, initial: float, seed: int, fractions: tuple[float, float]
) -> None:
    changes = (LongSequenceSettings(fractions[0], 2), LongSequenceSettings(fractions[1], 4))
    size = 16 * batch
    settings = TrainingSettings(
        steps=steps, batch_size=size, sequence_length=8, length_schedule=changes, initial_batch_fraction=initial
    )
    plan = StepPlan(settings)
    order = DataOrder(plan, seed, lambda length: Grid(32 * windows, length))
    reads = np.zeros(4 * windows, dtype=int)
    for step in map(plan.at, range(steps)):
        chosen = order(step)
        assert sum(len(part.indices) for part in chosen) == step.batch_size
        width = step.sequence_length // 8
        for part in chosen:
            for index in part.indices.tolist():
                reads[index * width : (index + 1) * width] += 1
        # If the length changes within a window, less than one long sequence of the window may stay unread.
        often = reads.max()
        behind = int((reads < often - 1).sum())
        assert behind <= 3 * len(plan.stretches), (step, reads)


def test_a_new_length_goes_on_where_the_old_one_stopped_within_an_epoch() -> None:
    settings = TrainingSettings(
        steps=8, batch_size=8, sequence_length=8, length_schedule=(LongSequenceSettings(0.5, 4),)
    )
    plan = StepPlan(settings)
    order = DataOrder(plan, 3, lambda length: Grid(64 * 8, length))
    read: Counter[int] = Counter()
    for step in map(plan.at, range(8)):
        for part in order(step):
            assert part.epoch == 0
            for index in part.indices.tolist():
                place = index * step.sequence_length
                read.update(range(place, place + step.sequence_length))
    assert read == Counter(range(64 * 8))
    # The epoch has 32 of 64 short and 8 of 16 long sequences.
    assert epochs_of(objective_of(MaskedSettings()), Grid(64 * 8, 8), plan) == 1


def test_each_kind_goes_on_with_its_own_text_where_the_length_changes_in_a_later_epoch() -> None:
    settings = TrainingSettings(
        steps=16,
        batch_size=16,
        sequence_length=8,
        length_schedule=(LongSequenceSettings(0.5, 4),),
        objective=HybridSettings(causal_share=0.25),
    )
    plan = StepPlan(settings)
    sequences: dict[tuple[int, int, int], list[int]] = {}
    read: dict[int, Counter[int]] = {0: Counter(), 1: Counter()}
    for seed in (3, 4):
        order = DataOrder(plan, seed, lambda length: Grid(64 * 8, length))
        for step in map(plan.at, range(16)):
            size = 64 * 8 // step.sequence_length
            for part in order(step):
                for kind, index in (divmod(index, size) for index in part.indices.tolist()):
                    sequences.setdefault((seed, kind, part.epoch), []).append(index)
                    read[kind].update(range(index * step.sequence_length, (index + 1) * step.sequence_length))
    # 7 steps have 12 + 4 short sequences and 9 steps have 3 + 1 long sequences. For each seed, these are three epochs
    # of the first kind and one epoch of the second kind.
    assert read == {0: Counter(dict.fromkeys(range(64 * 8), 6)), 1: Counter(dict.fromkeys(range(64 * 8), 2))}
    # The length changes in epoch 1 of the first kind and epoch 0 of the second kind; each draws its own windows.
    changed = [sequences[seed, kind, epoch][:12] for seed in (3, 4) for kind, epoch in ((0, 1), (1, 0))]
    assert len({tuple(drawn) for drawn in changed}) == 4


def test_a_published_change_of_length_begins_with_the_first_sequence_again(pretrain_slice: Callable[..., Any]) -> None:
    settings = pretrain_settings(pretrain_slice(steps=10, batch_size=8, long=(0.5, 2)))
    plan = StepPlan(settings)
    order = DataOrder(plan, settings.seed, lambda length: Grid(4_000, length))
    first, again = DataOrder(plan, settings.seed, lambda length: Grid(4_000, length))(plan.at(5))[0], order(plan.at(5))
    assert first.epoch == 0 and np.array_equal(first.indices, again[0].indices)
    assert plan.at(5).read == (0,) and plan.at(6).read == (4,)
    # A quarter of ten steps is two and a half: the third step is the first long one.
    uneven = StepPlan(pretrain_settings(pretrain_slice(steps=10, batch_size=8, long=(0.25, 2))))
    assert [stretch.first_step for stretch in uneven.stretches] == [0, 2]


def test_two_kinds_of_sequences_read_at_their_own_pace_while_the_batch_grows() -> None:
    objective = HybridSettings(causal_share=0.25)
    settings = TrainingSettings(steps=20, batch_size=40, objective=objective, initial_batch_fraction=0.25)
    plan = StepPlan(settings)
    order = DataOrder(plan, 1, lambda length: Grid(30 * length, length))
    seen: list[list[tuple[int, int]]] = [[], []]
    for step in map(plan.at, range(20)):
        assert step.sequences == objective.sequences_of_kinds(step.batch_size)
        for part in order(step):
            for index in part.indices.tolist():
                seen[index >= 30].append((part.epoch, index % 30))
    for kind in seen:
        whole = len(kind) // 30
        assert Counter(kind[: whole * 30]) == Counter((epoch, index) for epoch in range(whole) for index in range(30))
    assert len(seen[1]) == sum(plan.at(step).sequences[1] for step in range(20))


@pytest.mark.parametrize(
    ("share", "batch", "kinds"),
    [
        (1 / 16, 48, (45, 3)),
        # Each kind has at least one sequence. Otherwise the number is rounded to the nearest number, and a half to
        # even.
        (1 / 16, 4, (3, 1)),
        (0.99, 4, (1, 3)),
        (0.3, 9, (6, 3)),
        (0.3, 5, (3, 2)),
        (0.0, 5, (5, 0)),
        (1.0, 5, (0, 5)),
    ],
)
def test_a_batch_has_its_share_of_causal_sequences(share: float, batch: int, kinds: tuple[int, int]) -> None:
    assert HybridSettings(causal_share=share).sequences_of_kinds(batch) == kinds


def test_something_is_predicted_at_all_positions_of_causal_sequences_and_at_the_rate_of_the_others() -> None:
    hybrid = HybridSettings(causal_share=0.25, mask_probability=0.3, final_mask_probability=0.1)
    assert hybrid.labelled_share_at(None) == pytest.approx(0.75 * 0.3 + 0.25)
    settings = TrainingSettings(steps=4, batch_size=8, sequence_length=16, objective=hybrid, initial_batch_fraction=0.5)
    plan = StepPlan(settings)
    # Batches have 4, 5, 6 and 7 sequences of equal length, with rates of 0.3, 0.25, 0.2 and 0.15.
    assert [plan.at(step).batch_size for step in range(4)] == [4, 5, 6, 7]
    assert [plan.at(step).mask_rate for step in range(4)] == pytest.approx([0.3, 0.25, 0.2, 0.15])
    rate = (4 * 0.3 + 5 * 0.25 + 6 * 0.2 + 7 * 0.15) / 22
    (work,) = plan.work()
    assert (work.sequence_length, work.sequences) == (16, 22)
    assert work.labelled_share == pytest.approx(0.75 * rate + 0.25)


def test_totals_are_the_sums_of_the_steps() -> None:
    plan = StepPlan(published(97))
    steps = [plan.at(number) for number in range(97)]
    assert plan.sequences() == sum(step.batch_size for step in steps)
    assert plan.sequences(30, 80) == sum(step.batch_size for step in steps[30:80])
    assert plan.tokens() == sum(step.batch_size * step.sequence_length for step in steps)

    def per_sequence(length: int, labelled: float) -> float:
        return length * (7 + length + 100 * labelled)

    by_step = sum(step.batch_size * per_sequence(step.sequence_length, step.mask_rate or 0.0) for step in steps)
    assert plan.flops(per_sequence) == pytest.approx(by_step, rel=1e-12)
    assert plan.flops(per_sequence, 0, 40) + plan.flops(per_sequence, 40) == pytest.approx(by_step, rel=1e-12)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"length_schedule": LENGTHS[::-1]}, "length_schedule: got"),
        (
            {"length_schedule": LENGTHS, "long_sequence": LENGTHS[0]},
            "which cannot be combined with `long_sequence`",
        ),
        ({"length_schedule": LENGTHS, "batch_size": 6}, r"batch_size: got 6, expected a multiple of length_schedule"),
        ({"initial_batch_fraction": 0.1, "batch_size": 8}, "batch_size: got 8, expected at least 10"),
    ],
)
def test_lengths_and_ramps_that_do_not_fit_are_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        TrainingSettings(**{"steps": 10, "batch_size": 8, **changes})


def test_a_cool_down_ends_at_zero_and_its_absence_changes_nothing() -> None:
    plan = StepPlan(published(1_000))
    rates = [plan.learning_rate(step) for step in range(1_000)]
    assert rates[984] == pytest.approx(0.001) and rates[-1] == pytest.approx(0.001 / 16)
    assert math.isclose(rates[983], 0.001, rel_tol=0.02)
