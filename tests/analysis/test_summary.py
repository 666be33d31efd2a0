"""The rows of the summary, computed by hand for two models."""

import math
from typing import Any

import polars as pl
import pytest

from hatchery.analysis.published_values import PublishedValue
from hatchery.analysis.settings import SummarySettings
from hatchery.analysis.summary import Key, Summary, _settings, summarised
from hatchery.analysis.summary_rows import COLUMNS
from hatchery.typed import build, stage_body
from hatchery.views.summary_notes import general_notes
from hatchery.views.summary_sections import sections
from hatchery.views.summary_text import text_summary


def summary_of(experiment: Any, published: dict[Key, PublishedValue] | None = None) -> Summary:
    settings = build(SummarySettings, stage_body(experiment.summary_settings()))
    return summarised(settings, experiment.measured(), published or {})


def value(mean: float, std: float | None = None, comparable: bool = True) -> PublishedValue:
    return PublishedValue(mean, std, "Table 1", comparable, "")


# On `cola`, runs of `plain` have 70, 72, 74 and 69 (collapsed); on `rte`, one of two runs of `elc` has no number.
ROWS = [
    # model, suite, task, metric, mean, std, n, n_failed, mean_without_failed, n_without_number
    ("plain", "blimp", "agreement", "accuracy_percent", 72.5, 2.5 * math.sqrt(2), 2, 0, 72.5, 0),
    ("plain", "blimp", "ellipsis", "accuracy_percent", 55.0, 5 * math.sqrt(2), 2, 0, 55.0, 0),
    ("plain", "blimp", "phenomenon_average", "accuracy_percent", 63.75, 1.25 * math.sqrt(2), 2, 0, 63.75, 0),
    ("plain", "blimp", "paradigm_average", "accuracy_percent", 200 / 3, 0.0, 2, 0, 200 / 3, 0),
    ("plain", "finetuning", "cola", "accuracy_percent", 71.25, math.sqrt(14.75 / 3), 4, 1, 72.0, 0),
    ("plain", "finetuning", "cola", "mcc_percent", 15.0, math.sqrt(500 / 3), 4, 1, 20.0, 0),
    ("plain", "finetuning", "rte", "accuracy_percent", 53.0, math.sqrt(20 / 3), 4, 0, 53.0, 0),
    ("plain", "finetuning", "average", "score_percent", 62.125, math.sqrt((14.75 + 20) / 6), 4, 1, 62.5, 0),
    ("plain", "finetuning", "average", "run_score_percent", 62.125, math.sqrt(8.1875 / 3), 4, 1, 62.0, 0),
    ("plain", "pretraining", "development", "loss_nats", 2.0, math.sqrt(0.5), 2, 0, 2.0, 0),
    ("plain", "pretraining", "development", "perplexity", 30.0, 10 * math.sqrt(2), 2, 0, 30.0, 0),
    ("elc", "blimp", "agreement", "accuracy_percent", 77.5, None, 1, 0, 77.5, 0),
    ("elc", "finetuning", "cola", "accuracy_percent", 81.0, math.sqrt(2), 2, 0, 81.0, 0),
    ("elc", "finetuning", "rte", "accuracy_percent", 60.0, None, 1, 0, 60.0, 1),
    ("elc", "finetuning", "average", "score_percent", 70.5, None, 1, 0, 70.5, 1),
    ("elc", "finetuning", "average", "run_score_percent", 71.0, None, 1, 0, 71.0, 1),
]


@pytest.mark.parametrize("expected", ROWS, ids=lambda row: "-".join(row[:4]))
def test_means_and_deviations_are_those_computed_by_hand(two_models: Any, expected: tuple[Any, ...]) -> None:
    *key, mean, std, n, n_failed, without_failed, n_without_number = expected
    row = summary_of(two_models).row(*key)
    assert row is not None
    assert row.mean == pytest.approx(mean, abs=5e-5)
    assert row.std == (None if std is None else pytest.approx(std, abs=5e-5))
    assert (row.n, row.n_failed, row.n_without_number) == (n, n_failed, n_without_number)
    assert row.mean_without_failed == pytest.approx(without_failed, abs=5e-5)
    # `plain` has two pretraining seeds, `elc` has one.
    assert row.seeds == (2 if row.model == "plain" else 1)


def test_the_columns_are_those_of_the_results_contract() -> None:
    assert (
        *("experiment", "model", "suite", "task", "metric", "mean", "std", "n", "n_failed"),
        *("mean_without_failed", "n_without_number"),
        *("published_mean", "published_std", "published_source", "difference", "verdict", "manifests"),
        *("sampling_deviation", "blind_guess", "seeds", "basis"),
    ) == COLUMNS


def test_rows_are_sorted_and_unique_and_models_keep_the_configured_order(two_models: Any) -> None:
    summary = summary_of(two_models)
    keys = [(row.model, row.suite, row.task, row.metric) for row in summary.rows]
    assert keys == sorted(set(keys))
    assert summary.models == ["plain", "elc"]


def test_a_row_names_the_manifests_it_was_computed_from(two_models: Any) -> None:
    from hatchery.artifacts.checksums import sha256_file

    row = summary_of(two_models).row("plain", "finetuning", "cola", "mcc_percent")
    paths = [two_models.finetuning["plain-s1:cola"], two_models.finetuning["plain-s2:cola"]]
    assert row is not None
    assert row.manifests == ";".join(sorted(sha256_file(path)[:12] for path in paths))


def test_failed_runs_are_named_once(two_models: Any) -> None:
    failures = [
        tuple(row[name] for name in ("run", "task", "finetuning_seed", "failed"))
        for row in summary_of(two_models).failures
    ]
    assert failures == [("elc-s1", "rte", 12, "nan"), ("plain-s2", "cola", 13, "majority_class")]


@pytest.mark.parametrize(
    ("key", "published", "difference", "verdict"),
    [
        # Our value is 71.25 +- 2.217 over four runs. Two combined deviations are 2 * hypot(2.217, 1.5) = 5.354.
        (("plain", "finetuning", "cola", "accuracy_percent"), value(65.9, 1.5), 5.35, "within"),
        (("plain", "finetuning", "cola", "accuracy_percent"), value(65.8, 1.5), 5.45, "above"),
        (("plain", "finetuning", "cola", "accuracy_percent"), value(76.7, 1.5), -5.45, "below"),
        (
            ("plain", "finetuning", "cola", "accuracy_percent"),
            value(77.1, 1.5, comparable=False),
            None,
            "not comparable",
        ),
        # A single run has 155 of 200 pairs right. Two binomial deviations of 157 of 204 are 5.899.
        (("elc", "blimp", "agreement", "accuracy_percent"), value(71.61), 5.89, "within"),
        (("elc", "blimp", "agreement", "accuracy_percent"), value(71.5), 6.0, "above"),
        # With one fine-tuning run and no printed deviation, the limit is half a point.
        (("elc", "finetuning", "rte", "accuracy_percent"), value(60.5), -0.5, "within"),
        (("elc", "finetuning", "rte", "accuracy_percent"), value(60.6), -0.6, "below"),
    ],
)
def test_verdicts_use_the_deviations_of_both_sides(
    two_models: Any, key: Key, published: PublishedValue, difference: float | None, verdict: str
) -> None:
    row = summary_of(two_models, {key: published}).row(*key)
    assert row is not None
    assert row.difference == (None if difference is None else pytest.approx(difference))
    assert row.verdict == verdict
    assert (row.published_mean, row.published_std, row.published_source) == (published.mean, published.std, "Table 1")


def test_a_task_of_which_all_runs_collapsed_is_compared_as_the_papers_print_it(experiment: Any) -> None:
    run = experiment.add_model("m", 1, [])
    experiment.add_finetuning(run, "wsc", ("accuracy",), {12: ((0.614,), "majority_class")})
    key = ("m", "finetuning", "wsc", "accuracy_percent")
    row = summary_of(experiment, {key: value(61.4, 0.0)}).row(*key)
    assert row is not None
    assert (row.mean, row.n, row.n_failed, row.difference, row.verdict) == (61.4, 1, 1, 0.0, "within")
    assert row.mean_without_failed is None


def test_a_task_without_any_number_is_not_comparable_and_its_average_is_named(experiment: Any) -> None:
    run = experiment.add_model("m", 1, [])
    experiment.add_finetuning(run, "wsc", ("accuracy",), {12: ((None,), "nan")})
    experiment.add_finetuning(run, "rte", ("accuracy",), {12: ((0.5,), "")})
    key = ("m", "finetuning", "wsc", "accuracy_percent")
    summary = summary_of(experiment, {key: value(61.4, 0.0)})
    row, average = summary.row(*key), summary.row("m", "finetuning", "average", "score_percent")
    assert row is not None and average is not None
    assert (row.mean, row.n, row.n_without_number, row.verdict) == (None, 0, 1, "not comparable")
    assert average.mean is None
    assert "m, finetuning: no average, because no run has a score for wsc." in general_notes(summary)
    assert "Failed or without a number: m, seed 1, wsc: no number (nan) with seed 12 at learning rate 5e-05." in (
        general_notes(summary)
    )
    assert "  m, finetuning: no average, because no run has a score for wsc" in text_summary(summary).splitlines()


def test_notes_are_about_what_the_summary_has(two_models: Any, experiment: Any) -> None:
    experiment.add_model("m", 1, [])
    (note,) = general_notes(summary_of(experiment))
    assert note.startswith(
        "mean ± standard deviation over n runs. A run has one pretraining seed; all runs are included."
    )
    assert "minimal pairs" not in note
    both = " ".join(general_notes(summary_of(two_models)))
    for text in ("fine-tuning seed", "Bold on the page", "minimal pairs", "MCC 0", "`by run`", "paradigms equally"):
        assert text in both
    # BabyLM's rules and papers' averages do not occur in this summary.
    assert "ties correct" not in both and "BabyLM" not in both


def test_published_values_that_nothing_answers_are_kept_in_sight(two_models: Any) -> None:
    key = ("plain", "blimp", "elipsis", "accuracy_percent")
    summary = summary_of(two_models, {key: value(80.0)})
    assert summary.unmatched == [key]
    assert {row.verdict for row in summary.rows} == {""}


def test_a_single_task_has_no_average(experiment: Any) -> None:
    run = experiment.add_model("m", 1, [])
    experiment.add_finetuning(run, "cola", ("accuracy",), {12: ((0.7,), "")})
    assert [row.task for row in summary_of(experiment).rows] == ["cola"]


def test_a_description_of_some_tasks_begins_with_a_word_and_not_with_a_capitalised_name() -> None:
    rows = [("glue", "5 epochs", "demo_acceptability"), ("glue", "9 epochs", "demo_b"), ("glue", "9 epochs", "demo_a")]
    measured = pl.DataFrame(rows, schema=["suite", "settings", "task"], orient="row")
    texts = _settings(measured)
    assert texts == {"glue": "On demo a, demo b: 9 epochs. On demo acceptability: 5 epochs."}


def test_the_suite_of_a_finetuned_task_is_its_own(experiment: Any) -> None:
    run = experiment.add_model("m", 1, [])
    results = {12: ((0.7,), "")}
    experiment.add_finetuning(
        *(run, "glue_mnli", ("accuracy",), results),
        suite="glue",
        further={"mismatched": results},
        transfer={"hans": ("heuristics", ("accuracy",), results)},
        majority={"validation": 0.35},
    )
    summary = summary_of(experiment)
    assert [(row.suite, row.task) for row in summary.rows] == [
        *(("glue", "glue_mnli"), ("glue", "glue_mnli_mismatched"), ("heuristics", "hans"))
    ]
    assert [(task.task, task.main) for task in summary.finetuned] == [
        *(("glue_mnli", True), ("glue_mnli_mismatched", False), ("hans", False))
    ]


def test_all_seeds_and_learning_rates_are_runs(experiment: Any) -> None:
    run = experiment.add_model("m", 1, [])
    values = {(12, 1e-5): -0.5, (12, 3e-5): 0.1, (13, 1e-5): -0.3, (13, 3e-5): 0.3}
    experiment.add_finetuning(run, "bias", ("mcc",), {of: ((value,), "") for of, value in values.items()}, "msgs")
    row = summary_of(experiment).row("m", "msgs", "bias", "mcc_percent")
    assert row is not None
    assert (row.mean, row.n) == (-10.0, 4)
    assert row.std == pytest.approx(100 * math.sqrt((0.16 + 0.04 + 0.04 + 0.16) / 3), abs=5e-5)


def test_averages_do_not_cross_suites(two_models: Any) -> None:
    for run in two_models.pretraining:
        for task in ("a", "b"):
            two_models.add_finetuning(run, task, ("accuracy",), {12: ((0.1,), "")}, "other")
    summary = summary_of(two_models)
    rows = {suite: summary.row("elc", suite, "average", "score_percent") for suite in ("finetuning", "other")}
    assert {suite: row and row.mean for suite, row in rows.items()} == {"finetuning": 70.5, "other": 10.0}


def test_baselines_follow_the_models_of_the_experiment(two_models: Any) -> None:
    pairs = {"agreement": {"gender": (99, 100)}, "ellipsis": {"n": (98, 100)}}
    two_models.add_minimal_pairs("a_baseline", "blimp", pairs)
    summary = summary_of(two_models)
    assert summary.models == ["plain", "elc", "a_baseline"]
    row = summary.row("a_baseline", "blimp", "phenomenon_average", "accuracy_percent")
    assert row is not None
    assert (row.mean, row.n) == (98.5, 1)


def test_a_published_value_without_decimals_allows_half_a_point(experiment: Any) -> None:
    run = experiment.add_model("m", 1, [])
    results = dict.fromkeys((12, 13), ((0.996,), ""))
    experiment.add_finetuning(run, "control", ("mcc",), results, "msgs")
    key = ("m", "msgs", "control", "mcc_percent")
    for rounding, verdict in ((0.5, "within"), (0.05, "below")):
        row = summary_of(experiment, {key: PublishedValue(100.0, 0.0, "Table 10", True, "", rounding)}).row(*key)
        assert row is not None
        assert row.verdict == verdict


def test_chance_is_told_as_the_rows_have_it(experiment: Any) -> None:
    cell, right = experiment.add_model("ltg", 1, []), {"states": {"one": (30, 100)}, "goals": {"two": (40, 100)}}
    experiment.add_minimal_pairs(cell, "tracking", right, chance=dict.fromkeys(right, 0.2))
    experiment.add_minimal_pairs(cell, "piqa", right, chance={"states": 0.25, "goals": 0.5})
    experiment.add_minimal_pairs(cell, "blimp", right)
    experiment.add_correlations(cell, "wug", {"past": -0.24})
    summary = summary_of(experiment)
    notes = {section.title.partition(": ")[2]: section.note for section in sections(summary) if ": " in section.title}
    assert notes == {
        "tracking": "Accuracy in percent by phenomenon; chance is 20.",
        "piqa": "Accuracy in percent by phenomenon; chance is 25 to 50.",
        "blimp": "Accuracy in percent by phenomenon; chance is 50.",
        "wug": "Spearman's correlation with human preferences in percent by phenomenon; chance is 0.",
    }
    (guess_note,) = [note for note in general_notes(summary) if note.startswith("A blind guess")]
    assert "among the candidates of an item, it is correct in 20 to 50 % of items" in guess_note
    assert "its correlation is 0" in guess_note
