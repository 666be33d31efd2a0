"""Scores against the scores of the same start: differences and their errors, by hand."""

from dataclasses import replace
from pathlib import Path

import pytest

from hatchery.analysis.aggregates import mean_and_error
from hatchery.analysis.analyses import starts
from hatchery.analysis.analyses.analysis import Study
from hatchery.analysis.tidy_tables import MEASUREMENTS, read_frame, write_rows
from hatchery.errors import ConfigError
from hatchery.experiment.seeded_run import SeededRun
from hatchery.rendering.table import Cell
from hatchery.views.figures.start_scores import panels_of

SCORES = {"one/zero": [10.0, 14.0], "one/unigram": [20.0, 24.0, 28.0], "one/single": [15.0], "two/zero": [50.0, 50.0]}

LABELS = {"one/single": "one/single, rate 1"}


@pytest.fixture
def started(tmp_path: Path) -> Study:
    rows = [
        {"experiment": model.partition("/")[0], "model": model, "run": f"{model}-s{seed}", "seed": seed}
        | {"kind": "translation", "suite": "translation", "task": "test", "level": "split", "metric": metric}
        | {"value": value, "failed": "", "primary": True, "main": True, "origin": "", "manifest": "abc"}
        for model, values in SCORES.items()
        for seed, value in enumerate(values)
        for metric in ("bleu", "loss_nats")
    ]
    # A seed without a score does not count.
    rows.append({**rows[4], "run": "one/unigram-s9", "seed": 9, "metric": "bleu", "value": None, "failed": "nan"})
    # A beginning has only scores of development text.
    begins = {**rows[0], "model": "one/begins", "run": "one/begins-s0", "suite": "pretraining", "task": "development"}
    rows.append({**begins, "kind": "pretraining"})
    write_rows(tmp_path / "measurements.parquet", MEASUREMENTS, rows)
    runs = (
        *(
            SeededRun(f"{model}-s{seed}", model, seed, LABELS.get(model, ""))
            for model in SCORES
            for seed in range(len(SCORES[model]))
        ),
        SeededRun("one/begins-s0", "one/begins", 0),
    )
    return Study("both", runs, tables={"measurements": tmp_path / "measurements.parquet"})


def test_the_standard_error_is_the_deviation_over_the_root_of_the_number_of_seeds() -> None:
    # The standard deviation of 20, 24 and 28 is 4.
    assert mean_and_error([20.0, 24.0, 28.0]) == (24.0, pytest.approx(4 / 3**0.5))
    assert mean_and_error([7.0]) == (7.0, None)


def test_scores_are_compared_with_the_start_of_the_same_experiment(started: Study) -> None:
    found = {row["model"]: row for row in starts.ANALYSIS.run(starts.StartsSettings(), started).rows}
    assert {row["metric"] for row in found.values()} == {"bleu"}
    assert list(found) == list(SCORES)
    # The standard deviation of 10 and 14 is sqrt(8), divided by sqrt(2).
    assert (found["one/zero"]["mean"], found["one/zero"]["standard_error"]) == (12.0, 2.0)
    assert found["one/zero"]["difference"] is None
    assert found["one/unigram"]["difference"] == 12.0
    # The combined standard error is sqrt(4 + 16 / 3).
    assert found["one/unigram"]["difference_error"] == 3.0551
    assert found["one/unigram"]["seeds"] == 3
    assert found["two/zero"]["difference"] is None


def test_one_seed_has_a_difference_without_an_error(started: Study) -> None:
    single = next(
        row for row in starts.ANALYSIS.run(starts.StartsSettings(), started).rows if row["model"] == "one/single"
    )
    assert (single["standard_error"], single["difference"], single["difference_error"]) == (None, 3.0, None)


def test_the_table_has_errors_and_signs_and_another_start_may_be_the_reference(started: Study) -> None:
    (table,) = starts.ANALYSIS.run(starts.StartsSettings(), started).tables
    lines = {group.heading: row.cells for group, row in zip(table.groups, table.rows, strict=True)}
    # The standard errors are 4 / sqrt(3), and sqrt(4 + 16 / 3) for the difference.
    assert lines["one/unigram"] == ["test, bleu", Cell("24.00", "2.31"), Cell("+12.00", "3.06"), "3"]
    assert lines["one/zero"] == ["test, bleu", Cell("12.00", "2.00"), "", "2"]
    assert lines["one/single, rate 1"] == ["test, bleu", Cell("15.00", ""), Cell("+3.00", ""), "1"]
    other = {row["model"]: row for row in starts.ANALYSIS.run(starts.StartsSettings(against="unigram"), started).rows}
    assert (other["one/zero"]["difference"], other["one/unigram"]["difference"]) == (-12.0, None)


def test_scores_on_other_sentences_or_of_a_beam_that_they_chose_have_no_difference(
    started: Study, tmp_path: Path
) -> None:
    """`unigram` translated other sentences than `zero`. One seed's beam of `single` was selected on the scored text."""
    bases = {"one/unigram": "text: b; items: 9", "one/single": "text: a; items: 9; selection: the beam was chosen"}
    rows = [
        row
        | {"basis": bases.get(row["model"], "text: a; items: 9"), "metric": "chrf" if row["value"] == 50 else "bleu"}
        for row in read_frame(started.tables["measurements"], MEASUREMENTS, metric=["bleu"]).to_dicts()
    ]
    later = {**next(row for row in rows if row["model"] == "one/zero"), "model": "one/later", "value": 13.5}
    write_rows(tmp_path / "mixed/measurements.parquet", MEASUREMENTS, [*rows, later])
    study = replace(
        started,
        runs=(*started.runs, SeededRun("one/later-s0", "one/later", 0)),
        tables={"measurements": tmp_path / "mixed/measurements.parquet"},
    )
    found = starts.ANALYSIS.run(starts.StartsSettings(), study)
    differences = {row["model"]: (row["mean"], row["difference"], row["difference_error"]) for row in found.rows}
    assert differences == {
        "one/zero": (12.0, None, None),
        "one/unigram": (24.0, None, None),
        "one/single": (15.0, None, None),
        "two/zero": (50.0, None, None),
        # 13.5 minus the mean of 10 and 14.
        "one/later": (13.5, 1.5, None),
    }
    (note,) = [note for note in found.notes if "Not compared" in note]
    assert "one/unigram, test, bleu, because the texts differ" in note
    assert (
        "one/single, rate 1, test, bleu, because some models were selected on the text on which they are scored" in note
    )
    assert "later" not in note and "zero" not in note


def test_the_scores_of_a_model_are_sorted_by_test_set(started: Study, tmp_path: Path) -> None:
    rows = read_frame(started.tables["measurements"], MEASUREMENTS, metric=["bleu"]).to_dicts()
    rows += [{**row, "task": "earlier"} for row in rows if row["model"] == "one/zero"]
    write_rows(tmp_path / "measurements.parquet", MEASUREMENTS, rows)
    found = starts.ANALYSIS.run(starts.StartsSettings(), started).rows
    assert [row["task"] for row in found if row["model"] == "one/zero"] == ["earlier", "test"]


def test_a_start_that_no_experiment_has_is_refused_with_the_nearest(started: Study) -> None:
    with pytest.raises(ConfigError, match=r"against: got 'zeros', expected a run of this study; .*did you mean 'zero'"):
        starts.ANALYSIS.check(starts.StartsSettings(against="zeros"), started)


def test_the_figure_has_a_row_of_panels_for_every_test_set_and_area_of_an_experiment() -> None:
    def row(model: str, task: str, metric: str, mean: str, error: str = "") -> dict[str, str]:
        return {"model": model, "task": task, "metric": metric, "mean": mean, "standard_error": error}

    rows = [
        row("one/zero", "first_9_steps", "alc_bleu", "30.0", "0.5"),
        row("one/zero", "development", "best_bleu", "36.0"),
        row("one/zero", "test", "bleu", "35.0", "0.25"),
        row("one/unigram", "test", "bleu", "36.0"),
        row("two/zero", "test", "chrf", "50.0"),
    ]
    assert list(panels_of(rows)) == [
        ("one\ntest", "BLEU", {"one/zero": (35.0, 0.25), "one/unigram": (36.0, 0.0)}),
        ("one\ntest", "chrF", {}),
        ("one\narea, first 9 steps", "BLEU", {"one/zero": (30.0, 0.5)}),
        ("one\narea, first 9 steps", "chrF", {}),
        ("two\ntest", "BLEU", {}),
        ("two\ntest", "chrF", {"two/zero": (50.0, 0.0)}),
    ]
