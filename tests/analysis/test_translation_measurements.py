"""Measurements of models that translate, and where the summaries for people show them."""

from types import SimpleNamespace
from typing import Any

import pytest

from hatchery.analysis.measurements import learning_measurements
from hatchery.analysis.scores import direction
from hatchery.analysis.summary import Summary
from hatchery.analysis.summary_rows import SummaryRow
from hatchery.views.summary_markdown import markdown_summary
from hatchery.views.summary_sections import sections
from hatchery.views.summary_text import text_summary

MANIFEST: Any = SimpleNamespace(digest="abc")


def learning(*points: tuple[int, float], steps: int = 100) -> dict[tuple[str, str], float | None]:
    curve = [{"step": step, "loss": 1.0} | {"development_bleu": score} for step, score in points]
    found = learning_measurements({}, MANIFEST, [*curve, {"step": 1000, "development_bleu": None}], steps)
    assert all((one["kind"], one["suite"]) == ("pretraining", "pretraining") for one in found)
    return {(one["task"], one["metric"]): one["value"] for one in found}


def test_the_area_is_that_of_the_first_steps_divided_by_their_number() -> None:
    # Trapezoids of 50 steps: (0 + 10) / 2 and (10 + 20) / 2; the later score counts for the highest alone.
    found = learning((0, 0.0), (50, 10.0), (100, 20.0), (150, 90.0))
    assert found == {("development", "best_bleu"): 90.0, ("first_100_steps", "alc_bleu"): 10.0}


def test_an_end_between_two_measurements_lies_on_the_line_between_them() -> None:
    # 0 to 15 over 100 steps, where the line from 10 at step 50 to 20 at step 150 has 15.
    assert learning((0, 0.0), (50, 10.0), (150, 20.0))["first_100_steps", "alc_bleu"] == pytest.approx(8.75)


@pytest.mark.parametrize("points", [[(0, 1.0), (50, 2.0), (99, 3.0)], [(25, 1.0), (50, 2.0), (100, 3.0)]])
def test_a_curve_that_does_not_cover_the_first_steps_has_no_area(points: list[tuple[int, float]]) -> None:
    assert learning(*points) == {("development", "best_bleu"): 3.0}


def test_a_model_that_translates_nothing_has_no_scores() -> None:
    assert learning() == {}


def row(suite: str, task: str, metric: str, mean: float) -> SummaryRow:
    return SummaryRow("mine", "zero", suite, task, metric, mean, 0.5, 2, 0, mean, 0, None, None, "", None, "", "abc")


ROWS = [
    row("pretraining", "development", "best_bleu", 61.0),
    row("pretraining", "development", "perplexity", 3.0),
    row("pretraining", "first_20000_steps", "alc_bleu", 41.25),
    row("translation", "other_domain", "bleu", 30.0),
    row("translation", "other_domain", "chrf", 40.0),
    row("translation", "test", "bleu", 60.0),
    row("translation", "test", "chrf", 70.0),
]
SUMMARY = Summary(ROWS, ["zero"], experiment="mine")


def test_the_summaries_show_every_test_set_the_highest_score_and_the_area() -> None:
    shown = next(section for section in sections(SUMMARY) if section.title == "Translation")
    assert [measure.label for measure in shown.measures] == [
        "other domain BLEU",
        "other domain chrF",
        "test BLEU",
        "test chrF",
        "highest BLEU of development",
        "area of BLEU, first 20000 steps",
    ]
    text = text_summary(SUMMARY)
    assert "area of BLEU, first 20000 steps" in text and "41.25 +-0.50" in text
    assert "70.00" in markdown_summary(SUMMARY)


def test_a_summary_without_translations_has_no_such_section() -> None:
    plain = Summary(ROWS[1:2], ["zero"], experiment="mine")
    assert [section.title for section in sections(plain)] == ["Overview"]


def test_the_headline_has_the_bleu_of_every_test_set() -> None:
    headline = [(measure.task, measure.metric) for measure in SUMMARY.headline() if measure.suite == "translation"]
    assert headline == [("other_domain", "bleu"), ("test", "bleu")]
    assert direction("bleu") == direction("alc_chrf") == 1
