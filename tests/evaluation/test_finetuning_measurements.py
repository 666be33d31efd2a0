"""Reading single runs from the outputs of fine-tuning jobs."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from finetuning_cases import PROTOCOL
from measured_rows import replaced

from hatchery.artifacts.manifests import Manifest
from hatchery.errors import EvaluationError, ManifestError
from hatchery.evaluation.evaluation import Evaluated, TidyRow
from hatchery.evaluation.finetuning.measurements import finetuning_rows, settings_text, with_distinct_tasks

RESULTS_HEADER = "rows,seed,learning_rate,metric,value,best_step,development_value,failed\n"
TASK = {"name": "cola", "suite": "glue", "metrics": ["accuracy"]}


def job(folder: Path, text: str, settings: dict[str, Any], measures: dict[str, Any] | None = None) -> Manifest:
    """Return the manifest of a job with the results `text`."""
    return replaced(folder, "results.csv", text, settings, measures)


def measured(task: str, manifest: Manifest) -> list[TidyRow]:
    return finetuning_rows(Evaluated(manifest, manifest, task))


def test_a_run_that_failed_has_failed_in_all_its_metrics_of_that_set(tmp_path: Path) -> None:
    rows = (
        "validation,12,1e-05,accuracy,0.6,3,0.6,\nvalidation,12,1e-05,mcc,0.0,3,0.6,zero_mcc\n"
        "validation,12,3e-05,accuracy,0.8,3,0.6,\nvalidation,12,3e-05,mcc,0.5,3,0.6,\n"
        "mismatched,12,1e-05,accuracy,0.7,3,0.6,\nmismatched,12,1e-05,mcc,-0.4,3,0.6,\n"
    )
    manifest = job(tmp_path, RESULTS_HEADER + rows, {"task": {**TASK, "metrics": ["mcc", "accuracy"]}})
    found = measured("cola", manifest)
    assert [m["failed"] for m in found] == ["zero_mcc", "zero_mcc", "", "", "", ""]
    assert [m["primary"] for m in found] == [False, True] * 3
    assert [m["learning_rate"] for m in found] == [1e-5, 1e-5, 3e-5, 3e-5, 1e-5, 1e-5]
    assert [(m["task"], m["main"]) for m in found] == [("cola", True)] * 4 + [("cola_mismatched", False)] * 2
    assert found[-1]["value"] == pytest.approx(-40.0)


def test_a_transferred_task_has_its_own_suite_metric_and_failures(tmp_path: Path) -> None:
    rows = "validation,12,1e-05,accuracy,0.6,3,0.6,majority_class\nhans,12,1e-05,mcc,0.2,3,0.6,\n"
    settings = {"task": TASK, "transfer": [{"name": "hans", "suite": "heuristics", "metrics": ["mcc"]}]}
    measures = {"majority_accuracy_hans": 0.5}
    _, hans = measured("mnli", job(tmp_path, RESULTS_HEADER + rows, settings, measures))
    assert [hans[name] for name in ("suite", "task", "metric", "primary")] == [
        "heuristics",
        "hans",
        "mcc_percent",
        True,
    ]
    assert [hans[name] for name in ("failed", "main", "origin", "blind_guess")] == ["", False, "mnli", 0.0]


def test_every_set_has_its_own_blind_guess_rows_and_basis(tmp_path: Path) -> None:
    rows = "".join(
        f"{name},{seed},1e-05,{metric},0.25,3,0.6,{failed}\n"
        for name in ("validation", "mismatched")
        for seed, failed in ((12, "majority_class" if name == "mismatched" else ""), (13, ""))
        for metric in ("accuracy", "f1", "mcc")
    )
    measures = {"majority_accuracy_validation": 0.4, "scored_validation": 70}
    measures |= {"majority_accuracy_mismatched": 0.6, "scored_mismatched": 30}
    protocol = {**PROTOCOL, "selection": "scored", "edition": 2025}
    manifest = job(tmp_path, RESULTS_HEADER + rows, {"task": TASK, "protocol": protocol}, measures)
    columns = ("task", "finetuning_seed", "metric", "value", "failed", "items", "blind_guess", "basis")
    rules = "rules: BabyLM 2025"
    assert [tuple(row[name] for name in columns) for row in measured("mnli", manifest)] == [
        (task, seed, f"{metric}_percent", 25.0, failed if seed == 12 else "", items, blind, basis)
        for task, failed, items, majority, basis in (
            ("mnli", "", 70, 40.0, f"items: 70; selection: best on the scored rows; {rules}"),
            ("mnli_mismatched", "majority_class", 30, 60.0, f"items: 30; {rules}"),
        )
        for seed in (12, 13)
        for metric, blind in (("accuracy", majority), ("f1", None), ("mcc", 0.0))
    ]


def test_a_task_transferred_to_by_two_tasks_says_from_which(tmp_path: Path) -> None:
    rows = "validation,12,1e-05,accuracy,0.6,3,0.6,\nhans,12,1e-05,accuracy,0.2,3,0.6,\n"
    transfer = [{"name": "hans", "suite": "glue", "metrics": ["accuracy"]}]
    found = [
        measurement
        for task in ("a_mnli", "b_mnli")
        for measurement in measured(
            task, job(tmp_path / task, RESULTS_HEADER + rows, {"task": TASK, "transfer": transfer})
        )
    ]
    names = [m["task"] for m in with_distinct_tasks(found)]
    assert names == ["a_mnli", "hans_from_a_mnli", "b_mnli", "hans_from_b_mnli"]
    assert [m["task"] for m in with_distinct_tasks(found[:2])] == ["a_mnli", "hans"]
    # If the transferred task is also a task of the experiment, the experiment's task keeps its name.
    own = job(tmp_path / "hans", RESULTS_HEADER + rows.splitlines()[0] + "\n", {"task": {**TASK, "name": "hans"}})
    names = [m["task"] for m in with_distinct_tasks([*found[:2], *measured("hans", own)])]
    assert names == ["a_mnli", "hans_from_a_mnli", "hans"]


@pytest.mark.parametrize("value", ["", "nan"])
def test_a_failed_run_may_have_no_value(tmp_path: Path, value: str) -> None:
    rows = f"validation,12,1e-05,accuracy,{value},3,,nan\n"
    (found,) = measured("cola", job(tmp_path, RESULTS_HEADER + rows, {"task": TASK}))
    assert (found["value"], found["failed"]) == (None, "nan")
    rows += "validation,12,1e-05,mcc,0.5,3,,\n"
    both = measured("cola", job(tmp_path, RESULTS_HEADER + rows, {"task": TASK}))
    assert [row["value"] for row in both] == [None, None], "a diverged run has no value of any metric"


TRAINED = "3 epochs in batches of 8; peak rate 0.003 or 0.001; "
DECAYED = "decay 0.1 of matrices; gradients clipped at 1; dropout 0.1; at most 24 tokens; "
SLIPS = (
    "with the bugs of the official trainer: the state after the last epoch is scored, and the last incomplete batch of "
    "8 validation rows is not scored"
)


@pytest.mark.parametrize(
    ("head", "protocol", "expected"),
    [
        (
            {},
            {},
            f"{TRAINED}cosine to 0, warm-up 0.1; {DECAYED}first token; best on held-out training rows; seeds 12, 642",
        ),
        (
            # A manifest of an earlier version: the kind of the head has its default, and no measure names the pooling.
            {"options": {"pooling": "last_token"}},
            {
                **{"edition": 2026, "track": "multilingual", "official": True, "selection": "scored"},
                **{"schedule": "linear_as_published", "final_fraction": 0.5, "development_fraction": 0.0},
            },
            f"rules of BabyLM 2026, multilingual track with its slips; {TRAINED}linear as published to 0.5, "
            f"warm-up 0.1; {DECAYED}last token; {SLIPS}; seeds 12, 642",
        ),
        (
            {"kind": "regression"},
            {"edition": 2026, "track": "multilingual", "selection": "last", "development_fraction": 0.0},
            f"rules of BabyLM 2026, multilingual track; {TRAINED}cosine to 0, warm-up 0.1; {DECAYED}last state; "
            "without the bugs of the official trainer: all validation rows are scored; seeds 12, 642",
        ),
    ],
)
def test_a_score_tells_the_settings_of_its_training(
    tmp_path: Path, head: dict[str, Any], protocol: dict[str, Any], expected: str
) -> None:
    rows = "validation,12,1e-05,accuracy,0.6,3,0.6,\n"
    settings = {"task": {**TASK, "head": head} if head else TASK, "protocol": {**PROTOCOL, **protocol}}
    manifest = job(tmp_path, RESULTS_HEADER + rows, settings)
    assert settings_text(manifest) == expected == measured("cola", manifest)[0]["settings"]
    rules = expected.partition(";")[0].removeprefix("rules of ")
    bases = [
        measured("cola", replace(manifest, inputs=inputs))[0]["basis"].split("; ")
        for inputs in ({"source": "a", "model": "m"}, {"source": "a", "model": "n"}, {"source": "b", "model": "m"})
    ]
    assert bases[0] == bases[1] and bases[0][0].startswith("text: ") and bases[0][0] != bases[2][0]
    chosen = ["selection: best on the scored rows"] * (protocol.get("selection") == "scored")
    assert bases[0][1:] == bases[2][1:] == chosen + [f"rules: {rules}"] * rules.startswith("BabyLM")


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        (
            "validation,12,1e-05,accuracy,nan,3,0.6,",
            "validation, seed 12: the value of accuracy is missing, expected a value or the reason",
        ),
        ("validation,12,1e-05,accuracy,0.5,3,0.6,\n" * 2, "line 3: got the row validation, 12, 1e-05, accuracy"),
        ("validation,12,1e-05,f1,0.5,3,0.6,", "has no number of the task's first metric, accuracy"),
        ("test,12,1e-05,accuracy,0.5,3,0.6,", "there is no row of the set 'validation', only of test"),
    ],
)
def test_wrong_results_are_refused(tmp_path: Path, row: str, complaint: str) -> None:
    with pytest.raises(EvaluationError) as caught:
        measured("cola", job(tmp_path, RESULTS_HEADER + row + "\n", {"task": TASK}))
    assert str(tmp_path / "results.csv") in str(caught.value)
    assert complaint in str(caught.value)


@pytest.mark.parametrize("task", [{}, {"suite": "glue", "metrics": []}, {"metrics": ["accuracy"]}])
def test_settings_without_suite_or_metrics_are_refused(tmp_path: Path, task: dict[str, Any]) -> None:
    rows = "validation,12,1e-05,accuracy,0.5,3,0.6,\n"
    with pytest.raises(ManifestError, match=r"manifest\.json: the settings of a task lack its name, suite or metrics"):
        measured("cola", job(tmp_path, RESULTS_HEADER + rows, {"task": task}))
