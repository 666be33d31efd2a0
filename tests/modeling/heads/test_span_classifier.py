"""The edge probe against a computation span by span, its layer weights, and the spans that it must refuse."""

from itertools import pairwise

import pytest
import torch
import torch.nn.functional as F
from head_cases import PAD

from hatchery.errors import EvaluationError, ModelError
from hatchery.modeling.heads.span_classifier import ProbeOptions, SpanClassifier, layer_vectors
from hatchery.modeling.heads.task_model import HeadContext
from hatchery.modeling.heads.word_classifiers import ExtractiveOptions, ExtractiveSpan

SPANS = torch.tensor([[[1, 4], [7, 8]], [[8, 11], [0, 12]], [[0, 2], [0, 2]], [[2, 5], [1, 2]]])
SENTENCES = torch.tensor([0, 0, 1, 2])


def probe(encoder, n_labels, dropout=0.0, **options):
    return SpanClassifier(encoder, HeadContext(n_labels, dropout, 1, PAD), ProbeOptions(**options))


def disturbed(model):
    """Return the probe with noise added to its symmetric initial weights."""
    torch.manual_seed(3)
    with torch.no_grad():
        for parameter in model.fresh_parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return model.eval()


def plain_scores(model, encoder, ids, mask, differences):
    """LTG-BERT, Appendix B.2, in the order of the appendix: project every layer, then mix, then pool."""
    states = encoder(ids, mask)[: len(encoder.layers) + 1]
    layers = [after - before for before, after in pairwise(states)] if differences else states[1:]
    head, rows = model.head, []
    for sentence, spans in zip(SENTENCES.tolist(), SPANS.tolist(), strict=True):
        pooled = []
        for i, (start, end) in enumerate(spans[: model.n_spans]):
            projected = [
                F.linear(layer[sentence], head.down_projection.weight, head.down_projection.bias) for layer in layers
            ]
            gamma = head.mixes[i].layer_weights.exp() / head.mixes[i].layer_weights.exp().sum()
            mixed = sum(g * layer for g, layer in zip(gamma, projected, strict=True))[start:end]
            pooling = head.poolings[i]
            size = mixed.shape[1] // pooling.n_heads
            values = F.linear(mixed, pooling.values.weight, pooling.values.bias)
            for h in range(pooling.n_heads):
                attention = torch.softmax(mixed @ pooling.token_scores.weight[h], dim=0)
                pooled.append(attention @ values[:, h * size : (h + 1) * size])
        hidden = F.gelu(F.linear(torch.cat(pooled), head.classifier.linear.weight, head.classifier.linear.bias))
        rows.append(F.linear(hidden, head.classifier.output.weight, head.classifier.output.bias))
    return torch.stack(rows)


@pytest.mark.parametrize("n_spans", [1, 2])
@pytest.mark.parametrize(
    ("kind", "reading"), [("ltg", "differences"), ("ltg", "outputs"), ("elc", "outputs"), ("roberta", "outputs")]
)
def test_the_probe_is_the_published_sequence_of_steps(make_encoder, tokens, kind, reading, n_spans):
    encoder = make_encoder(kind)
    model = disturbed(probe(encoder, 5, dropout=0.25, n_spans=n_spans, layer_reading=reading, probe_size=32))
    scores = model(*tokens, spans=SPANS[:, :n_spans], sentences=SENTENCES)
    expected = plain_scores(model, encoder, *tokens, reading == "differences")
    torch.testing.assert_close(scores, expected, atol=2e-5, rtol=1e-5)


@pytest.mark.parametrize("n_spans", [1, 2])
def test_layers_that_are_known_stand_in_for_the_ids(make_encoder, tokens, n_spans):
    encoder = make_encoder()
    model = disturbed(probe(encoder, 5, n_spans=n_spans, probe_size=32))
    spans = {"spans": SPANS[:, :n_spans], "sentences": SENTENCES}
    layers = layer_vectors(encoder, encoder(*tokens), "differences")
    assert model(layers=layers, attention_mask=tokens[1], **spans).equal(model(*tokens, **spans))
    # All sentences are concatenated to one row without padding.
    row = layers[:, tokens[1]].unsqueeze(1)
    starts = torch.tensor([0, 12, 21])[SENTENCES]
    moved = {"spans": SPANS[:, :n_spans] + starts[:, None, None], "sentences": torch.zeros_like(SENTENCES)}
    torch.testing.assert_close(model(layers=row, **moved, widest=12), model(*tokens, **spans))


def test_the_widest_span_may_be_told_without_changing_scores(make_encoder, tokens):
    model = disturbed(probe(make_encoder(), 5, n_spans=2))
    scores = model(*tokens, spans=SPANS, sentences=SENTENCES)
    torch.testing.assert_close(model(*tokens, spans=SPANS, sentences=SENTENCES, widest=12), scores)


def test_known_layers_must_be_those_of_the_encoder(make_encoder, tokens):
    model = probe(make_encoder(), 5, n_spans=2)
    with pytest.raises(ModelError, match=r"layers: got shape \(2, 3, 12, 24\), expected \[3, sentences, tokens, 24\]"):
        model(layers=torch.zeros(2, 3, 12, 24), spans=SPANS, sentences=SENTENCES)
    with pytest.raises(ModelError, match="expected exactly one of input_ids and layers"):
        model(spans=SPANS, sentences=SENTENCES)
    with pytest.raises(ModelError, match="expected exactly one of input_ids and layers"):
        model(*tokens, layers=torch.zeros(3, 3, 12, 24), spans=SPANS, sentences=SENTENCES)


def test_the_original_probe_projects_each_span_by_itself_and_scales_its_mix(make_encoder, tokens):
    model = disturbed(probe(make_encoder(), 5, n_spans=2, separate_projections=True, scaled_mix=True))
    head, spans = model.head, {"spans": SPANS, "sentences": SENTENCES}
    shared = probe(make_encoder(), 5, n_spans=2)
    extra = {name for name, _ in head.named_parameters()} - {name for name, _ in shared.head.named_parameters()}
    assert extra == {
        "other_projections.0.weight",
        "other_projections.0.bias",
        "mixes.0.scale",
        "mixes.1.scale",
    }
    before = model(*tokens, **spans)
    with torch.no_grad():
        head.other_projections[0].weight.zero_()
    assert not model(*tokens, **spans).allclose(before)
    layers = torch.randn(3, 2, 5)
    assert head.mixes[0](layers).allclose(head.mixes[0].scale * (head.mixes[0].shares[:, None, None] * layers).sum(0))
    assert model.layer_weights().sum(1).allclose(torch.ones(2))


def test_sizes_are_the_published_ones(make_encoder):
    model = probe(make_encoder(), 7, dropout=0.25, n_spans=2)
    shapes = {name: tuple(p.shape) for name, p in model.head.named_parameters()}
    assert shapes["down_projection.weight"] == (256, 24)
    assert shapes["poolings.1.token_scores.weight"] == (4, 256)
    assert shapes["classifier.linear.weight"] == (256, 512) and shapes["classifier.output.weight"] == (7, 256)
    assert model.head.classifier.dropout.probability == 0.25
    small = probe(make_encoder(), 7, probe_size=8, pooling_heads=2)
    assert small.head.poolings[0].token_scores.weight.shape == (2, 8)


def test_layer_weights_are_exposed_and_their_mean_is_the_contribution(make_encoder):
    model = probe(make_encoder(), 2, dropout=0.25, n_spans=2)
    assert torch.equal(model.layer_weights(), torch.full((2, 3), 1 / 3))
    with torch.no_grad():
        model.head.mixes[1].layer_weights.copy_(torch.tensor([0.0, 0.0, 100.0]))
    torch.testing.assert_close(model.layer_weights()[1], torch.tensor([0.0, 0.0, 1.0]))
    torch.testing.assert_close(model.layer_contribution(), torch.tensor([1 / 6, 1 / 6, 2 / 3]))
    assert not model.layer_weights().requires_grad


def test_one_label_per_span_is_a_softmax(make_encoder, tokens):
    model = probe(make_encoder(), 5, multi_label=False)
    scores = model(*tokens, spans=SPANS[:, :1], sentences=SENTENCES)
    labels = torch.tensor([4, 0, -100, 2])
    torch.testing.assert_close(model.loss(scores, labels).mean, F.cross_entropy(scores, labels))
    assert torch.equal(model.predictions(scores), scores.argmax(-1))


def test_a_span_is_scored_the_same_in_any_company(make_encoder, tokens):
    model = disturbed(probe(make_encoder(), 5, n_spans=2))
    together = model(*tokens, spans=SPANS, sentences=SENTENCES)
    for i in range(4):
        alone = model(*tokens, spans=SPANS[i : i + 1], sentences=SENTENCES[i : i + 1])
        torch.testing.assert_close(alone[0], together[i], atol=1e-5, rtol=1e-5)


def test_tokens_outside_of_the_span_do_not_enter_the_pooling(make_encoder, tokens, monkeypatch):
    """If states do not depend on context, only the span's own tokens can change the span's score."""
    ids, mask = tokens
    encoder = make_encoder()
    model = disturbed(probe(encoder, 5, layer_reading="outputs"))
    monkeypatch.setattr(encoder, "forward", lambda ids, mask: [encoder.word_embedding(ids)] * 4)
    span = {"spans": torch.tensor([[[3, 6]]]), "sentences": torch.tensor([0])}
    scores = model(ids, mask, **span)
    for position in range(12):
        changed = ids.clone()
        changed[0, position] = (ids[0, position] + 1) % 61
        assert torch.equal(model(changed, mask, **span), scores) == (position not in (3, 4, 5))


def test_a_batch_without_targets_gives_no_scores(make_encoder, tokens):
    model = probe(make_encoder(), 5)
    scores = model(*tokens, spans=torch.zeros(0, 1, 2, dtype=torch.int64), sentences=torch.zeros(0, dtype=torch.int64))
    assert scores.shape == (0, 5) and not model.loss(scores, torch.zeros(0, 5)).mean.detach()


@pytest.mark.parametrize(
    ("span", "sentence", "message"),
    [
        ([3, 3], 0, r"\[3, 3\) is empty"),
        ([-1, 3], 0, "leaves the sequence"),
        ([3, 10], 1, r"\[3, 10\) covers padding"),
        ([1, 2], 3, "sentence index is outside the batch of 3"),
    ],
)
def test_spans_without_tokens_are_refused(make_encoder, tokens, span, sentence, message):
    model = probe(make_encoder(), 5)
    with pytest.raises(EvaluationError, match=message):
        model(*tokens, spans=torch.tensor([[[1, 2]], [span]]), sentences=torch.tensor([0, sentence]))


def test_the_number_of_spans_must_be_that_of_the_task(make_encoder, tokens):
    with pytest.raises(EvaluationError, match="got 2 spans per target, expected 1"):
        probe(make_encoder(), 5)(*tokens, spans=SPANS, sentences=SENTENCES)
    with pytest.raises(EvaluationError, match="spans, sentences: got shapes"):
        probe(make_encoder(), 5)(*tokens, spans=SPANS[:, 0], sentences=SENTENCES)


def test_differences_need_a_residual_stream(make_encoder, tokens):
    model = probe(make_encoder("elc"), 5, layer_reading="differences")
    with pytest.raises(ModelError, match="layer_reading"):
        model(*tokens, spans=SPANS[:, :1], sentences=SENTENCES)


@pytest.mark.parametrize(
    ("kind", "changes", "reading"),
    [
        ("ltg", {}, "differences"),
        ("ltg", {"normalisation": "pre_norm"}, "differences"),
        ("ltg", {"normalisation": "post_norm"}, "outputs"),
        ("ltg", {"residual_scaling": True}, "outputs"),
        ("elc", {}, "outputs"),
        ("roberta", {}, "outputs"),
        ("gpt_bert", {}, "outputs"),
        ("modern", {}, "outputs"),
        ("modern", {"unet_skips": False}, "differences"),
    ],
)
def test_contributions_are_differences_only_where_layers_add_up(make_encoder, tokens, kind, changes, reading):
    encoder = make_encoder(kind, **changes)
    states = encoder(*tokens)
    found = layer_vectors(encoder, states, "contributions")
    assert torch.equal(found, layer_vectors(encoder, states, reading))
    assert found.shape[0] == len(encoder.layers)


def test_answers_come_from_candidates_alone(make_encoder, tokens):
    ids, mask = tokens
    model = ExtractiveSpan(make_encoder(), HeadContext(None, 0.0, 1, PAD), ExtractiveOptions(max_span_length=4)).eval()
    for allowed in range(5):
        candidates = torch.zeros_like(mask)
        candidates[:, allowed] = True
        assert model.predictions(model(ids, mask, candidates)).tolist() == [[allowed, allowed + 1]] * 3
    spans = model.predictions(model(ids, mask))
    assert (spans[:, 1] <= mask.sum(1)).all() and (spans[:, 1] - spans[:, 0] <= 4).all()
    # The span from the best first token to the best last token has eight tokens; the best span of four ends earlier.
    scores = torch.zeros(1, 12, 2)
    scores[0, 2, 0] = scores[0, 9, 1] = 5.0
    scores[0, 4, 1] = 3.0
    assert model.predictions(scores).tolist() == [[2, 5]]
    with pytest.raises(EvaluationError, match="candidates"):
        model(ids, mask, ~mask)
    with pytest.raises(EvaluationError, match="the index of a missing choice or of a position outside the input"):
        model.loss(model(ids, mask), torch.tensor([[1, 2], [1, 2], [6, 8]]))
