"""Learning rates against the authors' values."""

import csv
import math
from pathlib import Path

import pytest
import torch

from hatchery.training.learning_rates import learning_rate, learning_rate_factor, warmup_steps
from hatchery.training.settings import ScheduleSettings

COSINE = ScheduleSettings("cosine", warmup_fraction=0.016, final_fraction=0.1)
LINEAR_AS_PUBLISHED = ScheduleSettings("linear_as_published", warmup_fraction=0.016, final_fraction=0.1)
# docs/papers/reduced-vocabulary.md, "Pretraining".
INVERSE = ScheduleSettings("inverse_square_root", warmup_fraction=0.05, final_fraction=0.0, warmup_steps_limit=4000)
NAMES = ["cosine", "linear", "linear_as_published", "inverse_square_root", "constant"]


def test_cosine_equals_the_measured_rates(golden_directory: Path) -> None:
    with (golden_directory / "lr" / "cosine_15625.csv").open() as handle:
        rows = list(csv.DictReader(handle))
    assert len(rows) == 50
    for row in rows:
        step = int(row["step"])
        assert learning_rate_factor(COSINE, step, 15_625) == pytest.approx(float(row["factor"]), rel=1e-12, abs=0)
        assert learning_rate(0.01, COSINE, step, 15_625) == pytest.approx(float(row["lr"]), rel=1e-12, abs=0)


@pytest.mark.parametrize(
    ("step", "rate"),
    [
        (0, 0.0),
        (1, 2e-5),
        (250, 0.005),
        (500, 0.01),
        (8000, 0.0087424),
        (15_625, 0.0056149),
        (15_875, 0.0055),
        (28_125, 0.0012274),
        (31_249, 0.001),
    ],
)
def test_cosine_equals_the_printed_table_of_the_bnc_runs(step: int, rate: float) -> None:
    # Allow one unit of the last printed digit, because the rate of step 8000 was rounded twice.
    assert learning_rate(0.01, COSINE, step, 31_250) == pytest.approx(rate, rel=0, abs=1e-7)


@pytest.mark.parametrize(("steps", "warmup"), [(31_250, 500), (62_500, 1000), (15_625, 250), (7812, 124)])
def test_the_runs_of_other_lengths_have_the_printed_warm_up(steps: int, warmup: int) -> None:
    assert warmup_steps(COSINE, steps) == warmup
    assert learning_rate_factor(COSINE, warmup - 1, steps) < 1 == learning_rate_factor(COSINE, warmup, steps)


def test_the_published_linear_schedule_has_the_printed_values_and_ends_near_zero() -> None:
    assert learning_rate(0.01, LINEAR_AS_PUBLISHED, 500, 31_250) == pytest.approx(0.00984, rel=1e-7)
    assert learning_rate_factor(LINEAR_AS_PUBLISHED, 0, 31_250) == 1e-9
    assert learning_rate_factor(LINEAR_AS_PUBLISHED, 31_250, 31_250) == pytest.approx(1e-9, rel=1e-6)
    assert max(learning_rate_factor(LINEAR_AS_PUBLISHED, step, 31_250) for step in range(31_250)) < 0.9841


def test_the_published_linear_schedule_is_the_product_of_two_of_torch() -> None:
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.01)
    ramp = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=1e-9, end_factor=1.0, total_iters=8)
    decay = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=1.0, end_factor=1e-9, total_iters=500)
    for step in range(500):
        expected = optimizer.param_groups[0]["lr"]
        assert learning_rate(0.01, LINEAR_AS_PUBLISHED, step, 500) == pytest.approx(expected, rel=1e-6), step
        optimizer.step()
        ramp.step()
        decay.step()


@pytest.mark.parametrize(
    ("step", "factor"),
    [
        (0, 1 / 1773),
        (1, 1 / 1773),
        (2, 2 / 1773),
        (1772, 1772 / 1773),
        (1773, 1.0),
        (1774, math.sqrt(1773 / 1774)),
        (4 * 1773, 0.5),
        (35_475, 0.2236),
    ],
)
def test_inverse_square_root_has_the_values_of_the_published_run(step: int, factor: float) -> None:
    assert warmup_steps(INVERSE, 35_475) == 1773
    tolerance = 5e-5 if factor == 0.2236 else 1e-12
    assert learning_rate_factor(INVERSE, step, 35_475) == pytest.approx(factor, rel=0, abs=tolerance)


def test_the_warm_up_of_the_reduced_vocabulary_study_is_at_least_1_and_at_most_4000_steps() -> None:
    factors = [learning_rate_factor(INVERSE, step, 10) for step in range(4)]
    assert factors == [1.0, 1.0, math.sqrt(1 / 2), math.sqrt(1 / 3)]
    assert [warmup_steps(INVERSE, steps) for steps in (79_980, 80_000, 1_000_000)] == [3999, 4000, 4000]
    assert learning_rate_factor(INVERSE, 16_000, 1_000_000) == 0.5


@pytest.mark.parametrize("name", ["cosine", "linear", "constant"])
def test_the_limit_shortens_the_warm_up_of_every_schedule(name: str) -> None:
    limited = ScheduleSettings(name, 0.5, 0.1, warmup_steps_limit=10)
    shorter = ScheduleSettings(name, 0.1, 0.1)
    assert [learning_rate_factor(limited, step, 100) for step in range(100)] == [
        learning_rate_factor(shorter, step, 100) for step in range(100)
    ]


@pytest.mark.parametrize("name", ["cosine", "linear", "constant"])
def test_a_schedule_rises_from_zero_to_the_peak_and_never_rises_again(name: str) -> None:
    schedule = ScheduleSettings(name, warmup_fraction=0.1, final_fraction=0.2)
    factors = [learning_rate_factor(schedule, step, 100) for step in range(101)]
    assert factors[0] == 0 and factors[10] == 1
    assert factors[:11] == sorted(factors[:11]) and factors[10:] == sorted(factors[10:], reverse=True)
    assert factors[100] == pytest.approx(1.0 if name == "constant" else 0.2)


@pytest.mark.parametrize("name", NAMES)
def test_without_warmup_the_first_update_has_the_peak_rate_even_in_a_run_of_one_step(name: str) -> None:
    assert learning_rate_factor(ScheduleSettings(name, 0.0, 0.1), 0, 1) == 1.0


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("warmup", [0.0, 0.016, 1.0])
def test_every_rate_is_a_share_of_the_peak_in_runs_of_any_length(name: str, warmup: float) -> None:
    schedule = ScheduleSettings(name, warmup, 0.1)
    for steps in (1, 2, 7, 400):
        assert all(0 <= learning_rate_factor(schedule, step, steps) <= 1 for step in range(steps + 1))


@pytest.mark.parametrize("name", ["inverse_square_root", "constant"])
def test_a_warm_up_in_steps_gives_a_beginning_the_rates_of_the_whole_run(name: str) -> None:
    schedule = ScheduleSettings(name, warmup_steps=40)
    whole = [learning_rate(0.01, schedule, step, 500) for step in range(500)]
    beginning = [learning_rate(0.01, schedule, step, 20) for step in range(20)]
    continuation = [learning_rate(0.01, schedule, step, 500) for step in range(20, 500)]
    assert beginning + continuation == whole
    assert warmup_steps(schedule, 20) == warmup_steps(schedule, 500) == 40


@pytest.mark.parametrize(
    ("name", "cooldown", "expected"),
    [
        # At step 55, 45 of the 90 steps after the warm-up are done, so both rates are halfway between 1 and 0.2.
        ("linear", 0.0, {5: 0.5, 10: 1.0, 19: 0.92, 55: 0.6, 99: 0.2 + 0.8 / 90, 100: 0.2}),
        ("cosine", 0.0, {5: 0.5, 10: 1.0, 40: 0.8, 55: 0.6, 70: 0.4, 100: 0.2}),
        # The last 20 steps go from 0.2 to 0, independently of the earlier steps.
        ("linear", 0.2, {55: 0.6, 79: 1 - 0.8 * 69 / 90, 80: 0.2, 85: 0.15, 90: 0.1, 99: 0.01}),
        ("constant", 0.2, {79: 1.0, 80: 0.2, 90: 0.1}),
        # The cool-down of 7.9 steps is rounded down to 7.
        ("constant", 0.079, {92: 1.0, 93: 0.2, 100: 0.0}),
    ],
)
def test_rates_of_a_hundred_steps_are_those_worked_out_by_hand(
    name: str, cooldown: float, expected: dict[int, float]
) -> None:
    schedule = ScheduleSettings(name, 0.1, 0.2, cooldown_fraction=cooldown)
    found = {step: learning_rate_factor(schedule, step, 100) for step in expected}
    assert found == pytest.approx(expected)
