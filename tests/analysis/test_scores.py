"""Scores of an experiment's models: the best models, the headline, and notes on numbers that are not comparable."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from summary_text import write_rows_of_summary

from hatchery.analysis.comparability import distinguishing_labels, not_compared, why
from hatchery.analysis.scores import Measure, Scores, average_name, direction, read_scores
from hatchery.analysis.summary_rows import SummaryRow
from hatchery.evaluation.reading_times.measurements import GAINS, PERPLEXITY_OF_WORDS


def scored(model: str, mean: float, std: float | None = 1.0, **more: Any) -> SummaryRow:
    row = SummaryRow(
        *("mine", model, "suite", "task", "accuracy_percent"),
        *(mean, std, 2, 0, mean, 0, None, None, "", None, "", ""),
        seeds=2,
    )
    return replace(row, **more)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([scored("a", 80.0), scored("b", 70.0)], "a"),
        ([scored("a", 80.0), scored("b", 70.0)][::-1], "a"),
        # The deviation of a difference is 5 for deviations of 3 and 4.
        ([scored("a", 80.0, 3.0), scored("b", 75.0, 4.0), scored("c", 60.0)], "ab"),
        ([scored("a", 80.0, 3.0), scored("b", 74.9, 4.0), scored("c", 60.0)], "a"),
        # Noise explains all differences.
        ([scored("a", 80.0, 3.0), scored("b", 75.0, 4.0)], ""),
        # The best score exceeds a blind guess by its noise, or by more.
        ([scored("a", 51.0, blind_guess=50.0), scored("b", 40.0)], ""),
        ([scored("a", 51.1, blind_guess=50.0), scored("b", 40.0)], "a"),
        # A single run has the noise of the sampled items: 1.96 * 1 = 1.96.
        ([scored("a", 80.0, None, sampling_deviation=1.0), scored("b", 78.1, 0.0), scored("c", 60.0)], "ab"),
        ([scored("a", 80.0, None, sampling_deviation=1.0), scored("b", 78.0, 0.0), scored("c", 60.0)], "a"),
        ([scored("a", 80.0, None), scored("b", 60.0)], ""),
        # The best model's noise of 3 replaces an unknown noise, so a difference has a deviation of 4.243.
        ([scored("a", 80.0, 3.0), scored("b", 75.8, None), scored("c", 60.0)], "ab"),
        ([scored("a", 80.0, 3.0), scored("b", 75.7, None), scored("c", 60.0)], "a"),
        # With or without failed runs, `b` is within the noise of the lower mean of `a`.
        (
            [
                scored("a", 80.0, n_failed=1, mean_without_failed=90.0),
                scored("b", 60.0, n_failed=1, mean_without_failed=79.0),
                scored("c", 50.0),
            ],
            "ab",
        ),
        ([scored("a", 80.0, basis="text: x"), scored("b", 70.0, basis="text: y")], ""),
        ([scored("a", 80.0)], ""),
    ],
)
def test_the_best_models_are_those_that_noise_does_not_tell_apart(rows: list[SummaryRow], expected: str) -> None:
    models = [row.model for row in rows]
    assert Scores(rows, models).best(Measure("", "suite", "task", "accuracy_percent")) == set(expected)
    # Of losses, the lowest is the best.
    losses = [
        replace(
            row,
            metric="loss_nats",
            mean=100 - (row.mean or 0),
            mean_without_failed=100 - (row.mean_without_failed or 0),
            blind_guess=None if row.blind_guess is None else 100 - row.blind_guess,
        )
        for row in rows
    ]
    assert Scores(losses, models).best(Measure("", "suite", "task", "loss_nats")) == set(expected)


def test_a_note_groups_numbers_by_reason_and_names_three_of_them_and_up_to_four_values() -> None:
    apart = {"asked": ["15 % of subwords (1a)", "40 % of spans (2b)"], "tokenizer": ["x", "y"]}
    labels = dict.fromkeys("abc", apart) | {"d": {"text": ["x", "y"]}, "e": {}}
    tokens = (
        "because models predicted different tokens (15 % of subwords; 40 % of spans) and the tokenizers differ. "
        "Comparable would be: perplexity with `masking: common`, for which all models of one objective predict the "
        "same tokens, and bits per byte, with the same masks."
    )
    text = "Not compared: d, because the texts differ. Comparable would be: numbers on the same text."
    assert not_compared(labels) == [f"Not compared: a, b, c, {tokens} {text}"]
    assert not_compared(dict.fromkeys("abcd", apart)) == [f"Not compared: a, b, c and 1 more, {tokens}"]
    assert not_compared({"e": {}}) == []
    precisions = ["", "bf16", "fp16", "fp32", "fp64"]
    assert why({"precision": precisions[:4]}).startswith("the precisions differ (not known; bf16; fp16; fp32). Comp")
    assert why({"precision": precisions}).startswith("the precisions differ. Comparable")
    bases = ["text: x; precision: fp32 (cpu)", "precision: bf16"]
    assert distinguishing_labels(bases) == {bases[0]: "text x, fp32", bases[1]: "text not known, bf16"}


def test_the_headline_is_held_out_text_averages_and_the_first_score_of_a_suite_without_an_average(
    tmp_path: Path,
) -> None:
    means = {
        **{("own", "first", "accuracy_percent"): 1.0, ("own", "second", "accuracy_percent"): 2.0},
        ("perplexity", "test", "perplexity"): 3.0,
        ("perplexity", "test", "bits_per_byte"): 4.0,
        ("pretraining", "development", "perplexity"): 5.0,
        **{("blimp", "phenomenon_average", "accuracy_percent"): 6.0, ("blimp", "pair_average", "ties"): 6.0},
        # Both averages are shown only if they differ.
        ("blimp", "paradigm_average", "accuracy_percent"): 6.5,
        **{("ewok", f"{name}_average", "accuracy_percent"): 7.0 for name in ("phenomenon", "paradigm")},
        **{("pairs", f"{name}_average", "accuracy_percent"): 8.0 for name in ("phenomenon", "pair")},
        **{("glue", "average", metric): 9.0 for metric in ("run_score_percent", "score_percent")},
        ("glue", "cola", "mcc_percent"): 9.0,
        **{("translation", "test", metric): 10.0 for metric in ("chrf", "bleu")},
    }
    rows = [
        replace(scored(model, mean), suite=suite, task=task, metric=metric)
        for model in ("a", "b", "c")
        for (suite, task, metric), mean in means.items()
    ]
    path = write_rows_of_summary(tmp_path, rows)
    scores = read_scores(path, {"c": "the last", "d": "not scored", "a": "the first"})
    # Models with labels come first, in the order of the labels.
    assert list(scores.models) == ["c", "a", "b"]
    assert [(measure.label, measure.task, measure.metric) for measure in scores.headline()] == [
        ("development perplexity while training", "development", "perplexity"),
        ("test perplexity", "test", "perplexity"),
        ("test bits per byte", "test", "bits_per_byte"),
        ("blimp: phenomenon average", "phenomenon_average", "accuracy_percent"),
        ("blimp: paradigm average", "paradigm_average", "accuracy_percent"),
        ("ewok: phenomenon average", "phenomenon_average", "accuracy_percent"),
        ("pairs: pair average", "pair_average", "accuracy_percent"),
        ("own: first", "first", "accuracy_percent"),
        ("glue: average", "average", "score_percent"),
        ("translation: test, bleu", "test", "bleu"),
    ]
    assert scores.suites() == ["perplexity", "pretraining", "own", "blimp", "ewok", "pairs", "glue", "translation"]
    assert [average_name("average", metric) for metric in ("score_percent", "run_score_percent")] == [
        "average, by task",
        "average, by run",
    ]


def test_lower_perplexities_and_losses_are_better_and_higher_gains_and_scores() -> None:
    assert [direction(name) for name in ("perplexity", "bits_per_byte", "loss_nats", PERPLEXITY_OF_WORDS)] == [-1] * 4
    assert {direction(name) for name in (*GAINS, "f1_percent", "bleu", "chrf", "best_bleu")} == {1}
    assert direction("number_of_words") == 0
