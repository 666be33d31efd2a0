"""Averages of models side by side: the compared models, and their differences by hand."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from summary_text import write_rows_of_summary, write_summary

from hatchery.analysis.analyses import comparison
from hatchery.analysis.analyses.analysis import Findings, Study
from hatchery.analysis.summary_rows import SummaryRow
from hatchery.experiment.seeded_run import SeededRun

PERPLEXITY, BLIMP = ("perplexity", "test", "perplexity"), ("blimp", "average_over_phenomena", "accuracy_percent")
MEANS: Mapping[str, Mapping[tuple[str, str, str], tuple[str, str]]] = {
    "one/small": {PERPLEXITY: ("20.0", "3.0"), BLIMP: ("60.0", "")},
    "one/large": {PERPLEXITY: ("10.0", ""), BLIMP: ("70.0", "1.0")},
    "two/small": {PERPLEXITY: ("25.5", "4.0"), BLIMP: ("61.25", "")},
    # This model has no numbers of minimal pairs and no perplexity.
    "two/large": {PERPLEXITY: ("", "")},
    "two/other": {BLIMP: ("50.0", "")},
}
Compared = list[tuple[str, str, str, float, float | None]]


def run_of(model: str) -> SeededRun:
    experiment, _, name = model.partition("/")
    return SeededRun(f"{model}-s1", model, 1, f"{experiment}/{name}, 5 layers" if name == "large" else "")


@pytest.fixture
def averaged(tmp_path: Path) -> Study:
    lines = [
        ",".join((model.partition("/")[0], model, *key, *number, "2"))
        for model, numbers in MEANS.items()
        for key, number in numbers.items()
    ]
    return Study("both", tuple(map(run_of, MEANS)), tables={"summary": write_summary(tmp_path, lines)})


def found(study: Study, **settings: Any) -> Findings:
    return comparison.ANALYSIS.run(comparison.ComparisonSettings(**settings), study)


def differences(rows: Sequence[Mapping[str, Any]]) -> Compared:
    return [(row["model"], row["against"], row["suite"], row["difference"], row["deviation"]) for row in rows]


def test_each_model_is_compared_with_the_one_of_its_name_in_the_first_experiment(averaged: Study) -> None:
    # Deviations of 3 and 4 combine to 5. If one deviation is missing, the combination is missing, too.
    assert differences(found(averaged).rows) == [
        ("two/small", "one/small", "perplexity", 5.5, 5.0),
        ("two/small", "one/small", "blimp", 1.25, None),
    ]


def test_all_others_are_compared_with_a_model_that_is_named(averaged: Study) -> None:
    rows = found(averaged, against="one/large").rows
    assert differences(rows) == [
        ("one/small", "one/large", "perplexity", 10.0, None),
        ("one/small", "one/large", "blimp", -10.0, None),
        ("two/small", "one/large", "perplexity", 15.5, None),
        ("two/small", "one/large", "blimp", -8.75, None),
        ("two/other", "one/large", "blimp", -20.0, None),
    ]
    assert [(row["mean"], row["std"], row["against_mean"], row["against_std"]) for row in rows[:2]] == [
        (20.0, 3.0, 10.0, None),
        (60.0, None, 70.0, 1.0),
    ]


def test_the_table_says_what_people_call_the_models_and_the_sign_of_the_difference(averaged: Study) -> None:
    (table,) = found(averaged, against="one/large").tables
    assert [group.heading for group in table.groups] == [
        "one/small against one/large, 5 layers",
        "two/small against one/large, 5 layers",
        "two/other against one/large, 5 layers",
    ]
    first, second = table.rows[:2]
    assert [getattr(cell, "text", cell) for cell in first.cells] == ["test perplexity", "20.00", "10.00", "+10.00"]
    assert [getattr(cell, "text", cell) for cell in second.cells][1:] == ["60.0", "70.0", "-10.0"]
    assert [getattr(cell, "deviation", "") for cell in second.cells] == ["", "", "1.0", ""]
    (own,) = found(averaged).tables
    assert [getattr(cell, "deviation", "") for cell in own.rows[0].cells] == ["", "4.00", "3.00", "5.00"]
    assert own.caption == "Differences of averages" == table.caption


def test_differences_of_single_seeds_are_named_and_numbers_on_other_text_have_none(tmp_path: Path) -> None:
    numbers = {"one/small": (20.0, 1, "text: a"), "two/small": (25.5, 2, "text: a"), "two/other": (30.0, 2, "text: b")}
    rows = [
        SummaryRow(
            model[:3], model, *PERPLEXITY, mean, None, seeds, 0, None, 0, None, None, "", None, "", "", basis=basis
        )
        for model, (mean, seeds, basis) in numbers.items()
    ]
    # Each seed has three runs of fine-tuning.
    rows = [replace(row, seeds=row.n, n=3 * row.n) for row in rows]
    study = Study("both", tuple(map(run_of, numbers)), tables={"summary": write_rows_of_summary(tmp_path, rows)})
    findings = found(study, against="one/small")
    (table,) = findings.tables
    assert table.caption == "Differences of averages, each between two trained models"
    assert any("one pretraining seed" in note for note in findings.notes)
    assert any("the texts differ" in note for note in findings.notes)
    assert [row["difference"] for row in findings.rows] == [5.5, None]
    assert [(row["seeds"], row["against_seeds"]) for row in findings.rows] == [(2, 1), (2, 1)]
    assert (findings.rows[1]["basis"], findings.rows[1]["against_basis"]) == ("text: b", "text: a")
    assert [getattr(cell, "text", cell) for cell in table.rows[1].cells][1:] == ["30.00", "20.00", "-"]
    mixed = found(study, against="two/other")
    assert mixed.tables[0].caption == "Differences of averages"
    # The first of the two compared models has one seed.
    assert any("one pretraining seed" in note for note in mixed.notes)
    assert any(note.startswith("Not compared: test perplexity, because the texts differ") for note in mixed.notes)


def test_without_two_models_of_one_name_the_page_says_what_to_do(averaged: Study) -> None:
    alone = replace(averaged, runs=tuple(run for run in averaged.runs if run.model.startswith("one/")))
    nothing = found(alone)
    assert (list(nothing.rows), list(nothing.tables)) == ([], [])
    assert "Set `against` to the model with which all" in nothing.notes[0]
    # The reference model has no average.
    assert list(found(averaged, against="two/large").notes) == [comparison.NO_AVERAGE]


def test_a_model_is_compared_with_its_variant(averaged: Study) -> None:
    settings = comparison.ComparisonSettings(variant="r")
    study = replace(averaged, runs=tuple(map(run_of, ("one/x", "one/x_r", "one/y", "two/x_r"))))
    comparison.check(settings, study)
    models = ["one/x", "one/x_r", "one/y", "two/x_r"]
    assert list(comparison.pairs(settings, models)) == [("one/x", "one/x_r")]
