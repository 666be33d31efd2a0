"""The analysis `comparison`: which models are set beside each other, and the numbers of their differences."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from summary_text import write_summary

from hatchery.analysis.analyses.analysis import Findings, Study
from hatchery.analysis.analyses.comparison import ANALYSIS, ComparisonSettings
from hatchery.errors import ConfigError
from hatchery.experiment.seeded_run import SeededRun

PERPLEXITY, BLIMP = ("perplexity", "test", "perplexity"), ("blimp", "average_over_phenomena", "accuracy_percent")
MEANS: Mapping[str, Mapping[tuple[str, str, str], tuple[str, str]]] = {
    "one/small": {PERPLEXITY: ("20.0", "3.0"), BLIMP: ("60.0", "")},
    "one/large": {PERPLEXITY: ("10.0", ""), BLIMP: ("70.0", "1.0")},
    "two/small": {PERPLEXITY: ("25.5", "4.0"), BLIMP: ("61.25", "")},
    # It has no numbers of minimal pairs, and one of its runs failed.
    "two/large": {PERPLEXITY: ("", "")},
    "two/other": {BLIMP: ("50.0", "")},
}
Compared = list[tuple[str, str, str, float, float | None]]


def run_of(model: str) -> SeededRun:
    experiment, _, name = model.partition("/")
    return SeededRun(f"{model}-s1", model, 1, f"{experiment}/{name}, 5 layers" if name == "large" else "")


@pytest.fixture
def study(tmp_path: Path) -> Study:
    lines = [
        ",".join((model.partition("/")[0], model, *key, *number, "2"))
        for model, numbers in MEANS.items()
        for key, number in numbers.items()
    ]
    return Study("both", tuple(map(run_of, MEANS)), tables={"summary": write_summary(tmp_path, lines)})


def found(study: Study, **settings: Any) -> Findings:
    return ANALYSIS.run(ComparisonSettings(**settings), study)


def compared(rows: Sequence[Mapping[str, Any]]) -> Compared:
    return [(row["model"], row["against"], row["suite"], row["difference"], row["deviation"]) for row in rows]


def test_each_model_is_compared_with_the_one_of_its_name_in_the_first_experiment(study: Study) -> None:
    # The deviations of 3 and 4 make one of 5; without one of the two there is none.
    assert compared(found(study).rows) == [
        ("two/small", "one/small", "perplexity", 5.5, 5.0),
        ("two/small", "one/small", "blimp", 1.25, None),
    ]


def test_all_others_are_compared_with_a_model_that_is_named(study: Study) -> None:
    rows = found(study, against="one/large").rows
    assert compared(rows) == [
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


def test_the_table_says_what_people_call_the_models_and_the_sign_of_the_difference(study: Study) -> None:
    (table,) = found(study, against="one/large").tables
    assert [group.heading for group in table.groups] == [
        "one/small against one/large, 5 layers",
        "two/small against one/large, 5 layers",
        "two/other against one/large, 5 layers",
    ]
    first, second = table.rows[:2]
    assert [getattr(cell, "text", cell) for cell in first.cells] == ["test perplexity", "20.00", "10.00", "+10.00"]
    assert [getattr(cell, "text", cell) for cell in second.cells][1:] == ["60.0", "70.0", "-10.0"]


def test_without_two_models_of_one_name_the_page_says_what_to_do(study: Study) -> None:
    alone = replace(study, runs=tuple(run for run in study.runs if run.model.startswith("one/")))
    nothing = found(alone)
    assert (list(nothing.rows), list(nothing.tables)) == ([], [])
    assert "Name one: `against`." in nothing.notes[0]


def test_an_unknown_model_is_told_with_the_nearest(study: Study) -> None:
    with pytest.raises(ConfigError, match=r"against: got 'one/lage', no model of this study; .*mean 'one/large'"):
        ANALYSIS.check(ComparisonSettings(against="one/lage"), study)
