"""Comparison of a GPU's and a CPU's results: limits for perplexities and minimal pairs, and no missing values."""

from pathlib import Path

import polars as pl

from benchmarks.compare_results import KEYS, compared, compared_summaries, means, shares_of_pairs

PERPLEXITY = ("ltg_bert", "pretraining", "development", "perplexity")
PAIRS = ("ltg_bert", "blimp", "binding", "accuracy_percent")
TASK = ("ltg_bert", "pairs_of_sentences", "entailment", "accuracy_percent")


def summary_of(folder: Path, values: dict[tuple[str, str, str, str], float | None]) -> Path:
    """Write a summary and its tidy table, with the columns that the comparison reads."""
    frame = pl.DataFrame([*values], schema=KEYS, orient="row")
    frame.with_columns(mean=pl.Series([*values.values()], dtype=pl.Float64)).write_csv(folder / "summary.csv")
    kinds = {PERPLEXITY: "pretraining", PAIRS: "minimal_pairs", TASK: "finetuning"}
    frame.with_columns(kind=pl.Series([kinds[key] for key in values])).write_parquet(folder / "measurements.parquet")
    return folder / "summary.csv"


def test_perplexities_may_differ_by_a_percent_and_pairs_by_a_point_and_tasks_are_shown() -> None:
    on_cpu = {PERPLEXITY: 10.0, PAIRS: 80.0, TASK: 60.0}
    table, within = compared(on_cpu, {PERPLEXITY: 10.09, PAIRS: 79.1, TASK: 70.0}, {PAIRS})
    assert within and [row.cells[6] for row in table.rows] == ["+0.90 %", "-0.90", "+10.00"]
    for key, value in ((PERPLEXITY, 10.2), (PAIRS, 81.5)):
        table, within = compared(on_cpu, {**on_cpu, key: value}, {PAIRS})
        assert not within and [row.cells[-1] for row in table.rows].count("the difference is above its limit") == 1


def test_what_the_tidy_tables_call_minimal_pairs_has_the_limit_however_its_suite_is_named(tmp_path: Path) -> None:
    summary = summary_of(tmp_path, {PAIRS: 80.0, TASK: 60.0, PERPLEXITY: 10.0})
    assert shares_of_pairs(summary) == {PAIRS}
    (tmp_path / "gpu").mkdir()
    other = summary_of(tmp_path / "gpu", {PAIRS: 81.5, TASK: 70.0, PERPLEXITY: 10.0})
    table, within = compared_summaries(summary, other)
    assert not within and [row.cells[-1] for row in table.rows] == ["the difference is above its limit", "", ""]


def test_a_missing_value_is_told(tmp_path: Path) -> None:
    on_cpu = means(summary_of(tmp_path, {PAIRS: 80.5, TASK: None}))
    assert on_cpu == {PAIRS: 80.5}
    table, within = compared(on_cpu, {}, {PAIRS})
    assert not within and table.rows[0].cells[-1] == "no value on the GPU"
