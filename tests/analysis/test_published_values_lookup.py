"""Published values of an experiment, refused tables of published values, and verdicts about our numbers."""

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from hatchery.analysis.published_values import (
    MINUS,
    OVER,
    PublishedNumber,
    combined_deviation,
    for_experiment,
    half_of_last_digit,
    judge,
    read_numbers,
)
from hatchery.analysis.task_averages import BABYLM_GLUE_TASKS, LTG_TABLE_3
from hatchery.errors import ConfigError, EvaluationError

STRICT = {
    "ltg_bert": "ltg_bert_base",
    "elc_biased": "elc_bert_base",
    "elc_zero": "elc_bert_base_zero",
    "elc_normalized": "elc_bert_base_normalized",
    "elc_weighted_output": "elc_bert_base_weighted_output",
}


def test_the_shipped_strict_experiment_names_rows_that_the_paper_has(
    numbers: list[PublishedNumber], repository: Path
) -> None:
    experiment = yaml.safe_load((repository / "config/experiments/strict.yaml").read_text(encoding="utf-8"))
    assert experiment["published"]["rows"] == STRICT | {
        "babylm_opt_125m": "opt_125m",
        "babylm_roberta_base": "roberta_base",
        "babylm_t5_base": "t5_base",
    }
    assert set(STRICT) == set(experiment["runs"])
    found = for_experiment(numbers, "elc_bert", "strict", STRICT)
    for model in STRICT:
        tasks = {task for m, suite, task, _ in found if m == model and suite in ("babylm_glue", "msgs")}
        assert tasks >= set(experiment["finetuning"]["tasks"])
    assert {task for _, suite, task, _ in found if suite == "babylm_glue"} >= set(BABYLM_GLUE_TASKS)
    assert found["elc_zero", "msgs", "msgs_main_verb_lexical_content_the", "mcc_percent"].mean == -74


def test_a_number_without_a_track_belongs_to_all_of_them(numbers: list[PublishedNumber]) -> None:
    key = ("ours", "msgs", "msgs_main_verb_lexical_content_the", "mcc_percent")
    everywhere = [replace(one, track="") if one.row == "elc_bert_base_zero" else one for one in numbers]
    for known, tracks in ((numbers, ["strict"]), (everywhere, ["strict", "strict_small"])):
        for track in tracks:
            found = for_experiment(known, "elc_bert", track, {"ours": "elc_bert_base_zero"})
            assert found[key].mean == -74


@pytest.mark.parametrize(("track", "blimp"), [("strict_small", 62.6), ("strict", 75.3)])
def test_of_a_model_that_two_tracks_print_the_numbers_of_the_own_track_count(
    numbers: list[PublishedNumber], track: str, blimp: float
) -> None:
    # The row of OPT-125M in ELC-BERT, Tables 2 and 7.
    for known in (numbers, numbers[::-1]):
        found = for_experiment(known, "elc_bert", track, {"ours": "opt_125m"})
        assert found["ours", "blimp_filtered", "phenomenon_average", "accuracy_percent"].mean == blimp


def test_of_two_printings_the_one_with_more_digits_counts(numbers: list[PublishedNumber]) -> None:
    found = for_experiment(numbers, "ltg_bert", "", {"span": "ltg_bert_base_span"})
    assert found["span", "blimp", "paradigm_average", "accuracy_percent"].mean == 84.18
    value = found["span", "glue", "glue_mnli", "accuracy_percent"]
    assert (value.mean, value.std, value.source, value.rounding) == (85.05, 0.19, "LTG-BERT Table 6", 0.005)
    assert found["span", "glue", LTG_TABLE_3, "score_percent"].mean == 89.2
    assert not found["span", "glue", "hans", "accuracy_percent"].comparable


def test_of_equal_digits_the_later_table_counts_and_any_table_before_the_text(numbers: list[PublishedNumber]) -> None:
    (row, *_) = [one for one in numbers if (one.row, one.task) == ("elc_bert_base_zero", "phenomenon_average")]
    tables = [replace(row, table=table, value=value) for table, value in (("text", 1.0), ("3", 2.0), ("12", 3.0))]
    for known in (tables, tables[::-1]):
        (found,) = for_experiment(known, "elc_bert", row.track, {"ours": row.row}).values()
        assert (found.mean, found.source) == (3.0, "ELC-BERT Table 12")


def test_a_change_of_a_number_that_does_not_compare_does_not_compare(numbers: list[PublishedNumber]) -> None:
    rows = {"ours": "ltg_bert_base_post_norm"}
    apart = [replace(one, comparable=False, note="other data") if MINUS not in one.metric else one for one in numbers]
    key = ("ours", "glue", "glue_mnli", "accuracy_percent")
    assert [for_experiment(known, "ltg_bert", "", rows)[key].comparable for known in (numbers, apart)] == [True, False]


def test_an_ablation_printed_as_a_change_is_added_to_its_reference(numbers: list[PublishedNumber]) -> None:
    rows = {"ours": "ltg_bert_base_post_norm", "again": "ltg_bert_base_absolute_positions"}
    found = for_experiment(numbers, "ltg_bert", "", rows)
    value = found["ours", "glue", "glue_mnli", "accuracy_percent"]
    assert (value.mean, value.std, value.source, value.rounding) == (84.6, 0.2, "LTG-BERT Table 2", 0.1)
    assert value.comparable
    assert value.note == "printed as -0.5 from 85.1; pretrained at a peak learning rate of 0.005"
    assert found["again", "blimp", "paradigm_average", "accuracy_percent"].mean == 84.0
    assert not any(MINUS in metric for _, _, _, metric in found)


def test_what_is_printed_of_one_row_over_another_is_no_value_of_a_row(numbers: list[PublishedNumber]) -> None:
    assert not any(OVER in key[3] for key in for_experiment(numbers, "elc_bert", "strict", STRICT))


@pytest.mark.parametrize(
    ("paper", "track", "row", "message"),
    [
        ("elc_bertt", "strict", "opt_125m", "published.paper: got 'elc_bertt'; did you mean 'elc_bert'?"),
        ("elc_bert", "strict", "ltg_bert_small", r"got 'ltg_bert_small'; did you mean 'ltg_bert_base'"),
        ("ltg_bert", "strict", "ltg_bert_base_span", "published.track: got 'strict', allowed are: none"),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest_known_one(
    numbers: list[PublishedNumber], paper: str, track: str, row: str, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        for_experiment(numbers, paper, track, {"ours": row})


COLUMNS = "paper,table,track,row,suite,task,metric,value,spread,spread_kind,runs,comparable,note"
GOOD = "elc_bert,9,strict,m,s,t,accuracy_percent,80.0,0.5,deviation_over_runs,5,yes,"


def table(folder: Path, *lines: str) -> Path:
    path = folder / "elc_bert.csv"
    path.write_text("\n".join((COLUMNS, *lines, "")), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (("elc_bert,", "ltg_bert,"), "paper: got 'ltg_bert', expected elc_bert"),
        (("deviation_over_runs", ""), "expected a number with a spread_kind, and no number without a spread_kind"),
        ((",yes,", ",no,"), "for a number that is not comparable, expected the reason"),
    ],
)
def test_a_damaged_number_is_refused(tmp_path: Path, damage: tuple[str, str], message: str) -> None:
    with pytest.raises(EvaluationError, match=rf"elc_bert\.csv, line 2: .*{message}"):
        read_numbers(table(tmp_path, GOOD.replace(*damage)))


def test_tables_that_are_not_those_of_a_paper_are_refused(tmp_path: Path) -> None:
    with pytest.raises(
        EvaluationError, match=r"elc_bert\.csv, line 3: got the row .* a second time, .*; the first is in line 2"
    ):
        read_numbers(table(tmp_path, GOOD, GOOD))
    relation = GOOD.replace("accuracy_percent", "accuracy_percent_minus_other")
    with pytest.raises(
        EvaluationError,
        match="the row m prints s t as a difference from the row other, but the row other has no printed accuracy_perc",
    ):
        for_experiment(read_numbers(table(tmp_path, relation)), "elc_bert", "strict", {"ours": "m"})
    with pytest.raises(EvaluationError, match="got a file named strict, expected the name of a paper"):
        read_numbers(table(tmp_path, GOOD).rename(tmp_path / "strict.csv"))


@pytest.mark.parametrize(
    ("difference", "deviation", "verdict"),
    [
        (2.0, 1.0, "within"),
        (2.001, 1.0, "above"),
        (-2.001, 1.0, "below"),
        (-2.0, 1.0, "within"),
        (0.5, None, "within"),
        (0.51, None, "above"),
        (-0.51, None, "below"),
        (0.05, 0.0, "within"),
        (-0.06, 0.0, "below"),
        (85.3 - 84.8, None, "within"),
    ],
)
def test_ours_is_within_two_deviations_or_half_a_point(difference: float, deviation: float, verdict: str) -> None:
    assert judge(difference, deviation) == verdict


@pytest.mark.parametrize(
    ("published", "ours", "sampling", "combined"),
    [
        (3.0, 4.0, 100.0, 5.0),
        (None, 4.0, 100.0, 4.0),
        (3.0, None, None, 3.0),
        (3.0, None, 4.0, 5.0),
        (None, None, 1.5, 1.5),
        (0.0, 0.0, None, 0.0),
        (None, None, None, None),
    ],
)
def test_the_binomial_deviation_stands_in_only_where_ours_has_none_over_runs(
    published: float | None, ours: float | None, sampling: float | None, combined: float | None
) -> None:
    assert combined_deviation(published, ours, sampling) == combined


@pytest.mark.parametrize(("number", "half"), [("61.4", 0.05), ("-72", 0.5), ("0.25", 0.005)])
def test_the_rounding_of_a_printed_number_is_half_of_its_last_digit(number: str, half: float) -> None:
    assert half_of_last_digit(number) == pytest.approx(half)
