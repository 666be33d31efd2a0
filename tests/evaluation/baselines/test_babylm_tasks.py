"""BabyLM's zero-shot tasks against its code's outputs for tiny models and invented rows (tests/golden/babylm_2026)."""

import copy
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from babylm_cases import TASKS, items_of, settings_of
from tokenizers.processors import TemplateProcessing

from hatchery.errors import EvaluationError
from hatchery.evaluation.baselines.encoder import BaselineModel
from hatchery.evaluation.baselines.loading import BaselineTokenizer, load_folder
from hatchery.evaluation.baselines.own_text import OwnText
from hatchery.evaluation.minimal_pairs.decisions import accuracy_table, decision
from hatchery.evaluation.minimal_pairs.items import Candidate, Item, minimal_pair
from hatchery.evaluation.minimal_pairs.predictions import predictions_json
from hatchery.evaluation.minimal_pairs.score_suite import candidate_scores
from hatchery.evaluation.minimal_pairs.sentence_model import given_tokens
from hatchery.evaluation.minimal_pairs.temperatures import GRID
from hatchery.evaluation.settings import BaselineSettings, ScoringSettings

# For these cases, both the official code and Hatchery raise an error.
ENDS = {
    ("causal_nobos/causal", "blimp/one_token"),
    ("masked_wp/mlm", "entity_tracking/empty_option"),
    ("masked_wp/mntp", "entity_tracking/empty_option"),
}
BACKENDS = ("causal_bos/causal", "causal_nobos/causal", "masked_wp/mlm", "masked_wp/mntp")
OF_2025 = ("blimp/blimp_filtered", "ewok/ewok_filtered", "entity_tracking/entity_tracking", "comps/comps")
CASES = [
    *((2026, backend, task) for backend in BACKENDS for task in TASKS if (backend, task) not in ENDS),
    *((2025, backend, task) for backend in ("causal_bos/causal", "masked_wp/mlm") for task in OF_2025),
]


def golden_rows(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of a task by UID. Each UID's rows are in the order of the task's files."""
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
    if (folder / "scores.jsonl").exists():
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
    if not any(one.outcome == "tie" for one in decided):
        outcomes, credits = [one.outcome for one in decided], [one.credit for one in decided]
        table = accuracy_table(items, outcomes, "suite", credits, settings.format == "entity_tracking")
        found = {row.name: row.accuracy for row in table}
        report = (folder / "best_temperature_report.txt").read_text()
        told = dict(re.findall(r"^(\S+): ([0-9.]+)$", report, re.MULTILINE))
        assert found["suite"] == pytest.approx(float(report.split()[-1]) / 100, abs=1e-4)
        for name in set(found) & set(told):
            assert found[name] == pytest.approx(float(told[name]) / 100, abs=1e-4)
        assert settings.format == "global_piqa" or {item.paradigm for item in items} <= set(told)


@pytest.mark.parametrize(("backend", "task"), sorted(ENDS))
def test_what_ends_the_official_code_ends_in_one_line_here(golden_directory, model, backend, task):
    items = items_of(golden_directory, settings_of(task, official=True))
    with pytest.raises(EvaluationError, match=r"pair 1: a sentence becomes \d+ tokens, expected 1 to"):
        candidate_scores(items, model(backend), official=True)


def test_a_search_for_the_best_temperature_is_the_official_one(golden_directory, model):
    rules = golden_directory / "babylm_2026" / "results" / "rules"
    for grid in json.loads((rules / "temperature_grids.json").read_text()).values():
        assert grid == pytest.approx([one for one in GRID if grid[0] - 1e-6 < one < grid[-1] + 1e-6], abs=1e-6)
    settings = settings_of("blimp/blimp_filtered", official=True)
    items = items_of(golden_directory, settings)
    scored = candidate_scores(items, model("causal_bos/causal"), official=True, temperatures=GRID)
    told = (rules / "temperature_search_causal_bos_blimp.txt").read_text()
    theirs = {round(float(one), 2): float(share) for one, share in re.findall(r"^([\d.]+)\t([\d.]+)$", told, re.M)}
    assert len(theirs) == 9
    for temperature, share in theirs.items():
        values = scored.at_temperatures[..., GRID.index(temperature)].tolist()
        outcomes = [decision(item, row, settings).outcome for item, row in zip(items, values, strict=True)]
        suite = accuracy_table(items, outcomes, "suite")[-2]
        # The official code drew among ties without a seed, so its share lies between all ties wrong and all ties right.
        assert 0 < suite.ties < 5 and suite.accuracy - 1e-4 < share / 100 < suite.accuracy_ties_correct + 1e-4


def test_ties_and_what_is_no_number_are_decided_as_officially(golden_directory):
    rules = golden_directory / "babylm_2026" / "results" / "rules"
    for case in json.loads((rules / "nan_and_ties.json").read_text()):
        scores = [float(score) for score in case["scores"]]
        candidates = tuple(Candidate(str(number)) for number in range(len(scores)))
        suite = ScoringSettings(suite="a", edition=2026, official=True)
        chosen = {decision(Item("p", "p", str(row), candidates), scores, suite).chosen for row in range(200)}
        assert chosen == {int(one) for one in case["chosen_share_of_2000"]}, case["case"]


@pytest.mark.parametrize("way", ["mlm", "mntp"])
@pytest.mark.parametrize("frame", ["$A", "[CLS] $A", "[CLS] $A [SEP]"])
@pytest.mark.parametrize("template", [True, False])
def test_a_masked_model_sees_what_its_template_puts_around_a_text(golden_directory, way, frame, template):
    """Backend mntp reads the logits of the position before, so the first token has no score without a token before it.

    An import without `sep_token`, which does not request the template, has the same scores.
    """
    folder = golden_directory / "babylm_2026" / "models" / "masked_wp"
    network, tokenizer = load_folder(folder, "masked")
    names = [(name, tokenizer.convert_tokens_to_ids(name)) for name in ("[CLS]", "[SEP]")]
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(single=frame, pair=None, special_tokens=names)
    if not template:
        tokenizer.sep_token = None
    its = BaselineTokenizer(tokenizer, "masked", "here", template)
    settings = BaselineSettings("masked", predicts_next=way == "mntp")
    asked = BaselineModel(network, its, settings, torch.device("cpu"), template)
    texts = ["the dog has a cup.", "the egg is in the box."]
    found = candidate_scores([minimal_pair("p", "p", "1", *texts)], asked).scores[0]
    shift = int(way == "mntp")
    for score, text in zip(found, texts, strict=True):
        whole = tokenizer.backend_tokenizer.encode(text)
        expected = 0.0
        for place, special in enumerate(whole.special_tokens_mask):
            if not special and place >= shift:
                ids = [*whole.ids[:place], tokenizer.mask_token_id, *whole.ids[place + 1 :]]
                with torch.no_grad():
                    logits = network(input_ids=torch.tensor([ids])).logits[0, place - shift]
                expected += float(torch.log_softmax(logits.double(), -1)[whole.ids[place]])
        assert score == pytest.approx(expected, abs=1e-4)
    if not (asked.frame.before and asked.frame.after):
        with pytest.raises(EvaluationError, match="expected one token before and one after held-out text"):
            OwnText(asked, [], "dev", "nothing")


def test_the_default_scores_what_the_official_code_loses_of_a_completion(golden_directory):
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


@pytest.fixture
def threads():
    """Yield the function that sets PyTorch's number of threads, then restore this number."""
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.mark.parametrize("backend", BACKENDS)
def test_scores_depend_neither_on_the_batch_nor_on_company_nor_on_threads(golden_directory, model, backend, threads):
    items = items_of(golden_directory, settings_of("entity_tracking/entity_tracking"))
    threads(1)
    together = candidate_scores(items, model(backend)).scores
    alone = np.concatenate([candidate_scores([item], model(backend), tokens_per_batch=1).scores for item in items])
    np.testing.assert_allclose(together, alone, atol=1e-5)
    threads(2)
    np.testing.assert_allclose(candidate_scores(items, model(backend)).scores, together, atol=1e-5)


def test_a_constant_scorer_has_chance_and_a_uniform_model_prefers_the_shorter_text(golden_directory, model):
    for task, chance in (("entity_tracking/entity_tracking", 20), ("blimp/blimp_filtered", 50)):
        settings = settings_of(task)
        items = items_of(golden_directory, settings)
        decided = [decision(item, [0.0] * len(item.candidates), settings) for item in items]
        outcomes, credits = [one.outcome for one in decided], [one.credit for one in decided]
        suite = accuracy_table(items, outcomes, "suite", credits, by_split=settings.format == "entity_tracking")[-2]
        assert 100 * suite.accuracy == pytest.approx(chance) == 100 * suite.chance
    found = []
    for task in ("global_piqa_parallel/global_piqa_parallel", "global_piqa_nonparallel/global_piqa_nonparallel"):
        settings = settings_of(task)
        items = items_of(golden_directory, settings)
        found += [np.mean([decision(item, [0.0] * len(item.candidates), settings).credit for item in items])]
    assert 100 * np.mean(found) == pytest.approx(37.5)
    uniform = copy.deepcopy(model("causal_bos/causal"))
    torch.nn.init.zeros_(uniform.network.get_output_embeddings().weight)
    pair = minimal_pair("p", "p", "1", "The dog has a cup and a box.", "The dog has a cup.")
    scored = candidate_scores([pair], uniform)
    np.testing.assert_allclose(scored.scores[0], -scored.tokens[0] * np.log(uniform.vocabulary_size), rtol=1e-6)
    assert decision(pair, scored.scores[0].tolist(), ScoringSettings(suite="a", edition=2026)).outcome == "wrong"
