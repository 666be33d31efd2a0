"""Gains in the likelihood of reading times as rows of tables, and surprisals by item and word, by hand."""

from typing import Any

import polars as pl
from measured_rows import replaced

from hatchery.evaluation.basis import differing
from hatchery.evaluation.evaluation import Evaluated
from hatchery.evaluation.reading_times.measurements import gain_rows, item_words


def test_every_response_is_a_task_with_the_gain_per_row_of_its_own_regression(tmp_path) -> None:
    table = "response,rows,gain_nats,gain_deviation_nats\nfirst,80,1.0,0.4\ntotal,50,-2.0,\n"
    facts = {"scoring": "left_to_right", "scored_words": 9, "perplexity_of_words": 5.5}
    made = replaced(tmp_path, "scores.csv", table, {"name": "meco"}, facts)
    columns = ("task", "metric", "value", "sampling_deviation", "items", "blind_guess", "primary")
    rows = [tuple(row.get(name) for name in columns) for row in gain_rows(Evaluated(made, made, "meco"))]
    assert rows == [
        ("meco/first", "gain_millinats_per_word", 12.5, 5.0, 80, 0.0, True),
        ("meco/first", "gain_log_likelihood", 1.0, 0.4, 80, 0.0, False),
        ("meco/total", "gain_millinats_per_word", -40.0, None, 50, 0.0, True),
        ("meco/total", "gain_log_likelihood", -2.0, None, 50, 0.0, False),
        ("meco", "perplexity_of_words", 5.5, None, 9, None, False),
    ]


def test_gains_are_comparable_if_text_rows_scoring_and_rules_are_equal(tmp_path) -> None:
    def basis_of(name: str, scoring: str = "pll", **settings: Any) -> str:
        facts = {"scoring": scoring, "scored_words": 9, "perplexity_of_words": 5.5}
        table = f"response,rows,gain_nats,gain_deviation_nats\nrt,{settings.pop('rows', 80)},1.0,0.4\n"
        given = {"stage": "measure_reading_times", "scoring": "auto", "name": name, "spillover": 1, **settings}
        made = replaced(tmp_path / name, "scores.csv", table, given, facts)
        made.inputs["source"] = "ab" * 32
        return gain_rows(Evaluated(made, made, name))[0]["basis"]

    first = basis_of("first")
    assert first == basis_of("second", stage_version=9) and first.startswith(f"text: {'ab' * 6}; items: 80; ")
    assert set(differing([first, basis_of("third", spillover=2)])) == {"rules"}
    assert differing([first, basis_of("fourth", scoring="left_to_right")]) == {"scoring": ["left_to_right", "pll"]}
    assert differing([first, basis_of("fifth", rows=79)]) == {"items": ["79", "80"]}


def test_surprisals_by_item_and_word_number_keep_the_first() -> None:
    rows = [("3", 1.0, 0.5), ("3", 2.0, None), ("3", 1.0, 9.0), ("x", 12.0, 2.25), ("x", 12.5, 4.0), ("x", 2e6, 5.0)]
    words = pl.DataFrame(rows, schema=["item", "position", "surprisal_nats"], orient="row")
    assert item_words(words) == {"3:1": 0.5, "x:12": 2.25, "x:12.5": 4.0, "x:2000000": 5.0}
