"""A summary's section of a suite of minimal pairs: averages, correlations and the best temperature."""

from types import SimpleNamespace
from typing import Any

import pytest

from hatchery.evaluation.minimal_pairs.measurements import (
    ACCURACY,
    ACCURACY_TIES_CORRECT,
    AT_BEST_TEMPERATURE,
    CORRELATION,
)
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


def test_only_the_suite_with_a_best_temperature_says_that_it_is_an_upper_bound() -> None:
    metrics = {"s": (ACCURACY,), "t": (ACCURACY, AT_BEST_TEMPERATURE)}
    rows = [
        SimpleNamespace(suite=suite, task="binding", metric=metric) for suite, own in metrics.items() for metric in own
    ]
    summary: Any = SimpleNamespace(rows=rows, models=[])
    notes = {suite: _suite_section(summary, suite, "title", "Accuracy.").note for suite in metrics}
    bound = "The best of 61 temperatures is selected on the evaluated pairs, so the score is an upper bound."
    assert notes == {"s": "Accuracy.", "t": f"Accuracy. {bound}"}


def test_a_correlation_is_labelled_as_such_once_for_all_models() -> None:
    rows = [SimpleNamespace(suite="wug", task=task, metric=CORRELATION) for task in ("b_c", "a", "b_c")]
    summary: Any = SimpleNamespace(rows=rows, models=[])
    measures = _suite_section(summary, "wug", "title", "note").measures
    found = [(measure.label, measure.task) for measure in measures if measure.metric == CORRELATION]
    of = "correlation with human preferences"
    assert found == [(f"a, {of}", "a"), (f"b c, {of}", "b_c")]
