"""Hybrid models on minimal pairs and held-out text: either kind of question, each with its own attention."""

from typing import Any

import pytest
import torch
from perplexity_cases import Text, measure

from hatchery.evaluation.minimal_pairs.scoring import token_scores
from hatchery.evaluation.runtime import load_pretrained, load_sentence_model

CPU = torch.device("cpu")
SENTENCE = "The old dogs near the house sleep ."


def scored(model: Any, way: str) -> tuple[list[int], list[float]]:
    asked = load_sentence_model(model, CPU, way)
    (sentence,) = asked.encode([SENTENCE])
    (scores,) = token_scores(asked, [sentence], way)
    return list(sentence.ids), scores.tolist()


@pytest.mark.parametrize("way", ["auto", "pll"])
@torch.no_grad()
def test_a_hidden_token_is_read_at_the_position_before_it(make_model: Any, way: str) -> None:
    model = make_model(objective={"task": "hybrid"})
    ids, scores = scored(model, way)
    network, tokenizer = load_pretrained(model)
    framed = [tokenizer.cls_id, *ids, tokenizer.sep_id]
    for position, (token, score) in enumerate(zip(ids, scores, strict=True), start=1):
        hidden = torch.tensor([framed])
        hidden[0, position] = tokenizer.mask_id
        logits = network.eval().logits_at(network.encoder(hidden)[-1][0, position - 1])
        assert score == pytest.approx(float(logits.log_softmax(0)[token]), rel=1e-4)


@torch.no_grad()
def test_from_left_to_right_it_is_a_causal_model(make_model: Any) -> None:
    model = make_model(objective={"task": "hybrid"})
    ids, scores = scored(model, "left_to_right")
    network, tokenizer = load_pretrained(model)
    states = network.eval().encoder(torch.tensor([[tokenizer.cls_id, *ids[:-1]]]), causal=True)[-1][0]
    expected = network.logits_at(states).log_softmax(1).gather(1, torch.tensor(ids)[:, None]).squeeze(1)
    assert scores == pytest.approx(expected.tolist(), rel=1e-4)


def test_common_masks_hide_the_same_tokens_as_of_masked_models(text: Text, make_model: Any, tmp_path: Any) -> None:
    rows = [
        measure(make_model(name, objective=objective), text, tmp_path / f"{name}_measured")["dev"]
        for name, objective in (("masked", {"kind": "span"}), ("hybrid", {"task": "hybrid"}))
    ]
    assert rows[0]["labelled_tokens"] == rows[1]["labelled_tokens"]
    # The same weights, asked at other positions.
    assert rows[0]["loss_nats"] != rows[1]["loss_nats"]
