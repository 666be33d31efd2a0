import builtins
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from hatchery.experiment.project import Project
from hatchery.modeling.families import training_flops_per_sequence
from hatchery.sums import plain_sum
from hatchery.training.settings import pretrain_settings
from hatchery.training.stages.pretrain import pretraining_settings
from hatchery.training.step_plan import StepPlan
from hatchery.typed import plain


def test_floats_are_added_one_by_one_whatever_sum_does_in_this_python() -> None:
    # Python 3.12's `sum` returns 1.0 for these numbers.
    assert plain_sum([0.1] * 10) == 0.9999999999999999
    assert plain_sum([]) == 0.0


def test_operations_of_a_training_are_the_same_whatever_sum_does(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = pretrain_settings(plain(pretraining_settings(Project(repository / "config"), "demo", "ltg_bert-s42")))
    plan, exact = StepPlan(settings), builtins.sum

    def of_one(length: int, labelled: float) -> float:
        return training_flops_per_sequence(settings.model, 1663, length, labelled, settings.batch_size)

    def found() -> list[float]:
        return [*(plan.flops(of_one, 0, end) for end in range(1, 100)), *(of_one(n, 0.4) for n in range(10, 100))]

    def of_later_pythons(values: Iterable[Any], start: Any = 0) -> Any:
        values = list(values)
        has_floats = any(isinstance(value, float) for value in values)
        return math.fsum([start, *values]) if has_floats else exact(values, start)

    here = found()
    monkeypatch.setattr(builtins, "sum", of_later_pythons)
    assert found() == here
