"""Figures round numbers like summaries, and show imported models in their evaluations."""

from pathlib import Path
from typing import Any

import pytest
from figure_readback import typed
from measured_experiment import curve
from shipped import changed

from hatchery.analysis.analyses.paired_test_sentences import Nouns
from hatchery.analysis.analyses.paired_tests import _line
from hatchery.analysis.settings import SummarySettings
from hatchery.analysis.summary import summarised
from hatchery.rendering.drawing import figure_style
from hatchery.typed import build, stage_body
from hatchery.views.figures import phenomena, task_scores, word_surprisals
from hatchery.views.stages.draw_figure import figure_settings
from hatchery.views.summary_text import markdown_summary

AT_ONCE, IN_TWO_STEPS = "50.7", "50.8"
"""50.74999 rounded to one decimal: directly, and after 50.75 in summary.csv. Likewise, 49.25001 is 49.2 after 49.25."""

PAIRS = Nouns(title="", group="", items="pairs", runs="runs", runs_of="seeds", what="", nothing="")


@pytest.fixture
def near(experiment: Any) -> Any:
    """A model with 50.74999 % in a suite and in a task."""
    run = experiment.add_model("ltg", 1, curve(2.0))
    experiment.add_minimal_pairs(run, "blimp", {"agreement": {"number": (5_074_999, 10_000_000)}})
    experiment.add_finetuning(run, "cola", ("accuracy",), {12: ((0.5074999,), "")})
    return experiment


def test_a_word_has_the_mean_of_the_seeds_of_its_model() -> None:
    rows = [("a", "text/10/dog", 2.0), ("a", "text/10/dog", 5.0), ("b", "text/10/dog", 1.0), ("a", "text/2/The", 4.0)]
    found = word_surprisals.words_by_text(rows)
    assert found == {"text": {(2, "The"): {"a": 4.0}, (10, "dog"): {"a": 3.5, "b": 1.0}}}
    assert list(found["text"]) == [(2, "The"), (10, "dog")], "words are in reading order"


@pytest.mark.parametrize("figure", [phenomena, task_scores])
def test_a_figure_rounds_a_number_as_the_summary_does(near: Any, figure: Any) -> None:
    summary = summarised(build(SummarySettings, stage_body(near.summary_settings())), near.measured(), {})
    assert f"| {IN_TWO_STEPS} (n=1) |" in markdown_summary(summary)
    settings = typed(near)
    with figure_style(settings.style):
        shown = figure.draw(settings, near.tables())
    texts = {text.get_text() for axes in shown.axes for text in axes.texts}
    assert IN_TWO_STEPS in texts and AT_ONCE not in texts


def test_a_table_of_paired_tests_rounds_accuracies_as_the_summary_does() -> None:
    row = {"model": "a", "against": "b", "accuracy_percent": 50.74999, "against_accuracy_percent": 49.25001}
    row |= {"difference": 1.49998, "low": 1.0, "high": 2.0, "deviation_over_seeds": None, "deviation_over_runs": None}
    row |= {"pairs_for": 3, "pairs_against": 2, "p_value": 0.5, "p_corrected": 0.5}
    row |= {"seeds": 1, "against_seeds": 1, "runs": 1, "against_runs": 1}
    cells = _line(row, {}, PAIRS)
    assert cells[1:3] == [IN_TWO_STEPS, "49.2"]


def test_surprisals_of_an_imported_model_are_drawn(experiment: Any, configuration: Path) -> None:
    project = changed(configuration, ("baselines", ["bert_base_cased"]), of="causal_mini")
    for figure, expected in (("word_surprisals", ["bert_base_cased"]), ("learning_curves", [])):
        runs: Any = figure_settings(project, "causal_mini", figure)["runs"]
        assert [run.model for run in runs if run.is_baseline] == expected
    experiment.add_surprisal(experiment.add_model("ltg", 1, curve(2.0)), "mine", {"the": 3.0, "dog": 9.0})
    experiment.add_baseline("gpt")
    experiment.add_surprisal("gpt", "mine", {"the": 4.0, "dog": 7.0})
    told = experiment.figure_settings() | {"published": None}
    told["runs"] = [*told["runs"], {"name": "gpt", "model": "gpt", "seed": 0, "is_baseline": True}]
    settings = build(type(typed(experiment)), stage_body(told))
    with figure_style(settings.style):
        shown = word_surprisals.draw(settings, experiment.tables())
    heights = {float(bits) for axes in shown.axes for line in axes.lines for bits in line.get_ydata()}
    assert heights >= {3.0, 9.0, 4.0, 7.0}
