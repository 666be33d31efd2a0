"""A study of finished experiments trains nothing; an analysis and a model rerun what depends on them, and no more."""

import csv
from pathlib import Path

import pytest
from projects import planned_rules
from tiny_experiment import EXPERIMENT, FIGURES, PAGE, STUDY, changed

pytestmark = pytest.mark.slow


def test_a_finished_study_has_nothing_to_do_and_tells_equal_models_apart(study: Path) -> None:
    assert planned_rules(study, PAGE) == {}
    with (study / "results/side/summary.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {(row["experiment"], row["model"].partition("/")[0]) for row in rows} == {("tiny",) * 2, ("second",) * 2}
    means = {(row["model"], row["suite"], row["task"], row["metric"]): row["mean"] for row in rows}
    assert all(means[f"second/{key[0].partition('/')[2]}", *key[1:]] == mean for key, mean in means.items())
    page = (study / PAGE).read_text(encoding="utf-8")
    assert "Side by side" in page and "../tiny/index.html" in page and "second/elc_bert against tiny/elc_bert" in page


def test_an_analysis_setting_reruns_no_model_and_no_join(study: Path) -> None:
    with changed(study / STUDY, "comparison: {}", "comparison: {against: tiny/random}"):
        assert set(planned_rules(study, PAGE)) == {"analyse", "write_page"}


def test_a_changed_model_of_one_experiment_reruns_that_model_and_the_views_alone(study: Path) -> None:
    run = "elc_bert: {model: elc_tiny}"
    with changed(study / EXPERIMENT, run, run.replace("}", ", pretraining: {steps: 5}}")):
        planned = planned_rules(study, PAGE)
    assert planned["pretrain"] == planned["score_minimal_pairs"] == planned["measure_perplexity"] == 1
    assert planned["collect_measurements"] == planned["join_experiments"] == 1
    # The tests over pairs of the experiment, and the analyses of the study.
    assert planned["summarise"] == planned["analyse"] == 2
    assert all(planned[figure] == 2 for figure in FIGURES)
