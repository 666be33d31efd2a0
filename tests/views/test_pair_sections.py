"""The averages in a summary's section of a suite of minimal pairs."""

from types import SimpleNamespace
from typing import Any

import pytest

from hatchery.evaluation.minimal_pairs.measurements import ACCURACY, ACCURACY_TIES_CORRECT
from hatchery.views.sections.minimal_pairs import _suite_section


@pytest.mark.parametrize(("by_paradigm", "shown"), [((70.0, 60.0), 1), ((70.0, 60.5), 2)])
def test_the_mean_over_paradigms_is_shown_where_it_differs_for_any_model(
    by_paradigm: tuple[float, float], shown: int
) -> None:
    means = {
        (model, "s", task): mean
        for task, values in (("phenomenon_average", (70.0, 60.0)), ("paradigm_average", by_paradigm))
        for model, mean in zip("ab", values, strict=True)
    }
    rows = [
        SimpleNamespace(suite=suite, task=task, metric=ACCURACY, mean=mean) for (_, suite, task), mean in means.items()
    ]
    rows += [SimpleNamespace(suite="s", task=task, metric=ACCURACY, mean=65.0) for task in ("pair_average", "binding")]
    summary: Any = SimpleNamespace(
        rows=rows,
        models=["a", "b"],
        row=lambda model, suite, task, metric: SimpleNamespace(mean=means[model, suite, task]),
    )
    measures = _suite_section(summary, "s", "title", "note").measures
    found = [measure.label for measure in measures if measure.metric == ACCURACY_TIES_CORRECT]
    assert found == ["phenomenon average, ties correct", "paradigm average, ties correct"][:shown]
    # No average is listed among the phenomena.
    assert [measure.label for measure in measures if measure.metric == ACCURACY] == ["binding"]
