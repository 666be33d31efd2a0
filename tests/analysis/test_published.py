"""Published values and the verdicts about ours."""

import csv
import math
from pathlib import Path

import pytest
import yaml

from hatchery.analysis.published import combined_deviation, half_of_last_digit, judge, read_published
from hatchery.analysis.task_averages import PUBLISHED_AVERAGES
from hatchery.errors import EvaluationError

ACCURACY = "accuracy_percent"

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


@pytest.mark.parametrize(("number", "half"), [("61.4", 0.05), ("-72", 0.5), ("0.25", 0.005)])
def test_the_rounding_of_a_printed_number_is_half_of_its_last_digit(number: str, half: float) -> None:
    assert half_of_last_digit(number) == pytest.approx(half)


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


SUITES = {"7": "blimp_filtered", "8": "supplement_filtered", "9": "babylm_glue", "10": "msgs"}


def test_the_strict_values_are_those_of_tables_7_to_10_of_elc_bert(repository: Path, shared_directory: Path) -> None:
    shipped = read_published(repository / "config" / "published" / "strict.csv")
    expected: dict[tuple[str, str, str, str], tuple[float, float | None, str]] = {}
    for table in ("2", "3", *SUITES):
        path = shared_directory / "reference" / "published" / f"elc_bert_table{table}.csv"
        with path.open(encoding="utf-8", newline="") as handle:
            for row in csv.DictReader(handle):
                model = MODELS.get((row["model"], row["variant"]))
                if model is None or row["track"] != "strict":
                    continue
                # The mean of the biases stands in the tables of results; Table 2 has it for the backbone alone.
                if table in ("2", "3") and (row["task"] != "msgs" or (table == "2" and model != "ltg_bert")):
                    continue
                scale = 100 if row["metric"] in ("lbs", "mcc") else 1
                std = round(scale * float(row["std"]), 1) if row["std"] else None
                key = (model, *_suite_task_and_metric(table, row["task"], row["metric"]))
                expected[key] = (round(scale * float(row["mean"]), 1), std, f"ELC-BERT Table {table}")
    assert len(expected) == 5 * (13 + 6 + 12 + 12)
    assert {key: (value.mean, value.std, value.source) for key, value in shipped.items()} == expected


def _suite_task_and_metric(table: str, task: str, metric: str) -> tuple[str, str, str]:
    if table in ("2", "3"):
        return "msgs", "average", "score_percent"
    if task == "average":
        return SUITES[table], *(("average", "score_percent") if table == "9" else ("phenomenon_average", ACCURACY))
    prefix = {"9": "babylm_", "10": "msgs_"}.get(table, "")
    names = {"accuracy_pct": ACCURACY, "f1_pct": "f1_percent", "mcc": "mcc_percent", "lbs": "mcc_percent"}
    return SUITES[table], f"{prefix}{task.replace('-', '_')}", names[metric]


def test_the_values_of_a_correlation_are_known_to_half_a_point(repository: Path) -> None:
    for (_, suite, _, _), value in read_published(repository / "config" / "published" / "strict.csv").items():
        assert value.rounding == pytest.approx(0.5 if suite == "msgs" else 0.05)


def test_published_tasks_are_tasks_of_the_configuration_under_their_first_metric(repository: Path) -> None:
    for _, suite, task, metric in read_published(repository / "config" / "published" / "strict.csv"):
        if suite in ("babylm_glue", "msgs") and task != "average":
            block = {"base": task}
            while base := block.pop("base", None):
                path = repository / "config" / "tasks" / f"{base}.yaml"
                block = {**yaml.safe_load(path.read_text(encoding="utf-8")), **block}
            assert block["suite"] == suite
            assert f"{block['metrics'][0]}_percent" == metric


def test_printed_averages_of_tasks_follow_from_the_printed_tasks(repository: Path) -> None:
    values = read_published(repository / "config" / "published" / "strict.csv")
    for model in MODELS.values():
        for suite, slack in (("babylm_glue", 0.1), ("msgs", 1.0)):
            members = [task for ((task, _),) in PUBLISHED_AVERAGES[suite]["average"]]
            means = [v.mean for (m, s, task, _), v in values.items() if (m, s) == (model, suite) and task in members]
            assert len(means) == len(members)
            printed = values[model, suite, "average", "score_percent"]
            assert sum(means) / len(means) == pytest.approx(printed.mean, abs=slack)


def test_printed_averages_follow_from_the_printed_phenomena_where_they_are_called_comparable(repository: Path) -> None:
    values = read_published(repository / "config" / "published" / "strict.csv")
    averages = {key: value for key, value in values.items() if key[2] == "phenomenon_average" and value.comparable}
    assert len(averages) == 9
    for (model, suite, task, _), average in averages.items():
        cells = [v.mean for (m, s, t, _), v in values.items() if (m, s) == (model, suite) and t != task]
        assert sum(cells) / len(cells) == pytest.approx(average.mean, abs=0.1)
