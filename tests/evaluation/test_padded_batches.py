"""Short lists of sentences scored from left to right share padded batches; scores change only by rounding."""

from types import SimpleNamespace

import pytest
import torch

from hatchery.evaluation.minimal_pairs.left_to_right import buckets
from hatchery.evaluation.minimal_pairs.scoring import token_scores
from hatchery.evaluation.minimal_pairs.sentence_model import EncodedSentence, Frame, HatcheryModel

CPU = torch.device("cpu")


def of_lengths(*lengths: int) -> list[EncodedSentence]:
    return [EncodedSentence(tuple(range(length))) for length in lengths]


def lengths_of(sentences: list[EncodedSentence], padding: int) -> list[list[int]]:
    return [[len(sentence.ids) for sentence in bucket] for bucket in buckets(sentences, padding)]


def test_lengths_are_joined_while_padding_costs_less_than_a_call() -> None:
    sentences = of_lengths(3, 3, 5, 6, 10, 10)
    assert lengths_of(sentences, 0) == [[3, 3], [5], [6], [10, 10]], "without padding, equal lengths share a batch"
    # Two sentences are padded by 2 and three by 1. Padding four sentences by 4 would cost 16 positions.
    assert lengths_of(sentences, 4) == [[3, 3, 5, 6], [10, 10]]
    assert lengths_of(sentences, 3) == [[3, 3], [5, 6], [10, 10]]
    assert lengths_of(sentences, 16) == [[3, 3, 5, 6, 10, 10]]
    assert lengths_of([], 16) == []


def test_padding_changes_scores_only_by_rounding_and_saves_calls(small_model, monkeypatch: pytest.MonkeyPatch) -> None:
    network = small_model(40, causal=True)
    model = HatcheryModel(network, SimpleNamespace(cls_id=2, end_ids=[3]), CPU)
    draw = torch.Generator().manual_seed(5)
    sentences = [
        EncodedSentence(tuple(torch.randint(5, 40, (length,), generator=draw).tolist()), given=length // 3)
        for length in (1, 2, 4, 4, 7, 9, 12)
    ]
    calls: list[tuple[int, ...]] = []
    logits_at = HatcheryModel.logits_at

    def counted(self: HatcheryModel, ids: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        calls.append(tuple(ids.shape))
        return logits_at(self, ids, rows)

    monkeypatch.setattr(HatcheryModel, "logits_at", counted)
    found = token_scores(model, sentences, "left_to_right", padded=True)
    assert calls == [(7, 12)], "the last token of a sentence is no input, and the context is one"
    for sentence, values in zip(sentences, found, strict=True):
        with torch.no_grad():
            states = network.encoder(torch.tensor([[2, *sentence.ids]]), causal=True)[-1]
            shares = torch.log_softmax(network.logits_at(states)[0], dim=-1)
        expected = [float(shares[place, sentence.ids[place]]) for place in range(sentence.given, len(sentence.ids))]
        assert values.tolist() == pytest.approx(expected, abs=1e-6)
    calls.clear()
    token_scores(model, sentences, "left_to_right")
    assert len(calls) == 6, "results of stages keep their digits: nothing is padded there"


def test_only_models_of_ours_are_padded() -> None:
    """A user's module might read padding as text."""
    shapes: list[tuple[int, ...]] = []

    def logits_at(ids: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        shapes.append(tuple(ids.shape))
        return torch.zeros((len(rows), 40))

    given = {"architecture": "causal", "device": CPU, "vocabulary_size": 40, "predicted_before": 0}
    module = SimpleNamespace(**given, shares_prefixes=False, frame=Frame((2,), ()), logits_at=logits_at)
    token_scores(module, of_lengths(3, 4, 5), "left_to_right", padded=True)  # type: ignore[arg-type]
    assert shapes == [(1, 3), (1, 4), (1, 5)]
