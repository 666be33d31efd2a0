"""Published values and the verdicts about ours."""

import csv
import math
from pathlib import Path

import pytest

from hatchery.analysis.published import combined_deviation, judge, read_published
from hatchery.errors import EvaluationError

MODELS = {
    ("LTG-BERT-base", "backbone"): "ltg_bert",
    ("ELC-BERT-base", "base"): "elc_biased",
    ("ELC-BERT-base", "zero"): "elc_zero",
    ("ELC-BERT-base", "normalized"): "elc_normalized",
    ("ELC-BERT-base", "weighted_output"): "elc_weighted_output",
}


@pytest.mark.parametrize(
    ("difference", "deviation", "verdict"),
    [
        (2.0, 1.0, "within"),
        (2.001, 1.0, "above"),
        (-2.001, 1.0, "below"),
        (-2.0, 1.0, "within"),
        (0.5, None, "within"),
        (0.51, None, "above"),
        (-0.51, None, "below"),
        (0.05, 0.0, "within"),
        (-0.06, 0.0, "below"),
        (85.3 - 84.8, None, "within"),
    ],
)
def test_ours_is_within_two_deviations_or_half_a_point(difference: float, deviation: float, verdict: str) -> None:
    assert judge(difference, deviation) == verdict


@pytest.mark.parametrize(
    ("published", "ours", "sampling", "combined"),
    [
        (3.0, 4.0, 100.0, 5.0),
        (None, 4.0, 100.0, 4.0),
        (3.0, None, None, 3.0),
        (3.0, None, 4.0, 5.0),
        (None, None, 1.5, 1.5),
        (0.0, 0.0, None, 0.0),
        (None, None, None, None),
    ],
)
def test_the_binomial_deviation_stands_in_only_where_ours_has_none_over_runs(
    published: float | None, ours: float | None, sampling: float | None, combined: float | None
) -> None:
    assert combined_deviation(published, ours, sampling) == combined


def test_a_published_value_given_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "strict.csv"
    row = "m,s,t,accuracy_percent,80.0,,Table 1,yes,\n"
    path.write_text("model,suite,task,metric,mean,std,source,comparable,note\n" + row + row)
    with pytest.raises(EvaluationError, match=r"strict\.csv, line 3: .* stands already in line 2"):
        read_published(path)


@pytest.mark.parametrize("damage", [("80.0", "eighty"), (",yes,", ",maybe,"), (",0.5,", ",-0.5,")])
def test_a_damaged_published_value_is_refused(tmp_path: Path, damage: tuple[str, str]) -> None:
    path = tmp_path / "strict.csv"
    row = "m,s,t,accuracy_percent,80.0,0.5,Table 1,yes,\n".replace(*damage)
    path.write_text("model,suite,task,metric,mean,std,source,comparable,note\n" + row)
    with pytest.raises(EvaluationError, match=r"strict\.csv, line 2"):
        read_published(path)


def test_every_shipped_table_of_published_values_can_be_read(repository: Path) -> None:
    paths = sorted((repository / "config" / "published").glob("*.csv"))
    assert paths
    for path in paths:
        values = read_published(path)
        assert all(value.source for value in values.values())
        assert all(math.isfinite(value.mean) for value in values.values())


def test_the_strict_values_are_those_of_tables_7_to_9_of_elc_bert(repository: Path, shared_directory: Path) -> None:
    shipped = read_published(repository / "config" / "published" / "strict.csv")
    expected: dict[tuple[str, str, str, str], tuple[float, float | None, str]] = {}
    for table, suite in ((7, "blimp_filtered"), (8, "supplement_filtered"), (9, "finetuning")):
        path = shared_directory / "reference" / "published" / f"elc_bert_table{table}.csv"
        with path.open(encoding="utf-8", newline="") as handle:
            for row in csv.DictReader(handle):
                model = MODELS.get((row["model"], row["variant"]))
                if model is None or row["track"] != "strict":
                    continue
                key = (model, suite, *_task_and_metric(table, row["task"], row["metric"]))
                std = float(row["std"]) if row["std"] else None
                expected[key] = (float(row["mean"]), std, f"ELC-BERT Table {table}")
    assert len(expected) == 5 * (13 + 6 + 12)
    assert {key: (value.mean, value.std, value.source) for key, value in shipped.items()} == expected


def _task_and_metric(table: int, task: str, metric: str) -> tuple[str, str]:
    if task == "average":
        return ("average", "score_percent") if table == 9 else ("phenomenon_average", "accuracy_percent")
    name = f"babylm_{task.replace('-', '_')}" if table == 9 else task
    return name, {"accuracy_pct": "accuracy_percent", "f1_pct": "f1_percent"}[metric]


def test_printed_averages_follow_from_the_printed_phenomena_where_they_are_called_comparable(repository: Path) -> None:
    values = read_published(repository / "config" / "published" / "strict.csv")
    averages = {key: value for key, value in values.items() if key[2] == "phenomenon_average" and value.comparable}
    assert len(averages) == 9
    for (model, suite, task, _), average in averages.items():
        cells = [v.mean for (m, s, t, _), v in values.items() if (m, s) == (model, suite) and t != task]
        assert sum(cells) / len(cells) == pytest.approx(average.mean, abs=0.1)
