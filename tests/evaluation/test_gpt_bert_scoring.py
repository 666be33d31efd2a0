"""Minimal pairs with GPT-BERT's scoring methods, against outputs of its authors' code."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from hatchery.errors import ConfigError
from hatchery.evaluation.minimal_pairs.items import minimal_pair
from hatchery.evaluation.minimal_pairs.score_suite import candidate_scores
from hatchery.evaluation.minimal_pairs.scoring import sentence_scores, token_scores
from hatchery.evaluation.minimal_pairs.sentence_model import HatcheryModel
from hatchery.evaluation.minimal_pairs.temperatures import GRID, ONE, best_temperature
from hatchery.evaluation.settings import ScoringSettings
from hatchery.modeling.families import model_config
from hatchery.modeling.gpt_bert.published_names import from_published
from hatchery.modeling.language_model import LanguageModel
from hatchery.tokenization.special_tokens import SPECIAL_SETS
from hatchery.tokenization.tokenizer_file import Tokenizer, WordMark, open_backend

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "gpt_bert"
CPU = torch.device("cpu")
WAYS = {"masked_shifted": ("pll", "masked"), "causal": ("left_to_right", "causal"), "fused": ("fused", "masked")}


@pytest.fixture(scope="module")
def network() -> LanguageModel:
    config = json.loads((GOLDEN / "scoring" / "summary.json").read_text())["config"]
    model = LanguageModel(model_config({**config, "family": "gpt_bert"}))
    weights = np.load(GOLDEN / "scoring" / "weights.npz")
    state = {name.removeprefix("state."): torch.from_numpy(weights[name]) for name in weights.files}
    model.load_state_dict(from_published(state))
    return model


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    definition = json.loads((GOLDEN / "tokenizer" / "tokenizer.json").read_text(encoding="utf-8"))
    return Tokenizer(open_backend(definition, "golden"), SPECIAL_SETS["gpt_bert"], WordMark("byte_level"))


def pairs() -> list[dict[str, Any]]:
    return [json.loads(line) for line in (GOLDEN / "scoring" / "pairs.jsonl").read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("mode", WAYS)
def test_log_probabilities_sums_and_decisions_are_the_published_ones(network, tokenizer, mode):
    way, architecture = WAYS[mode]
    model = HatcheryModel(network, tokenizer, CPU, architecture, predicted_before=1)
    correct = 0
    for pair in pairs():
        sums = []
        for side in ("good", "bad"):
            (encoded,) = model.encode([pair[f"sentence_{side}"]])
            assert list(encoded.ids) == pair[f"ids_{side}"]
            (tokens,) = token_scores(model, [encoded], way)
            if f"token_log_probs_{side}" in pair[mode]:
                np.testing.assert_allclose(tokens, pair[mode][f"token_log_probs_{side}"], atol=1e-5, rtol=0)
            sums.append(sentence_scores([tokens])[0])
            assert sums[-1] == pytest.approx(pair[mode][f"sum_{side}"], abs=2e-4)
        assert (sums[0] >= sums[1]) == pair[mode]["correct"]
        correct += sums[0] >= sums[1]
    assert (
        correct / 20 == json.loads((GOLDEN / "scoring" / "summary.json").read_text())["accuracy_at_temperature_1"][mode]
    )


@pytest.mark.parametrize("mode", WAYS)
def test_scores_depend_neither_on_threads_nor_on_the_batch(network, tokenizer, mode):
    way, architecture = WAYS[mode]
    model = HatcheryModel(network, tokenizer, CPU, architecture, predicted_before=1)
    sentences = model.encode([pair["sentence_good"] for pair in pairs()[:4]])
    before, found = torch.get_num_threads(), []
    for threads, tokens in ((1, None), (2, None), (2, 1)):
        torch.set_num_threads(threads)
        found.append(sentence_scores(token_scores(model, sentences, way, tokens)))
    torch.set_num_threads(before)
    for other in found[1:]:
        np.testing.assert_allclose(other, found[0], atol=1e-5, rtol=0)


@pytest.mark.parametrize("mode", WAYS)
def test_decisions_at_61_temperatures_are_the_published_ones_and_so_is_the_first_best(network, tokenizer, mode):
    way, architecture = WAYS[mode]
    model = HatcheryModel(network, tokenizer, CPU, architecture, predicted_before=1)
    published = json.loads((GOLDEN / "scoring" / "summary.json").read_text())
    assert list(GRID) == pytest.approx(published["temperatures"]) and GRID[ONE] == 1
    items = [
        minimal_pair("all", "all", str(place), pair["sentence_good"], pair["sentence_bad"])
        for place, pair in enumerate(pairs())
    ]
    found = candidate_scores(items, model, way, temperatures=GRID).at_temperatures
    assert found is not None and found.shape == (20, 2, 61)
    for values, pair in zip(found, pairs(), strict=True):
        wanted = pair[mode]
        for temperature, sums in wanted["sums_at_other_temperatures"].items():
            assert values[:, GRID.index(float(temperature))] == pytest.approx(sums, abs=4e-4)
        decided = "".join(str(int(right >= wrong)) for right, wrong in values.T)
        assert decided == wanted["correct_at_temperatures"]
    best = best_temperature(items, found, ScoringSettings(suite="invented"))
    assert [share for _, share in best.by_temperature] == published["accuracy_by_temperature"][mode]
    assert best.temperature == pytest.approx(published["first_best_temperature"][mode], abs=1e-6)


def test_a_hidden_token_read_where_it_stands_is_another_model(network, tokenizer):
    """Logits at the mask itself, instead of the position before the mask, give wrong scores without an error."""
    (pair, *_) = pairs()
    shifted, unshifted = (
        sentence_scores(token_scores(model, model.encode([pair["sentence_good"]]), "pll"))[0]
        for model in (HatcheryModel(network, tokenizer, CPU, "masked", predicted_before=n) for n in (1, 0))
    )
    assert abs(shifted - unshifted) > 1


def test_a_hybrid_model_is_not_scored_as_a_masked_one(network, tokenizer):
    model = HatcheryModel(network, tokenizer, CPU, "masked", predicted_before=1)
    reason = "at the position before: the scores would be meaningless; use pll or mntp or pll_within_word_l2r or fused"
    with pytest.raises(ConfigError, match=reason):
        token_scores(model, model.encode(["A miller."]), "masked")
    same, official = (token_scores(model, model.encode(["A miller."]), way)[0] for way in ("pll", "mntp"))
    assert (same == official).all()
