import collections
import zipfile

import pytest

from hatchery.errors import ConfigError, EvaluationError
from hatchery.evaluation.minimal_pairs.accuracy import accuracy_table, decide
from hatchery.evaluation.minimal_pairs.pairs import MinimalPair, choose_pairs, read_minimal_pairs
from hatchery.storage.sources import open_source, register_source

PHENOMENA = {  # evaluation.md 2.2: phenomenon -> number of paradigms
    "anaphor_agreement": 2,
    "argument_structure": 9,
    "binding": 7,
    "control_raising": 5,
    "determiner_noun_agreement": 8,
    "ellipsis": 2,
    "filler_gap": 7,
    "irregular_forms": 2,
    "island_effects": 8,
    "npi_licensing": 7,
    "quantifiers": 4,
    "subject_verb_agreement": 6,
}
IDENTICAL = {("passive_1", i) for i in ("324", "810")} | {
    ("principle_A_case_2", i) for i in ("105", "287", "372", "816", "967")
}


def pair(paradigm="p", phenomenon="f", pair_id="0", good="good .", bad="bad ."):
    return MinimalPair(paradigm, phenomenon, pair_id, good, bad)


@pytest.fixture(scope="module")
def blimp(shared_directory, tmp_path_factory):
    manifest = tmp_path_factory.mktemp("blimp") / "blimp.json"
    register_source("blimp", shared_directory / "data" / "blimp.zip", manifest)
    return read_minimal_pairs(open_source(manifest))


def test_the_released_blimp_has_its_67_paradigms_12_phenomena_and_7_identical_pairs(blimp):
    paradigms = collections.Counter(p.paradigm for p in blimp)
    assert len(paradigms) == 67 and set(paradigms.values()) == {1000}
    assert collections.Counter({p.paradigm: p.phenomenon for p in blimp}.values()) == PHENOMENA
    assert {(p.paradigm, p.pair_id) for p in blimp if p.identical} == IDENTICAL
    assert sum(len(s.split()) for p in blimp for s in (p.sentence_good, p.sentence_bad)) == 991_414


def test_an_oracle_is_right_on_all_of_blimp_but_the_identical_pairs(blimp):
    outcomes = [decide(p, 1.0, 0.0) for p in blimp]
    table = {(row.level, row.name): row for row in accuracy_table(blimp, outcomes, "blimp")}
    assert table["suite", "blimp"].accuracy == pytest.approx(1 - 7 / 67_000)
    assert table["paradigm", "principle_A_case_2"].correct == 995
    assert table["suite", "blimp"].ties == 7


def test_a_zip_and_its_unpacked_folder_give_the_same_pairs(tmp_path, make_source, json_lines):
    files = {
        f"blimp/{name}.jsonl": json_lines([{"sentence_good": f"{name} a.", "sentence_bad": f"{name} b."}])
        for name in ("one", "two")
    }
    with zipfile.ZipFile(tmp_path / "pairs.zip", "w") as archive:
        for name, content in reversed(files.items()):
            archive.writestr(name, content)
    register_source("zip", tmp_path / "pairs.zip", tmp_path / "zip.json")
    assert read_minimal_pairs(open_source(tmp_path / "zip.json")) == read_minimal_pairs(make_source(files))


def test_names_come_from_the_record_or_else_from_the_file(make_source, json_lines):
    rows = [
        {"sentence_good": "a", "sentence_bad": "b", "UID": "own", "linguistics_term": "s-selection", "pairID": "7"},
        {"sentence_good": "a", "sentence_bad": "b", "linguistics_term": "filler_gap_dependency", "pair_id": 3},
        {"sentence_good": "a", "sentence_bad": "b", "linguistics_term": "my own term"},
        {"sentence_good": "a", "sentence_bad": "b"},
    ]
    pairs = read_minimal_pairs(make_source({"deep/stem.v1.jsonl": json_lines(rows)}))
    assert [(p.paradigm, p.phenomenon, p.pair_id) for p in pairs] == [
        ("own", "argument_structure", "7"),
        ("stem.v1", "filler_gap", "3"),
        ("stem.v1", "my own term", "3"),
        ("stem.v1", "stem.v1", "4"),
    ]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"sentence_good": "a"}, "x.jsonl:1: the field 'sentence_bad' is missing"),
        ({"sentence_good": "", "sentence_bad": "b"}, "x.jsonl:1: the field 'sentence_good' must be a non-empty text"),
        ({"sentence_good": "a", "sentence_bad": "b", "UID": 4}, "x.jsonl:1: the field 'UID'"),
        ({"sentence_good": "a", "sentence_bad": "b", "pairID": [1]}, "x.jsonl:1: the pair's id"),
    ],
)
def test_a_wrong_pair_is_named_with_file_and_line(make_source, json_lines, row, message):
    with pytest.raises(EvaluationError, match=message):
        read_minimal_pairs(make_source({"x.jsonl": json_lines([row])}))


def test_a_pattern_without_files_is_an_error(make_source):
    with pytest.raises(EvaluationError, match=r"no file matches '\*.jsonl'"):
        read_minimal_pairs(make_source({"x.txt": "nothing"}))


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
    # Rounding noise between two copies of one sentence must not decide.
    assert decide(pair(good="same", bad="same"), -1.0, -1.0000001) == "tie"


def test_the_suite_weighs_paradigms_equally_and_its_second_row_phenomena():
    pairs = [pair("a1", "A")] * 4 + [pair("a2", "A")] * 4 + [pair("b", "B")] * 2
    outcomes = ["correct"] * 4 + ["correct", "wrong", "wrong", "tie"] + ["wrong"] * 2
    table = {(row.level, row.name): row for row in accuracy_table(pairs, outcomes, "mine")}
    assert table["paradigm", "a2"].accuracy == 0.25 and table["paradigm", "a2"].ties == 1
    assert table["phenomenon", "A"].accuracy == 5 / 8
    assert table["suite", "mine"].accuracy == pytest.approx((1 + 0.25 + 0) / 3)
    assert table["suite", "mine_by_phenomenon"].accuracy == pytest.approx((5 / 8 + 0) / 2)
    assert table["suite", "mine"].pairs == 10
