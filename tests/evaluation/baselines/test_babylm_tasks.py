"""BabyLM's zero-shot tasks against what its code gave of tiny models on invented rows (tests/golden/babylm_2026)."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from hatchery.errors import EvaluationError
from hatchery.evaluation.baselines.encoder import BaselineModel
from hatchery.evaluation.baselines.loading import BaselineTokenizer, load_folder
from hatchery.evaluation.minimal_pairs.decisions import accuracy_table, decision
from hatchery.evaluation.minimal_pairs.items import Candidate, Item, minimal_pair
from hatchery.evaluation.minimal_pairs.pairs import read_minimal_pairs
from hatchery.evaluation.minimal_pairs.predictions import predictions_json
from hatchery.evaluation.minimal_pairs.score_suite import candidate_scores
from hatchery.evaluation.minimal_pairs.sentence_model import given_tokens
from hatchery.evaluation.settings import BaselineSettings, ScoringSettings
from hatchery.raw.registration import unregistered

TASKS: dict[str, dict[str, Any]] = {
    "blimp/blimp_filtered": {},
    "blimp/supplement_filtered": {},
    "ewok/ewok_filtered": {"format": "ewok"},
    "entity_tracking/entity_tracking": {"format": "entity_tracking"},
    "entity_tracking/no_space_option": {"format": "entity_tracking"},
    "comps/comps": {"format": "comps"},
    "global_piqa_parallel/global_piqa_parallel": {"format": "global_piqa", "per_token": True},
    "global_piqa_nonparallel/global_piqa_nonparallel": {"format": "global_piqa", "per_token": True},
}
BACKENDS = ("causal_bos/causal", "causal_nobos/causal", "masked_wp/mlm", "masked_wp/mntp")
OF_2025 = ("blimp/blimp_filtered", "ewok/ewok_filtered", "entity_tracking/entity_tracking", "comps/comps")
CASES = [
    *((2026, backend, task) for backend in BACKENDS for task in TASKS),
    *((2025, backend, task) for backend in ("causal_bos/causal", "masked_wp/mlm") for task in OF_2025),
]


@pytest.fixture(scope="module")
def model(golden_directory):
    loaded: dict[str, BaselineModel] = {}

    def get(backend: str) -> BaselineModel:
        if backend not in loaded:
            name, way = backend.split("/")
            folder = golden_directory / "babylm_2026" / "models" / name
            architecture = "causal" if way == "causal" else "masked"
            network, tokenizer = load_folder(folder, architecture)
            settings = BaselineSettings(architecture, predicts_next=way == "mntp")
            its = BaselineTokenizer(tokenizer, architecture, name)
            loaded[backend] = BaselineModel(network, its, settings, torch.device("cpu"), template=True)
        return loaded[backend]

    return get


def settings_of(task: str, edition: int = 2026, **more: Any) -> ScoringSettings:
    return ScoringSettings(**{"suite": task, "edition": edition, **TASKS[task], **more})


def items_of(golden: Path, settings: ScoringSettings) -> list[Item]:
    name = settings.suite.partition("/")[2]
    folder = golden / "babylm_2026" / "data" / ("edge" if name == "no_space_option" else "full") / name
    found = unregistered(folder, 100)
    assert found is not None
    return read_minimal_pairs(found, settings)


def golden_rows(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """The rows of a task by UID: their order within it is that of the files, the order of UIDs that of a disk."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for line in (folder / "scores.jsonl").read_text().splitlines():
        rows.setdefault(json.loads(line)["UID"], []).append(json.loads(line))
    return rows


@pytest.mark.parametrize(("edition", "backend", "task"), CASES)
def test_scores_and_predictions_are_those_of_the_official_code(golden_directory, model, edition, backend, task):
    name, way = backend.split("/")
    results = "results" if edition == 2026 else "results_2025_code"
    folder = golden_directory / "babylm_2026" / results / name / "main" / "zero_shot" / way / task
    settings = settings_of(task, edition, official=True)
    items = items_of(golden_directory, settings)
    scored = candidate_scores(items, model(backend), official=True)
    values = scored.scores / np.maximum(scored.tokens, 1) if settings.per_token else scored.scores
    decided = [
        decision(item, row[: len(item.candidates)].tolist(), settings) for item, row in zip(items, values, strict=True)
    ]
    ours = json.loads(predictions_json(items, decided, settings))
    theirs = json.loads((folder / "predictions.json").read_text())
    if edition == 2026 or task == "ewok/ewok_filtered":
        expected = golden_rows(folder)
        assert {uid: len(rows["predictions"]) for uid, rows in ours.items()} == {
            uid: len(rows) for uid, rows in expected.items()
        }
        place = dict.fromkeys(expected, 0)
        for item, row, tokens in zip(items, values, scored.tokens, strict=True):
            uid = item.item_id if settings.format == "global_piqa" else item.paradigm
            golden = expected[uid][place[uid]]
            place[uid] += 1
            label = golden.get("label", 0)
            candidates = [
                golden["candidates"][label],
                *golden["candidates"][:label],
                *golden["candidates"][label + 1 :],
            ]
            assert [one.text for one in item.candidates] == [one["sentence"] for one in candidates]
            np.testing.assert_allclose(row[: len(candidates)], [float(one["ll"]) for one in candidates], atol=1e-4)
            if edition == 2026:
                assert tokens[: len(candidates)].tolist() == [len(one["scored"]) for one in candidates]
    assert ours.keys() == theirs.keys()
    for item, one in zip(items, decided, strict=True):
        uid = item.item_id if settings.format == "global_piqa" else item.paradigm
        row = theirs[uid]["predictions"].pop(0)
        made = ours[uid]["predictions"].pop(0)
        assert made["id"] == row["id"]
        if one.outcome != "tie":
            assert made["pred"] == row["pred"]


def test_the_default_scores_what_the_official_code_loses_of_a_completion(golden_directory, model):
    rules = golden_directory / "babylm_2026" / "results" / "rules" / "offset_shift_causal.json"
    lost = 0
    for row in json.loads(rules.read_text()):
        given = len(row["sentence"]) - len(row["completion"])
        framed = row["tokenizer"] in ("masked_wp", "causal_bos")
        ends = {"masked_wp": 2, "causal_bos": 1}.get(row["tokenizer"], 0)
        offsets = [tuple(one) for one in row["offsets"]]
        offsets = offsets[1 : len(offsets) - ends + 1] if framed else offsets
        assert len(offsets) - given_tokens(offsets, given) == len(row["scored_by_plain_rule"])
        official = len(offsets) - given_tokens(offsets, given, True, framed)
        assert official == len(row["scored_by_causal_code"])
        lost += official < len(row["scored_by_plain_rule"])
    assert lost == 3


@pytest.mark.parametrize("backend", BACKENDS)
def test_scores_depend_neither_on_the_batch_nor_on_company(golden_directory, model, backend):
    items = items_of(golden_directory, settings_of("entity_tracking/entity_tracking"))
    together = candidate_scores(items, model(backend)).scores
    alone = np.concatenate([candidate_scores([item], model(backend), tokens_per_batch=1).scores for item in items])
    np.testing.assert_allclose(together, alone, atol=1e-5)


def test_the_score_of_entity_tracking_is_the_mean_of_its_files_and_of_others_that_of_paradigms():
    items = [Item("a_0_ops", "a", "1", TWO), Item("a_1_ops", "a", "2", TWO), Item("b_0_ops", "b", "1", TWO)]
    outcomes = ["correct", "wrong", "wrong"]
    suite, by_phenomenon = accuracy_table(items, outcomes, "entity", by_split=True)[-2:]
    assert suite.accuracy == by_phenomenon.accuracy == 0.25
    assert accuracy_table(items, outcomes, "entity")[-2].accuracy == pytest.approx(1 / 3)


TWO = (Candidate(" a"), Candidate(" b"))


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


def test_one_token_without_one_in_front_of_it_is_an_error(golden_directory, model):
    with pytest.raises(EvaluationError, match="edge, pair 1: a sentence becomes 1 tokens"):
        candidate_scores([minimal_pair("edge", "edge", "1", "the", "a")], model("causal_nobos/causal"))


EWOK = '{"Context1": "a", "Context2": "b", "Target1": "c", "Target2": "d", "Domain": "x"}\n'
HOSTILE = [
    ("ewok", EWOK + '{"Context1": "a"}\n', r"a.jsonl:2: the field 'Domain' is missing"),
    ("ewok", EWOK + EWOK.replace('"c"', "3"), r"a.jsonl:2: the field 'Target1' must be a non-empty text, got 3"),
    ("ewok", "", "a.jsonl: the file holds no records"),
    ("entity_tracking", '{"input_prefix": "a", "options": ["b", ""], "numops": 0}\n', "a.jsonl:1: the field 'options'"),
    ("entity_tracking", '{"input_prefix": "a", "options": "b", "numops": 0}\n', "a.jsonl:1: the field 'options'"),
    ("entity_tracking", '{"input_prefix": "a", "options": ["b", "c"], "numops": true}\n', "a.jsonl:1: the field 'num"),
    ("comps", '{"prefix_acceptable": "a", "prefix_unacceptable": " "}\n', "a.jsonl:1: the field 'property_phrase'"),
    (
        "global_piqa",
        '{"prompt": "a", "solution0": "b", "solution1": "c", "label": 2, "example_id": "1"}\n',
        "a.jsonl:1: the field 'label' must be the number of a solution, 0 to 1, got 2",
    ),
    (
        "global_piqa",
        2 * '{"prompt": "a", "solution0": "b", "solution1": "c", "label": 1, "example_id": "1"}\n',
        "a.jsonl:2: the field 'example_id' repeats '1'",
    ),
    ("wug", '{"sentences": "a b", "ratio": 0.5}\n', "a.jsonl:1: the field 'sentences' must be two texts with a tab"),
    ("wug", '{"sentences": "a\\tb", "ratio": 2}\n', "a.jsonl:1: the field 'ratio' must be a share"),
]


@pytest.mark.parametrize(("form", "content", "message"), HOSTILE)
def test_a_wrong_row_is_named_with_file_and_line(make_source, form, content, message):
    settings = ScoringSettings(suite="a", edition=2026, format=form)
    with pytest.raises(EvaluationError, match=message):
        read_minimal_pairs(make_source({"a.jsonl": content}), settings)
