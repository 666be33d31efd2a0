"""Rows of BabyLM's zero-shot tasks, and the rules for ties and means, on invented items."""

import json

import pytest

from hatchery.errors import EvaluationError
from hatchery.evaluation.minimal_pairs.decisions import accuracy_table, correlation_frame, decision
from hatchery.evaluation.minimal_pairs.items import Candidate, Item, minimal_pair
from hatchery.evaluation.minimal_pairs.pairs import read_minimal_pairs
from hatchery.evaluation.settings import ScoringSettings

TWO = (Candidate(" a"), Candidate(" b"))


def test_the_score_of_entity_tracking_is_the_mean_of_its_files_and_of_others_that_of_paradigms():
    items = [Item("a_0_ops", "a", "1", TWO), Item("a_1_ops", "a", "2", TWO), Item("b_0_ops", "b", "1", TWO)]
    outcomes = ["correct", "wrong", "wrong"]
    suite, by_phenomenon = accuracy_table(items, outcomes, "entity", by_split=True)[-2:]
    assert suite.accuracy == by_phenomenon.accuracy == 0.25
    assert accuracy_table(items, outcomes, "entity")[-2].accuracy == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("edition", "official", "expected"), [(2026, False, 50), (2026, True, None), (2025, True, 100)]
)
def test_a_constant_scorer_has_what_the_tie_rule_gives(edition, official, expected):
    suite = ScoringSettings(suite="a", edition=edition, official=official)
    items = [minimal_pair("p", "p", str(row), "good", "bad") for row in range(400)]
    credits = [decision(item, [-1.0, -1.0], suite).credit for item in items]
    share = 100 * sum(credits) / len(credits)
    assert share == expected if expected is not None else 40 < share < 60 and set(credits) == {0.0, 1.0}
    options = Item("p", "p", "1", tuple(Candidate(text, "given") for text in "abcde"))
    five = [decision(options, [0.0] * 5, ScoringSettings(suite="a", edition=2026)).credit]
    assert five == [0.2]


def test_a_draw_between_ties_is_one_of_its_seed_paradigm_and_item():
    def drawn(paradigm, seed):
        suite = ScoringSettings(suite="a", edition=2026, official=True, seed=seed)
        items = [minimal_pair(paradigm, "p", str(row), "good", "bad") for row in range(60)]
        return tuple(decision(item, [-1.0, -1.0], suite).chosen for item in items)

    assert drawn("p", 0) == drawn("p", 0)
    assert len({drawn(paradigm, seed) for paradigm in ("p", "q") for seed in (0, 1)}) == 4


def test_the_correlation_with_people_is_that_of_their_share_for_the_first_text():
    asked = {"a": [(0.1, -2.0), (0.6, 0.0), (0.9, 2.0), (0.4, -0.5)], "b": [(0.1, 0.0), (0.6, -1.0), (0.9, 2.0)]}
    items = [Item(name, name, "1", TWO, preference=share) for name, rows in asked.items() for share, _ in rows]
    scores = [[ahead - 3.0, -3.0] for rows in asked.values() for _, ahead in rows]
    # For the ranks 1, 2, 3 and 2, 1, 3, the correlation is 1 - 6 x 2 / (3 x 8) = 0.5.
    assert correlation_frame(items, scores).rows() == [("a", 4, pytest.approx(1.0)), ("b", 3, pytest.approx(0.5))]


def test_a_solution_that_is_null_is_none_of_a_row(make_source):
    row = {"prompt": "a", "solution0": "b", "solution1": "c", "solution2": None, "label": 1, "example_id": "1"}
    settings = ScoringSettings(suite="a", edition=2026, format="global_piqa")
    (item,) = read_minimal_pairs(make_source({"a.jsonl": json.dumps(row) + "\n"}), settings)
    assert [one.completion for one in item.candidates] == [" c", " b"]


EWOK = '{"Context1": "a", "Context2": "b", "Target1": "c", "Target2": "d", "Domain": "x"}\n'
HOSTILE = [
    ("ewok", EWOK + '{"Context1": "a"}\n', r"a.jsonl:2: the field 'Domain' is missing"),
    ("ewok", EWOK + EWOK.replace('"c"', "3"), r"a.jsonl:2: the field 'Target1' must be a non-empty text, got 3"),
    ("ewok", "", "a.jsonl: the file contains no records"),
    ("entity_tracking", '{"input_prefix": "a", "options": ["b", ""], "numops": 0}\n', "a.jsonl:1: the field 'options'"),
    ("entity_tracking", '{"input_prefix": "a", "options": "b", "numops": 0}\n', "a.jsonl:1: the field 'options'"),
    ("entity_tracking", '{"input_prefix": "a", "options": ["b", "c"], "numops": true}\n', "a.jsonl:1: the field 'num"),
    ("comps", '{"prefix_acceptable": "a", "prefix_unacceptable": " "}\n', "a.jsonl:1: the field 'property_phrase'"),
    (
        "global_piqa",
        '{"prompt": "a", "solution0": "b", "solution1": "c", "label": 2, "example_id": "1"}\n',
        "a.jsonl:1: the field 'label' must be the index of a solution, 0 to 1, got 2",
    ),
    (
        "global_piqa",
        2 * '{"prompt": "a", "solution0": "b", "solution1": "c", "label": 1, "example_id": "1"}\n',
        "a.jsonl:2: got the 'example_id' '1' a second time",
    ),
    (
        "wug",
        '{"sentences": "a b", "ratio": 0.5}\n',
        "a.jsonl:1: the field 'sentences' must be two texts separated by a tab",
    ),
    ("wug", '{"sentences": "a\\tb", "ratio": 2}\n', "a.jsonl:1: the field 'ratio' must be a fraction"),
]


@pytest.mark.parametrize(("form", "content", "message"), HOSTILE)
def test_a_wrong_row_is_named_with_file_and_line(make_source, form, content, message):
    settings = ScoringSettings(suite="a", edition=2026, format=form)
    with pytest.raises(EvaluationError, match=message):
        read_minimal_pairs(make_source({"a.jsonl": content}), settings)
