"""Reading single runs from the results of fine-tuning jobs and of models that translate."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hatchery.analysis.finetuning_measurements import (
    finetuning_measurements,
    with_distinct_tasks,
)
from hatchery.analysis.measurements import learning_measurements
from hatchery.analysis.scores import direction
from hatchery.analysis.summary import Summary
from hatchery.analysis.summary_rows import SummaryRow
from hatchery.artifacts.atomic import write_text
from hatchery.artifacts.manifests import Manifest, read_manifest, stage_run
from hatchery.errors import EvaluationError, ManifestError
from hatchery.views.summary_markdown import markdown_summary
from hatchery.views.summary_sections import sections
from hatchery.views.summary_text import text_summary

HEADER = "rows,seed,learning_rate,metric,value,best_step,development_value,failed\n"
TASK = {"name": "cola", "suite": "glue", "metrics": ["accuracy"]}


def job(folder: Path, text: str, settings: dict[str, Any], measures: dict[str, Any] | None = None) -> Manifest:
    """The manifest of a job with the results `text`."""
    with stage_run(folder / "manifest.json", settings) as run:
        write_text(folder / "results.csv", text)
        run.add_output(folder / "results.csv")
        run.measures.update(measures or {})
    return read_manifest(folder / "manifest.json")


def test_a_run_that_failed_has_failed_in_all_its_metrics_of_that_set(tmp_path: Path) -> None:
    rows = (
        "validation,12,1e-05,accuracy,0.6,3,0.6,\nvalidation,12,1e-05,mcc,0.0,3,0.6,zero_mcc\n"
        "validation,12,3e-05,accuracy,0.8,3,0.6,\nvalidation,12,3e-05,mcc,0.5,3,0.6,\n"
        "mismatched,12,1e-05,accuracy,0.7,3,0.6,\nmismatched,12,1e-05,mcc,-0.4,3,0.6,\n"
    )
    manifest = job(tmp_path, HEADER + rows, {"task": {**TASK, "metrics": ["mcc", "accuracy"]}})
    found = finetuning_measurements({}, "cola", manifest)
    assert [m["failed"] for m in found] == ["zero_mcc", "zero_mcc", "", "", "", ""]
    assert [m["primary"] for m in found] == [False, True] * 3
    assert [m["learning_rate"] for m in found] == [1e-5, 1e-5, 3e-5, 3e-5, 1e-5, 1e-5]
    assert [(m["task"], m["main"]) for m in found] == [("cola", True)] * 4 + [("cola_mismatched", False)] * 2
    assert found[-1]["value"] == pytest.approx(-40.0)


def test_a_transferred_task_has_its_own_suite_metric_and_failures(tmp_path: Path) -> None:
    rows = "validation,12,1e-05,accuracy,0.6,3,0.6,majority_class\nhans,12,1e-05,mcc,0.2,3,0.6,\n"
    settings = {"task": TASK, "transfer": [{"name": "hans", "suite": "heuristics", "metrics": ["mcc"]}]}
    measures = {"majority_accuracy_hans": 0.5}
    _, hans = finetuning_measurements({}, "mnli", job(tmp_path, HEADER + rows, settings, measures))
    assert [hans[name] for name in ("suite", "task", "metric", "primary")] == [
        "heuristics",
        "hans",
        "mcc_percent",
        True,
    ]
    assert [hans[name] for name in ("failed", "main", "origin", "blind_guess")] == ["", False, "mnli", 0.0]


def test_a_task_transferred_to_by_two_tasks_says_from_which(tmp_path: Path) -> None:
    rows = "validation,12,1e-05,accuracy,0.6,3,0.6,\nhans,12,1e-05,accuracy,0.2,3,0.6,\n"
    transfer = [{"name": "hans", "suite": "glue", "metrics": ["accuracy"]}]
    found = [
        measurement
        for task in ("a_mnli", "b_mnli")
        for measurement in finetuning_measurements(
            {}, task, job(tmp_path / task, HEADER + rows, {"task": TASK, "transfer": transfer})
        )
    ]
    names = [m["task"] for m in with_distinct_tasks(found)]
    assert names == ["a_mnli", "hans_from_a_mnli", "b_mnli", "hans_from_b_mnli"]
    assert [m["task"] for m in with_distinct_tasks(found[:2])] == ["a_mnli", "hans"]


@pytest.mark.parametrize("value", ["", "nan"])
def test_a_failed_run_may_have_no_value(tmp_path: Path, value: str) -> None:
    rows = f"validation,12,1e-05,accuracy,{value},3,,nan\n"
    (found,) = finetuning_measurements({}, "cola", job(tmp_path, HEADER + rows, {"task": TASK}))
    assert (found["value"], found["failed"]) == (None, "nan")


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        ("validation,12,1e-05,accuracy,74.2,3,0.6,", "line 2: value: got '74.2', expected at most 1"),
        ("validation,12,1e-05,accuracy,half,3,0.6,", "line 2: value: got 'half', expected a number"),
        ("validation,12,1e-05,accuracy,nan,3,0.6,", "validation, seed 12: no value of accuracy, and no reason why"),
        ("validation,12,1e-05,accuracy,,3,0.6,", "validation, seed 12: no value of accuracy, and no reason why"),
        ("validation,12,1e-05,accuracy,0.5,3,0.6,tired", "line 2: failed: got 'tired'"),
        ("validation,x,1e-05,accuracy,0.5,3,0.6,", "line 2: seed: got 'x'"),
        ("validation,12,fast,accuracy,0.5,3,0.6,", "line 2: learning_rate: got 'fast'"),
        ("validation,12,1e-05,accuracy,0.5,3,0.6,\n" * 2, "line 3: the row validation, 12, 1e-05, accuracy"),
        ("validation,12,1e-05,f1,0.5,3,0.6,", "has no row of the task's first metric, accuracy"),
        ("test,12,1e-05,accuracy,0.5,3,0.6,", "there is no row of the set 'validation', only of test"),
    ],
)
def test_wrong_results_are_refused(tmp_path: Path, row: str, complaint: str) -> None:
    with pytest.raises(EvaluationError) as caught:
        finetuning_measurements({}, "cola", job(tmp_path, HEADER + row + "\n", {"task": TASK}))
    assert str(tmp_path / "results.csv") in str(caught.value)
    assert complaint in str(caught.value)


def test_results_of_an_older_stage_are_refused(tmp_path: Path) -> None:
    with pytest.raises(EvaluationError, match="lacks the columns rows, learning_rate"):
        finetuning_measurements(
            {}, "cola", job(tmp_path, "seed,metric,value,failed\n12,accuracy,0.5,\n", {"task": TASK})
        )


@pytest.mark.parametrize("task", [{}, {"suite": "glue", "metrics": []}, {"metrics": ["accuracy"]}])
def test_settings_without_suite_or_metrics_are_refused(tmp_path: Path, task: dict[str, Any]) -> None:
    rows = "validation,12,1e-05,accuracy,0.5,3,0.6,\n"
    with pytest.raises(ManifestError, match=r"manifest\.json: the settings of a task lack its name, suite or metrics"):
        finetuning_measurements({}, "cola", job(tmp_path, HEADER + rows, {"task": task}))


@pytest.mark.parametrize("value", [True, 61.4, "half"])
def test_an_impossible_majority_is_refused(tmp_path: Path, value: Any) -> None:
    rows = "validation,12,1e-05,accuracy,0.5,3,0.6,\n"
    manifest = job(tmp_path, HEADER + rows, {"task": TASK}, {"majority_accuracy_validation": value})
    with pytest.raises(EvaluationError, match=r"manifest\.json: measures of validation: majority_accuracy: got "):
        finetuning_measurements({}, "cola", manifest)


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
