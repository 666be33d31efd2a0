"""A study of finished experiments trains nothing; an analysis and a model rerun what depends on them, and no more."""

import csv
from collections.abc import Iterator
from pathlib import Path

import pytest
from projects import planned_rules, snakemake
from test_rerun_matrix import EXPERIMENT, FIGURES, changed

pytestmark = pytest.mark.slow

STUDY = "config/studies/side.yaml"
PAGE = "results/side/index.html"
TEXT = "description: Side by side.\nexperiments: [tiny, copied]\nanalyses:\n  comparison: {}\n"


@pytest.fixture(scope="module")
def study(finished_project: Path) -> Iterator[Path]:
    """The tiny experiment and a copy of it, whose models and evaluations are the same, read together."""
    copy = finished_project / "config/experiments/copied.yaml"
    copy.write_bytes((finished_project / EXPERIMENT).read_bytes())
    (finished_project / STUDY).parent.mkdir(exist_ok=True)
    (finished_project / STUDY).write_text(TEXT, encoding="utf-8")
    planned = planned_rules(finished_project, "results/side/summary.csv")
    assert planned == {"collect_measurements": 1, "join_experiments": 1, "summarise": 1}
    result = snakemake(finished_project, "--cores", "2", PAGE)
    assert result.returncode == 0, (result.stdout + result.stderr)[-6000:]
    yield finished_project
    copy.unlink()
    (finished_project / STUDY).unlink()


def test_a_finished_study_has_nothing_to_do_and_tells_equal_models_apart(study: Path) -> None:
    assert planned_rules(study, PAGE) == {}
    with (study / "results/side/summary.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {(row["experiment"], row["model"].partition("/")[0]) for row in rows} == {("tiny",) * 2, ("copied",) * 2}
    means = {(row["model"], row["suite"], row["task"], row["metric"]): row["mean"] for row in rows}
    assert all(means[f"copied/{key[0].partition('/')[2]}", *key[1:]] == mean for key, mean in means.items())
    page = (study / PAGE).read_text(encoding="utf-8")
    assert "Side by side" in page and "../tiny/index.html" in page and "copied/elc_bert against tiny/elc_bert" in page


def test_an_analysis_setting_reruns_no_model_and_no_join(study: Path) -> None:
    with changed(study / STUDY, "comparison: {}", "comparison: {against: tiny/random}"):
        assert set(planned_rules(study, PAGE)) == {"analyse", "write_page"}


def test_a_changed_model_of_one_experiment_reruns_that_model_and_the_views_alone(study: Path) -> None:
    run = "elc_bert: {model: elc_tiny}"
    with changed(study / EXPERIMENT, run, run.replace("}", ", pretraining: {steps: 5}}")):
        planned = planned_rules(study, PAGE)
    assert planned["pretrain"] == planned["score_minimal_pairs"] == planned["measure_perplexity"] == 1
    assert planned["collect_measurements"] == planned["join_experiments"] == planned["analyse"] == 1
    assert planned["summarise"] == 2
    assert all(planned[figure] == 2 for figure in FIGURES)
