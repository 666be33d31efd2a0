"""Models that differ beyond chance on the same rows of fine-tuning tasks."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.stats import permutation_test

from hatchery.analysis.analyses import finetuning_tests
from hatchery.analysis.analyses.analysis import Findings, Study
from hatchery.artifacts.manifests import stage_run
from hatchery.experiment.seeded_run import SeededRun


def tuned(
    folder: Path, runs: Mapping[str, str], labels: str, failed: Sequence[str] = (), metrics: Sequence[str] = ("mcc",)
) -> Path:
    """Return a model's manifest for a task with one answer per row and run, and the failed runs.

    The name of a run is its seed, or seed and learning rate: `2` with the learning rate 0.1, `2@0.5`.
    """
    places = {name: (int(name.partition("@")[0]), float(name.partition("@")[2] or 0.1)) for name in runs}
    with stage_run(folder / "manifest.json", {"task": {"metrics": list(metrics)}}) as run:
        rows = [
            {"rows": rows, "seed": seed, "learning_rate": rate, "row": row, "scored": label != "-", "label": label}
            | {"prediction": answer if answer != "?" else None}
            for (seed, rate), answers in zip(places.values(), runs.values(), strict=True)
            for rows in ("validation", "mismatched")
            for row, (answer, label) in enumerate(zip(answers, labels, strict=True))
        ]
        pl.DataFrame(rows).write_parquet(run.add_output(run.folder / "predictions.parquet"))
        results = [
            f"validation,{seed},{rate},{'majority_class' if name in failed else ''}"
            for name, (seed, rate) in places.items()
        ]
        # All runs failed on a further set, which is not compared.
        results += [f"mismatched,{seed},{rate},constant" for seed, rate in places.values()]
        run.add_output(run.folder / "results.csv").write_text("\n".join(["rows,seed,learning_rate,failed", *results]))
    return folder / "manifest.json"


def found_of_tasks(
    folder: Path, models: Mapping[str, Mapping[str, str]], labels: str, **failed: Sequence[str]
) -> Findings:
    """Return the findings for models with two equal pretraining seeds on the task `nli`."""
    tables = {
        f"finetuning/{model}-s{seed}:nli": tuned(folder / f"{model}{seed}", runs, labels, failed.get(model, ()))
        for model, runs in models.items()
        for seed in (1, 2)
    }
    study = Study("mine", tuple(SeededRun.from_seed(model, seed) for model in models for seed in (1, 2)), tables=tables)
    return finetuning_tests.ANALYSIS.run(finetuning_tests.FinetuningTestsSettings(), study)


def test_fine_tuned_models_are_compared_on_the_rows_that_count_over_all_runs_with_an_answer(tmp_path: Path) -> None:
    labels = "aabbaabb-"
    models = {
        "first": {"1": "aabbaabba", "2": "aabbaabaa", "2@0.5": "?" * 9, "3": "?" * 9},
        "second": {"1": "bbbbaabba", "2": "bbbbaabba", "3": "bbbbaabba"},
    }
    (row,) = found_of_tasks(tmp_path, models, labels).rows
    assert (row["task"], row["rows"], row["runs"], row["against_runs"]) == ("nli", 8, 6, 4)
    assert (row["accuracy_percent"], row["against_accuracy_percent"]) == (75.0, 93.75)
    # Six runs have an accuracy of 75; the other four have 100, 87.5, 100 and 87.5, with equal means by pretraining.
    assert (row["deviation_over_runs"], row["deviation_over_seeds"]) == (pytest.approx(12.5 / 3**0.5, abs=1e-4), 0.0)
    # Of eight rows, `second` is more often right on the last row, `first` on the first two rows.
    assert (row["rows_for"], row["rows_against"]) == (1, 2)
    shares = [np.array([0, 0, 1, 1, 1, 1, 1, 1]), np.array([1, 1, 1, 1, 1, 1, 1, 0.5])]
    flips = permutation_test(
        (shares[0] - shares[1],), np.sum, permutation_type="samples", n_resamples=np.inf, alternative="two-sided"
    )
    assert row["p_value"] == pytest.approx(float(flips.pvalue), abs=1e-6)


def test_a_difference_that_failed_runs_make_is_not_bold(tmp_path: Path) -> None:
    labels = "ab" * 30
    good, collapsed, worse = labels, "a" * 60, "ab" * 20 + "b" * 20
    sound = {"1": good, "2": good, "3": good}
    fallen = {"1": good, "2": collapsed, "3": collapsed}

    def line(name: str, other: Mapping[str, str], **failed: Sequence[str]) -> Any:
        found = found_of_tasks(tmp_path / name, {"one": sound, "two": other}, labels, **failed)
        return found.rows[0], found.tables[0].rows[0].cells[3], " ".join(found.notes)

    row, cell, notes = line("failed", fallen, two=["2", "3"])
    # The difference exceeds its deviation and chance, but only because of failed runs.
    assert abs(row["difference"]) > row["deviation_over_runs"] and row["p_corrected"] < 0.001
    assert (row["failed"], row["against_failed"], row["difference_without_failed"]) == (4, 0, 0)
    assert not cell.bold and cell.remark == "4 failed" and "If runs failed" in notes
    row, cell, notes = line("worse", {**fallen, "1": worse}, two=["2", "3"])
    assert cell.bold and row["difference_without_failed"] == pytest.approx(-100 / 6, abs=1e-4)
    # Without failed runs, each pretraining seed has 100 and 83.33. The larger deviation counts, which is over runs.
    row, cell, notes = line("mixed", {"1": good, "2": worse, "3": collapsed}, two=["3"])
    # Twice 100, 83.33 and 50: the sum of the squared distances from 77.78 is 2592.6. Both seeds have equal means.
    assert cell.deviation == f"{(2592.6 / 5) ** 0.5:.1f}" and row["deviation_over_seeds"] == 0
    assert "deviation over pretraining seeds is not bold either" in notes
    assert row["difference_without_failed"] == pytest.approx(-100 / 12, abs=1e-4)
    assert row["deviation_without_failed"] == pytest.approx(100 / 6 / 3**0.5, abs=1e-4)
    # The same if the other model's runs failed: of its three runs per seed, the runs with 100 and 83.33 did not fail.
    turned = {"one": {"1": good, "2": worse, "3": collapsed}, "two": sound}
    found = found_of_tasks(tmp_path / "turned", turned, labels, one=["3"])
    (row,) = found.rows
    assert (row["failed"], row["against_failed"]) == (0, 2)
    assert "If runs failed" in " ".join(found.notes)
    assert row["difference_without_failed"] == pytest.approx(100 / 12, abs=1e-4)
    assert row["deviation_without_failed"] == pytest.approx(100 / 6 / 3**0.5, abs=1e-4)
    # If all runs of a model failed, all of them count.
    (row,) = found_of_tasks(tmp_path / "lost", {"one": sound, "two": fallen}, labels, two=["1", "2", "3"]).rows
    assert (row["failed"], row["difference_without_failed"]) == (6, row["difference"])
    row, cell, notes = line("sound", fallen)
    assert cell.bold and cell.remark == "" and "If runs failed" not in notes


def test_a_task_whose_answers_are_numbers_is_named_and_not_tested(tmp_path: Path) -> None:
    tables = {
        f"finetuning/{model}-s1:stsb": tuned(tmp_path / model, {"1": "ab"}, "ab", metrics=["pearson"]) for model in "ab"
    }
    study = Study("mine", tuple(SeededRun.from_seed(model, 1) for model in "ab"), tables=tables)
    found = finetuning_tests.ANALYSIS.run(finetuning_tests.FinetuningTestsSettings(), study)
    assert not found.rows and found.notes[-1].endswith(
        "because their metric does not judge each answer as correct or wrong: stsb."
    )


@pytest.mark.parametrize(
    "metrics", [("accuracy",), ("f1", "accuracy"), ("macro_f1", "pearson"), ("mean_of_accuracy_and_f1",)]
)
def test_a_task_is_tested_by_its_main_metric_next_to_a_task_that_is_not(metrics: Sequence[str], tmp_path: Path) -> None:
    # The first pretraining of `b` has no answer, and `a` has no answer to the second row.
    answers = {"a-s1": "a?", "b-s1": "??", "b-s2": "ab"}
    tables = {
        f"finetuning/{name}:{task}": tuned(tmp_path / task / name, {"1": text}, "ab", metrics=measured)
        for task, measured in (("nli", metrics), ("stsb", ("pearson", "accuracy")))
        for name, text in answers.items()
    }
    runs = tuple(SeededRun(name, name[0], int(name[-1])) for name in answers)
    found = finetuning_tests.ANALYSIS.run(
        finetuning_tests.FinetuningTestsSettings(), Study("mine", runs, tables=tables)
    )
    (row,) = found.rows
    assert (row["task"], row["model"], row["runs"], row["against_runs"]) == ("nli", "b", 1, 1)
    assert (row["accuracy_percent"], row["against_accuracy_percent"]) == (100.0, 50.0)
    assert found.notes[-1].endswith("each answer as correct or wrong: stsb.")
