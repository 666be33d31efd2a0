"""Rows of a direct evaluation: intervals, and the summary rows, by hand."""

from typing import Any

import pytest

from hatchery.evaluation.direct.rows import EvaluationResult, frame_of_rows, summary_of
from hatchery.evaluation.evaluation import measured


def test_a_printed_result_has_a_line_for_each_score_with_all_that_is_known_of_it() -> None:
    rows = [
        measured("s", "a", "task", "accuracy_percent", 61.234, sampling_deviation=2.0, items=1234, blind_guess=50.0),
        measured("s", "b", "task", "f1_percent", None, failed="nan"),
    ]
    frame = frame_of_rows(rows)
    head, first, second = str(EvaluationResult("m", "s", frame, frame, {}, {}, {})).splitlines()
    assert head == "s: m"
    assert " ".join(first.split()) == "a accuracy_percent 61.23 (57.31 to 65.15), 1,234 items, blind guess 50.00"
    assert " ".join(second.split()) == "b f1_percent -, nan"


@pytest.mark.parametrize(
    ("metric", "low"),
    [
        *((f"{name}_percent", -16.0) for name in ("mcc", "pearson", "spearman", "correlation", "partial_r2_gain")),
        *(("accuracy_percent", 0.0), ("f1_percent", 0.0), ("loss_nats", -16.0)),
    ],
)
def test_only_a_percentage_that_cannot_be_negative_has_an_interval_from_0(metric: str, low: float) -> None:
    frame = frame_of_rows([measured("s", "t", "task", metric, 3.6, sampling_deviation=10.0)])
    assert frame.select("low", "high").row(0) == pytest.approx((low, 3.6 + 19.6))


def finetuned(value: float | None, seed: int, failed: str = "") -> dict[str, Any]:
    return measured("glue", "rte", "task", "accuracy_percent", value, finetuning_seed=seed, failed=failed, items=9)


def test_intervals_are_1_96_deviations_and_percentages_stay_percentages() -> None:
    deviations = {"accuracy_percent": (98.0, 2.0), "spearman_percent": (1.0, 5.0), "perplexity": (120.0, 30.0)}
    rows = [
        measured("s", "t", "average", metric, value, sampling_deviation=deviation)
        for metric, (value, deviation) in deviations.items()
    ]
    rows += [measured("s", "u", "average", "accuracy_percent", 60.0), finetuned(None, 1, "nan")]
    found = frame_of_rows(rows).select("low", "high").rows()
    assert found[:3] == [
        pytest.approx((98 - 3.92, 100.0)),
        pytest.approx((1 - 9.8, 1 + 9.8)),
        pytest.approx((120 - 58.8, 120 + 58.8)),
    ]
    assert found[3:] == [(None, None)] * 2


def test_averages_that_repeat_each_other_are_shown_once() -> None:
    def shown(of_phenomena: float) -> str:
        values = (("phenomenon_average", of_phenomena), ("paradigm_average", 60.0))
        rows = [measured("s", task, "average", "accuracy_percent", value, items=9) for task, value in values]
        frame = frame_of_rows(rows)
        result = EvaluationResult("m", "s", frame, frame, {}, {}, {})
        assert ("phenomenon_average" in result._repr_html_()) == ("phenomenon_average" in str(result))
        return str(result)

    assert "phenomenon" not in shown(60.0) and "paradigm_average" in shown(60.0)
    assert "phenomenon_average" in shown(61.0) and "paradigm_average" in shown(61.0)


def test_averages_splits_and_tasks_stand_for_the_whole_with_ties_as_the_suite_counts_them() -> None:
    places = [("average", "accuracy_percent"), ("average", "accuracy_ties_correct_percent"), ("split", "perplexity")]
    places += [("paradigm", "accuracy_percent"), ("word", "surprisal")]
    rows = frame_of_rows([measured("s", f"t{n}", level, metric, 1.0) for n, (level, metric) in enumerate(places)])  # type: ignore[arg-type]
    assert summary_of(rows)["task"].to_list() == ["t0", "t2"]
    assert summary_of(rows[3:])["task"].to_list() == ["t3"]


def test_of_several_fine_tunings_it_is_their_mean_with_student_s_interval() -> None:
    (row,) = summary_of(frame_of_rows([finetuned(80.0, 1), finetuned(90.0, 2), finetuned(None, 3, "nan")])).rows(
        named=True
    )
    # The standard deviation is sqrt(50), the standard error 5, and the quantile of t with one degree of freedom 12.706.
    assert row["value"] == 85.0 and row["failed"] == "1 of 3 runs failed"
    assert (row["low"], row["high"]) == pytest.approx((85 - 63.531, 100.0), abs=1e-3)
    (row,) = summary_of(frame_of_rows([finetuned(80.0, 1), finetuned(None, 2, "nan")])).rows(named=True)
    assert (row["value"], row["low"]) == (80.0, None)
