"""Layers that are kept give the scores and gradients of layers that are computed, whatever fits into memory."""

from pathlib import Path

import numpy as np
import pytest
import torch

from hatchery.errors import ModelError
from hatchery.evaluation.probing import frozen_layers
from hatchery.evaluation.probing.encoding import encode_spans
from hatchery.evaluation.probing.frozen_layers import FrozenLayers, can_be_kept
from hatchery.evaluation.runtime import load_pretrained
from hatchery.evaluation.tasks.example import SpanExample, SpanTarget
from hatchery.evaluation.tasks.settings import HeadSettings
from hatchery.modeling.heads.span_classifier import ProbeOptions, SpanClassifier, layer_vectors
from hatchery.modeling.heads.task_model import HeadContext

CPU = torch.device("cpu")
TEXTS = ["The old dogs near the house sleep .", "A cat chases the dogs .", "She sleeps .", "A cat chases the dogs ."]


@pytest.fixture
def probe(model_manifest: Path):
    """A probe for pairs, and sentences whose targets leave some tokens out."""
    network, tokenizer = load_pretrained(model_manifest)
    examples = []
    for number, text in enumerate(TEXTS):
        words = tuple(text.split(" "))
        last = len(words) - 1
        targets = [SpanTarget(((0, 1), (last, last + 1)), (0,)), SpanTarget(((last - 1, last + 1), (0, 1)), (1,))]
        examples.append(SpanExample(words, tuple(targets[: 1 + number % 2])))
    data = encode_spans(examples, tokenizer, 64, 2, True)
    model = SpanClassifier(network.encoder, HeadContext(2, 0.0, 1, 3), ProbeOptions(n_spans=2, probe_size=16))
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in model.fresh_parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return model, data


def scores_and_gradients(model, data, items):
    model.zero_grad()
    batch = data.batch(np.array(items))
    scores = model(**batch.inputs)
    model.loss(scores, batch.labels).mean.backward()
    return batch, scores.detach(), [parameter.grad.clone() for parameter in model.fresh_parameters()]


def n_tokens_in_spans(data):
    inside = set()
    for item, sequence in enumerate(data.sequence_of.tolist()):
        for start, end in data.spans[data.units_of(np.array([item]))].reshape(-1, 2).tolist():
            inside |= {(sequence, position) for position in range(start, end)}
    return len(inside)


def kept_bytes(model, n_tokens):
    return n_tokens * len(model.encoder.layers) * model.encoder.config.hidden_size * 4


@pytest.mark.parametrize("share", ["all", "some", "none"])
def test_kept_layers_give_the_scores_and_gradients_of_computed_ones(probe, share: str) -> None:
    model, data = probe
    layers = FrozenLayers(model.encoder, "differences", 1 if share != "none" else 0, CPU)
    if share == "some":
        layers.bytes_left = kept_bytes(model, n_tokens_in_spans(data) - 1)
    wrapped = layers.wrap(data)
    assert {"all": wrapped.share_kept == 1, "some": 0 < wrapped.share_kept < 1, "none": wrapped.share_kept == 0}[share]
    for items in ([0, 1, 2, 3], [3, 0], [2]):
        plain, scores, gradients = scores_and_gradients(model, data, items)
        batch, kept_scores, kept_gradients = scores_and_gradients(model, wrapped, items)
        assert batch.units.tolist() == plain.units.tolist() and batch.labels.equal(plain.labels)
        # Rounding alone: a sentence is computed beside other ones.
        torch.testing.assert_close(kept_scores, scores, atol=1e-5, rtol=1e-5)
        for kept, computed in zip(kept_gradients, gradients, strict=True):
            torch.testing.assert_close(kept, computed, atol=1e-5, rtol=1e-4)


def test_the_same_sentences_computed_together_are_kept_bit_for_bit(probe) -> None:
    model, data = probe
    kept = FrozenLayers(model.encoder, "differences", 1, CPU).wrap(data).kept
    order = np.argsort(data.sequences.lengths, kind="stable")
    ids, mask = data.sequences.padded(order)
    with torch.no_grad():
        vectors = layer_vectors(model.encoder, model.encoder(ids, mask), "differences")
    for row, sequence in enumerate(order.tolist()):
        start, end = data.sequences.starts[sequence : sequence + 2].tolist()
        inside = torch.from_numpy(kept.inside[start:end])
        place, size = int(kept.places[sequence]), int(kept.sizes[sequence])
        assert kept.vectors[:, place : place + size].equal(vectors[:, row, : end - start][:, inside])


def test_kept_layers_are_never_computed_again(probe, monkeypatch: pytest.MonkeyPatch) -> None:
    model, data = probe
    wrapped = FrozenLayers(model.encoder, "differences", 1, CPU).wrap(data)

    def refuse(*arguments: object) -> None:
        raise AssertionError("the encoder ran")

    monkeypatch.setattr(model.encoder, "forward", refuse)
    for part in (wrapped, wrapped.subset([3, 1])):
        assert model(**part.batch(np.array([0, 1])).inputs).isfinite().all()


def test_only_tokens_in_spans_take_memory_and_equal_sentences_take_it_once(probe) -> None:
    model, data = probe
    wrapped = FrozenLayers(model.encoder, "outputs", 1, CPU).wrap(data)
    assert wrapped.kept.vectors.shape[1] == n_tokens_in_spans(data) < len(data.sequences.ids)


def test_the_data_sets_of_a_job_share_the_memory(probe) -> None:
    model, data = probe
    layers = FrozenLayers(model.encoder, "differences", 1, CPU)
    layers.bytes_left = kept_bytes(model, n_tokens_in_spans(data))
    assert layers.wrap(data).share_kept == 1 and layers.wrap(data).share_kept == 0


def test_a_training_model_keeps_the_dropout_of_its_frozen_encoder_out(model_manifest: Path, probe) -> None:
    model, data = probe
    model.encoder.set_dropout(0.5)
    wrapped = FrozenLayers(model.encoder, "differences", 0, CPU).wrap(data)
    model.encoder.train()
    first, second = (wrapped.batch(np.array([0, 1])).inputs["layers"] for _ in range(2))
    assert first.equal(second)


@pytest.mark.parametrize("mode", ["trained", "frozen_with_dropout"])
def test_layers_that_change_cannot_be_kept(probe, mode: str) -> None:
    model, data = probe
    assert not can_be_kept(HeadSettings("span_classification", {"encoder_mode": mode}))
    assert can_be_kept(HeadSettings("span_classification", {"n_spans": 2}))
    assert not can_be_kept(HeadSettings("sequence_classification"))
    batch = FrozenLayers(model.encoder, "differences", 1, CPU).wrap(data).batch(np.array([0]))
    changing = SpanClassifier(
        model.encoder, HeadContext(2, 0.0, 1, 3), ProbeOptions(n_spans=2, probe_size=16, encoder_mode=mode)
    )
    with pytest.raises(ModelError, match="no states to be known"):
        changing.train()(**batch.inputs)


def test_sentences_are_computed_in_groups_without_changing_them(probe, monkeypatch: pytest.MonkeyPatch) -> None:
    model, data = probe
    whole = FrozenLayers(model.encoder, "differences", 1, CPU).wrap(data).kept.vectors
    monkeypatch.setattr(frozen_layers, "SEQUENCES_AT_A_TIME", 1)
    single = FrozenLayers(model.encoder, "differences", 1, CPU).wrap(data).kept.vectors
    torch.testing.assert_close(single, whole, atol=1e-5, rtol=1e-5)
