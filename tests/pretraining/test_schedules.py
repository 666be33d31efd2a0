"""Learning rates against the values measured on the authors' code, and the shape of each schedule."""

import csv
from pathlib import Path

import pytest

from hatchery.pretraining.schedules import learning_rate, learning_rate_factor
from hatchery.pretraining.settings import ScheduleSettings

COSINE = ScheduleSettings("cosine", warmup_fraction=0.016, final_fraction=0.1)


def test_cosine_equals_the_measured_rates(golden_directory: Path) -> None:
    with (golden_directory / "lr" / "cosine_15625.csv").open() as handle:
        rows = list(csv.DictReader(handle))
    assert len(rows) == 50
    for row in rows:
        step = int(row["step"])
        assert learning_rate_factor(COSINE, step, 15_625) == pytest.approx(float(row["factor"]), rel=1e-12, abs=0)
        assert learning_rate(0.01, COSINE, step, 15_625) == pytest.approx(float(row["lr"]), rel=1e-12, abs=0)


@pytest.mark.parametrize(("step", "rate"), [(0, 0.0), (1, 2e-5), (250, 0.005), (500, 0.01), (15_875, 0.0055)])
def test_cosine_equals_the_table_of_the_bnc_runs(step: int, rate: float) -> None:
    assert learning_rate(0.01, COSINE, step, 31_250) == pytest.approx(rate, rel=1e-9)


@pytest.mark.parametrize("name", ["cosine", "linear", "constant"])
def test_a_schedule_rises_from_zero_to_the_peak_and_never_rises_again(name: str) -> None:
    schedule = ScheduleSettings(name, warmup_fraction=0.1, final_fraction=0.2)
    factors = [learning_rate_factor(schedule, step, 100) for step in range(101)]
    assert factors[0] == 0 and factors[10] == 1
    assert factors[:11] == sorted(factors[:11]) and factors[10:] == sorted(factors[10:], reverse=True)
    assert factors[100] == pytest.approx(1.0 if name == "constant" else 0.2)


@pytest.mark.parametrize("name", ["cosine", "linear", "constant"])
def test_without_warmup_the_first_update_has_the_peak_rate_even_in_a_run_of_one_step(name: str) -> None:
    assert learning_rate_factor(ScheduleSettings(name, 0.0, 0.1), 0, 1) == 1.0
