import collections
import json
import math
from pathlib import Path

import polars as pl
import pytest

from hatchery.errors import ConfigError, EvaluationError, HatcheryError
from hatchery.evaluation.minimal_pairs.decisions import (
    Decision,
    accuracy_frame,
    accuracy_table,
    decide,
    decision,
    place_in_row,
    tie_rule,
)
from hatchery.evaluation.minimal_pairs.items import Candidate, Item, minimal_pair
from hatchery.evaluation.minimal_pairs.pairs import (
    POOLED_FILES,
    check_pairs,
    check_size,
    choose_pairs,
    read_minimal_pairs,
)
from hatchery.evaluation.minimal_pairs.predictions import prediction_files, predictions_text, preferred_sentences
from hatchery.evaluation.minimal_pairs.score_suite import read_suite
from hatchery.evaluation.settings import BaselineSettings, ExpectedSize, PairColumns, ScoringSettings, SuiteSettings
from hatchery.experiment.project import Project
from hatchery.typed import build


def pair(paradigm="p", phenomenon="f", pair_id="0", good="good .", bad="bad ."):
    return minimal_pair(paradigm, phenomenon, pair_id, good, bad)


def test_names_come_from_the_record_or_else_from_the_file(make_source, json_lines):
    rows = [
        {"sentence_good": "a", "sentence_bad": "b", "UID": "own", "linguistics_term": "s-selection", "pairID": "7"},
        {"sentence_good": "a", "sentence_bad": "b", "linguistics_term": "filler_gap_dependency", "pair_id": 3},
        {"sentence_good": "a", "sentence_bad": "b", "linguistics_term": "my own term"},
        {"sentence_good": "a", "sentence_bad": "b"},
    ]
    pairs = read_minimal_pairs(make_source({"deep/stem.v1.jsonl": json_lines(rows)}))
    assert [(p.paradigm, p.phenomenon, p.item_id) for p in pairs] == [
        ("own", "argument_structure", "7"),
        ("stem.v1", "filler_gap", "3"),
        ("stem.v1", "my own term", "3"),
        ("stem.v1", "stem.v1", "4"),
    ]


def test_a_pooled_file_is_one_paradigm_and_phenomenon_whatever_its_records_say(make_source, json_lines):
    rows = [
        {"sentence_good": "a", "sentence_bad": "b", "UID": uid, "linguistics_term": "s-selection", "pairID": "7"}
        for uid in ("one", "two")
    ]
    source = make_source({"blimp_filtered/binding.json": json_lines(rows), "other/binding.json": json_lines(rows)})
    pairs = read_minimal_pairs(source, SuiteSettings(files="blimp_filtered/*.json", unit="file"))
    assert [(p.paradigm, p.phenomenon, p.item_id) for p in pairs] == [
        ("binding", "binding", "1"),
        ("binding", "binding", "2"),
    ]
    with pytest.raises(EvaluationError, match=r"several files matching '\*.json' are called 'binding'"):
        read_minimal_pairs(source, SuiteSettings(files="*.json", unit="file"))
    assert {p.paradigm for p in read_minimal_pairs(source, SuiteSettings(files="*.json"))} == {"one", "two"}


def test_the_field_has_one_spelling(make_source, json_lines):
    rows = [{"sentence_good": "a", "sentence_bad": "b", "field": f} for f in ("syntax/semantics", "syntax_semantics")]
    pairs = read_minimal_pairs(make_source({"x.jsonl": json_lines(rows)}))
    assert [p.field for p in pairs] == ["syntax_semantics", "syntax_semantics"]


def test_files_of_another_suite_are_recognised():
    pooled = [pair(paradigm=name) for name in sorted(POOLED_FILES["the BabyLM-filtered BLiMP"])]
    with pytest.raises(EvaluationError) as caught:
        check_size(pooled, "blimp", ExpectedSize(67, 67_000))
    assert str(caught.value) == (
        "suite blimp: got 12 paradigms or files with 12 pairs (the paradigms are the paradigms of the "
        "BabyLM-filtered BLiMP), expected 67 paradigms with 67,000 pairs"
    )
    with pytest.raises(EvaluationError, match="expected 11 pairs"):
        check_size(pooled, "mine", ExpectedSize(pairs=11))
    with pytest.raises(EvaluationError, match="expected 11 paradigms with 12 pairs"):
        check_size(pooled, "mine", ExpectedSize(paradigms=11, pairs=12))
    check_size(pooled, "blimp_filtered", ExpectedSize(paradigms=12))
    check_size(pooled, "mine", ExpectedSize())


def test_the_size_of_a_suite_is_checked_only_if_all_of_its_files_are_read(make_source, json_lines):
    files = {f"{name}.jsonl": json_lines([{"sentence_good": "a .", "sentence_bad": "b ."}] * 2) for name in "ab"}
    source, suite = make_source(files), ScoringSettings(suite="mine", expected=ExpectedSize(pairs=3))
    check_pairs(source, suite, lambda name: 1 if name == "b.jsonl" else None)
    with pytest.raises(EvaluationError, match="suite mine: got 2 paradigms or files with 4 pairs, expected 3 pairs"):
        check_pairs(source, suite, lambda name: None)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"sentence_good": "", "sentence_bad": "b"}, "x.jsonl:1: the field 'sentence_good' must be a non-empty text"),
        ({"sentence_good": "a", "sentence_bad": "b", "pairID": [1]}, "x.jsonl:1: the pair's id"),
    ],
)
def test_a_wrong_pair_is_named_with_file_and_line(make_source, json_lines, row, message):
    with pytest.raises(EvaluationError, match=message):
        read_minimal_pairs(make_source({"x.jsonl": json_lines([row])}))


def test_a_pattern_without_files_is_an_error(make_source):
    with pytest.raises(
        EvaluationError, match=r"no file matches '\*.jsonl', the `files` of the suite; there are: x.txt"
    ):
        read_minimal_pairs(make_source({"x.txt": "nothing"}))
    names = [f"{number}.txt" for number in range(9)]
    with pytest.raises(EvaluationError, match=rf"there are: {', '.join(names[:8])}, \.\.\.$"):
        read_minimal_pairs(make_source(dict.fromkeys(names, "nothing")), SuiteSettings(files="*.jsonl"))


TABLE = SuiteSettings(format="rows", files="*", columns=PairColumns("right", "wrong"))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("pairs.csv", '\ufeffid,right,wrong\n1,"Well, he eats.",He eat.\n2,They eat.,They eats.\n,,\n'),
        ("pairs.csv", "id;right;wrong\r\n1; Well, he eats.;He eat. \r\n2;They eat.;They eats.\r\n"),
        ("pairs.tsv", 'id\tright\twrong\n1\t"Well, he eats."\tHe eat.\n2\tThey eat.\tThey eats.\n'),
        (
            "pairs.jsonl",
            '{"right": "Well, he eats.", "wrong": "He eat."}\n{"right": "They eat.", "wrong": "They eats."}\n',
        ),
    ],
)
def test_tables_of_spreadsheets_and_json_lines_name_their_columns(make_source, name, content):
    pairs = read_minimal_pairs(make_source({name: content}), TABLE)
    assert [(p.candidates[0].text, p.candidates[1].text) for p in pairs] == [
        ("Well, he eats.", "He eat."),
        ("They eat.", "They eats."),
    ]
    assert {(p.paradigm, p.phenomenon) for p in pairs} == {("pairs", "pairs")}


def test_a_column_may_be_inside_of_another_column(make_source, tmp_path):
    rows = [{"pair": {"right": "They eat.", "wrong": "They eats."}, "more": 1}]
    pl.DataFrame(rows).write_parquet(tmp_path / "made.parquet")
    suite = SuiteSettings(format="rows", files="*.parquet", columns=PairColumns("pair.right", "pair.wrong"))
    [item] = read_minimal_pairs(make_source({"a.parquet": (tmp_path / "made.parquet").read_bytes()}), suite)
    assert [one.text for one in item.candidates] == ["They eat.", "They eats."]


def test_a_table_may_have_several_wrong_answers_and_what_is_given_before_them(make_source):
    source = make_source({"a.csv": "context,right,wrong,worse\nThe box has, a hat . , a shoe .,nothing .\n"})
    columns = PairColumns("right", ("wrong", "worse"), prefix="context")
    [item] = read_minimal_pairs(source, SuiteSettings(format="rows", files="*.csv", columns=columns))
    assert [(one.prefix, one.completion) for one in item.candidates] == [
        ("The box has ", text) for text in ("a hat .", "a shoe .", "nothing .")
    ]
    assert not item.is_pair and pair().is_pair


def test_of_several_candidates_the_best_is_preferred_and_the_blind_guess_follows_from_their_number():
    item = Item("p", "f", "0", tuple(map(Candidate, ("right", "a", "b", "c"))))
    assert decide(item, -1.0, -2.0, -3.0, -2.0) == "correct"
    assert decide(item, -2.0, -4.0, -2.0, -3.0) == "tie"
    assert decide(item, -2.0, -4.0, -1.0, -3.0) == "wrong"
    suite = SuiteSettings()
    scores = [[-1.0, -2.0, -3.0, -2.0], [-2.0, -4.0, -2.0, -3.0], [-2.0, -4.0, -1.0, -3.0]]
    chosen = preferred_sentences([item] * 3, [decision(item, of, suite) for of in scores])
    assert chosen == {"p": ["right", "right", "b"]}
    table = accuracy_table([item, pair("q")], ["correct", "wrong"], "mine")
    chances = {"p": 0.25, "q": 0.5, "f": 0.375, "mine": 0.375, "mine_by_phenomenon": 0.375}
    assert {row.name: row.chance for row in table} == chances
    assert accuracy_frame(table).columns[-2:] == ["accuracy_ties_correct", "chance"]
    assert "chance" not in accuracy_frame(accuracy_table([pair()], ["correct"], "mine")).columns


def test_a_table_may_name_paradigms_and_phenomena(make_source):
    source = make_source({"a.csv": "right,wrong,kind,group\nHe eats.,He eat.,number,agreement\n"})
    columns = PairColumns("right", "wrong", "kind", "group")
    [found] = read_minimal_pairs(source, SuiteSettings(format="rows", files="*.csv", columns=columns))
    assert (found.paradigm, found.phenomenon) == ("number", "agreement")
    without = PairColumns("right", "wrong", "kind")
    [found] = read_minimal_pairs(source, SuiteSettings(format="rows", files="*.csv", columns=without))
    assert (found.paradigm, found.phenomenon) == ("number", "number")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("right,wrong\nWell, he eats.,He eat.\n", "a.csv:2: the row has more cells than the header; put quotes around"),
        (
            b"right,wrong\nna\xefve,b\n",
            "a.csv: byte 14 is not utf-8 .*save the file as UTF-8$",
        ),
    ],
)
def test_a_wrong_table_is_named_with_file_and_line(make_source, content, message):
    with pytest.raises(HatcheryError, match=message):
        read_minimal_pairs(make_source({"a.csv": content}), TABLE)


@pytest.mark.parametrize(
    ("suite", "name", "content"),
    [
        (
            "blimp_nl",
            "anaphor_agreement__number.jsonl",
            '{"sentence_good": "Ik was me.", "sentence_bad": "Ik was je."}\n',
        ),
        ("zhoblimp", "BA_deletion.jsonl", '{"sentence_good": "我把书看了。", "sentence_bad": "我把看了书。"}\n'),
        ("multiblimp_nld", "nld/data.tsv", "prefix\tsen\twrong_sen\nx\tDe hond slaapt.\tDe hond slapen.\n"),
        ("multiblimp_eng", "eng/data.tsv", "prefix\tsen\twrong_sen\nx\tThe dog sleeps.\tThe dog sleep.\n"),
    ],
)
def test_pairs_of_the_multilingual_track_are_read_as_their_suites_say(make_source, repository, suite, name, content):
    settings = build(ScoringSettings, Project(repository / "config").suite(suite).scored(suite))
    (pair,) = read_minimal_pairs(
        make_source({name: content, "README.md": "# A card", "deu/data.tsv": "sen\n"}), settings
    )
    assert pair.is_pair and pair.paradigm == Path(name).stem and pair.candidates[0].text != pair.candidates[1].text
    # If k texts tie, each has the credit 1/k.
    assert tie_rule(settings) == "shared"


def test_lines_of_zorro_alternate_and_a_setting_says_which_is_good(make_source):
    source = make_source({"agreement-number.txt": "He eat .\nHe eats .\n\nThey eats .\nThey eat .\n"})
    second = SuiteSettings(format="alternating_lines", files="*.txt", good_line="second")
    found = [
        (p.paradigm, p.phenomenon, p.candidates[0].text, p.candidates[1].text)
        for p in read_minimal_pairs(source, second)
    ]
    assert found == [
        ("agreement-number", "agreement", "He eats .", "He eat ."),
        ("agreement-number", "agreement", "They eat .", "They eats ."),
    ]
    first = SuiteSettings(format="alternating_lines", files="*.txt", good_line="first")
    assert [p.candidates[0].text for p in read_minimal_pairs(source, first)] == ["He eat .", "They eats ."]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a\nb\nc\n", "x.txt:4: expected the second sentence of the pair .* line 3, got the end of the file"),
        ("\n", "x.txt: the file contains no records"),
        ("a\n\nb\nc\n", "x.txt:2: expected the second sentence of the pair .* line 1, got an empty line"),
    ],
)
def test_a_line_without_its_partner_is_named(make_source, content, message):
    suite = SuiteSettings(format="alternating_lines", files="*.txt", good_line="first")
    with pytest.raises(EvaluationError, match=message):
        read_minimal_pairs(make_source({"x.txt": content}), suite)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"format": "rows"}, "columns: got null, expected {good: ..., bad: ...}"),
        (
            {"good_line": "first"},
            "good_line: got 'first', expected null, because only the format alternating_lines has this key",
        ),
    ],
)
def test_a_format_has_its_own_keys_only(settings, message):
    with pytest.raises(ConfigError, match=message):
        SuiteSettings(**settings)


@pytest.mark.parametrize(
    ("cls", "settings", "message"),
    [
        *(
            (SuiteSettings, {"format": name}, f"edition: got 2023, expected 2025 or 2026 with the format {name}")
            for name in ("ewok", "entity_tracking", "comps", "global_piqa", "wug")
        ),
        (SuiteSettings, {"official": True}, "official: got true, expected false with the edition 2023"),
        (SuiteSettings, {"counted_by": "server", "edition": 2025}, "counted_by: got 'server', expected null unless"),
        (SuiteSettings, {"counted_by": "server", "edition": 2026, "format": "wug"}, "counted_by: got 'server'"),
        (SuiteSettings, {"ties": "wrong", "edition": 2026, "official": True}, "ties: got 'wrong', expected null"),
        (
            BaselineSettings,
            {"architecture": "causal", "predicts_next": True},
            "predicts_next: got true, expected false with architecture causal",
        ),
    ],
)
def test_a_rule_of_a_year_or_an_architecture_is_refused_for_another(cls, settings, message):
    with pytest.raises(ConfigError, match=message):
        cls(**settings)


def test_the_subset_of_a_suite_is_that_of_its_seed(make_source, json_lines):
    rows = [{"sentence_good": f"good {number}", "sentence_bad": f"bad {number}"} for number in range(30)]
    source = make_source({"a.jsonl": json_lines(rows)})
    drawn = [
        [item.item_id for item in read_suite(source, ScoringSettings(suite="a", pairs_per_paradigm=3, seed=seed)).items]
        for seed in (0, 7, 7)
    ]
    assert drawn[0] != drawn[1] == drawn[2] and len(drawn[0]) == 3


def test_subsets_are_seeded_nested_and_independent_of_other_paradigms():
    pairs = [pair(paradigm=name, pair_id=str(i)) for i in range(40) for name in ("a", "b")]
    five, ten = choose_pairs(pairs, 5, seed=1), choose_pairs(pairs, 10, seed=1)
    assert collections.Counter(p.paradigm for p in ten) == {"a": 10, "b": 10}
    assert set(five) < set(ten)
    assert five == choose_pairs(pairs, 5, seed=1) != choose_pairs(pairs, 5, seed=2)
    assert ten == sorted(ten, key=pairs.index)
    assert [p for p in ten if p.paradigm == "a"] == choose_pairs([p for p in pairs if p.paradigm == "a"], 10, seed=1)
    assert choose_pairs(pairs, None, seed=1) == choose_pairs(pairs, 1000, seed=1) == pairs
    with pytest.raises(ConfigError, match="pairs_per_paradigm"):
        choose_pairs(pairs, 0, seed=1)


def test_only_a_strictly_higher_score_is_correct():
    assert decide(pair(), -1.0, -2.0) == "correct"
    assert decide(pair(), -2.0, -1.0) == "wrong"
    assert decide(pair(), -1.0, -1.0) == "tie"
    # A score that is not a number is the lowest score.
    assert [decide(pair(), *scores) for scores in ((math.nan, -9.0), (-9.0, math.nan))] == ["wrong", "correct"]
    # Rounding errors between two copies of one sentence must not decide.
    for scores in ((-1.0, -1.0000001), (-1.0000001, -1.0)):
        assert decide(pair(good="same", bad="same"), *scores) == "tie"


def test_the_suite_weighs_paradigms_equally_and_its_second_row_phenomena():
    pairs = [pair("a1", "A")] * 4 + [pair("a2", "A")] * 4 + [pair("b", "B")] * 2
    outcomes = ["correct"] * 4 + ["correct", "wrong", "wrong", "tie"] + ["wrong"] * 2
    table = {(row.level, row.name): row for row in accuracy_table(pairs, outcomes, "mine")}
    assert table["paradigm", "a2"].accuracy == 0.25 and table["paradigm", "a2"].ties == 1
    assert table["phenomenon", "A"].accuracy == 5 / 8
    assert table["suite", "mine"].accuracy == pytest.approx((1 + 0.25 + 0) / 3)
    assert table["suite", "mine_by_phenomenon"].accuracy == pytest.approx((5 / 8 + 0) / 2)
    counts = [(table["suite", name].pairs, table["suite", name].correct) for name in ("mine", "mine_by_phenomenon")]
    assert counts == [(10, 5)] * 2 and table["suite", "mine"].ties == table["phenomenon", "A"].ties == 1
    assert table["paradigm", "a2"].accuracy_ties_correct == 0.5
    assert table["phenomenon", "A"].accuracy_ties_correct == 6 / 8
    assert table["suite", "mine"].accuracy_ties_correct == pytest.approx((1 + 0.5 + 0) / 3)
    assert table["suite", "mine_by_phenomenon"].accuracy_ties_correct == pytest.approx((6 / 8 + 0) / 2)


@pytest.mark.parametrize(
    ("settings", "files"),
    [
        ({"unit": "file"}, ["predictions/p/predictions.txt"]),
        ({"unit": "paradigm"}, []),
        ({"edition": 2025}, ["predictions.json"]),
        ({"edition": 2026, "unit": "file"}, ["predictions.json"]),
        ({"edition": 2026, "pairs_per_paradigm": 5}, []),
        ({"edition": 2026, "format": "wug"}, []),
        ({"edition": 2026, "format": "multiple_choice", "track": "multilingual"}, []),
    ],
)
def test_prediction_files_are_those_that_the_server_of_the_year_accepts(settings, files):
    suite = ScoringSettings(suite="mine", **settings)
    found = dict(prediction_files([pair(good="a .\rb\nc"), pair()], [decision(pair(), [2.0, 1.0], suite)] * 2, suite))
    assert list(found) == files
    if "predictions/p/predictions.txt" in found:
        assert found["predictions/p/predictions.txt"] == "index\tprediction\n0\ta .\\rb\\nc\n1\tgood .\n"
    if "predictions.json" in found:
        rows = [{"id": "p_0", "pred": "a .\rb\nc"}, {"id": "p_1", "pred": "good ."}]
        assert json.loads(found["predictions.json"]) == {"p": {"predictions": rows}}


def test_predictions_are_the_preferred_texts_of_each_file_with_ties_to_the_good_one():
    pairs = [
        pair("qa", good="A: x?\nB: y.", bad="A: x?\nB: z."),
        pair("b"),
        pair("qa"),
        pair("qa", good="same", bad="same"),
    ]
    chosen = {"correct": 0, "wrong": 1, "tie": 0}
    decisions = [Decision(outcome, chosen[outcome], 0.0) for outcome in ("correct", "wrong", "wrong", "tie")]
    preferred = preferred_sentences(pairs, decisions)
    assert preferred == {"qa": ["A: x?\nB: y.", "bad .", "same"], "b": ["bad ."]}
    assert predictions_text(preferred["qa"]) == "index\tprediction\n0\tA: x?\\nB: y.\n1\tbad .\n2\tsame\n"


@pytest.mark.parametrize("place", range(4))
def test_candidates_have_their_places_in_the_row_around_the_right_one(place: int) -> None:
    row = ["w0", "w1", "w2"]
    row.insert(place, "right")
    candidates = tuple(Candidate(text) for text in ("right", "w0", "w1", "w2"))
    item = Item("p", "p", "1", candidates, place=place)
    found = [place_in_row(item, candidate) for candidate in range(4)]
    assert found == [row.index(text) for text in ("right", "w0", "w1", "w2")]
