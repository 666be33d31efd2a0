"""ELC-BERT's connections between layers, and the plain transformer as a special case of them."""

import dataclasses

import pytest
import torch

from hatchery.modeling.language_model import LanguageModel, initialise_
from hatchery.modeling.layer_weighting import LAYER_WEIGHTINGS, LayerWeighting, layer_weight_table

VARIANTS = ("biased", "zero", "normalized", "normalized_unit_vector", "weighted_output")
PLAIN = {
    "normformer": {},
    "pre_norm": {"normalisation": "pre_norm"},
    "post_norm": {"normalisation": "post_norm"},
    "roberta": {"family": "roberta", "embedding_size": 20, "tie_word_embeddings": False},
    "gpt_bert": {"family": "gpt_bert", "layer_weighting": "none"},
}
"""Plain transformers with every normalisation, in both families."""


def test_unit_weights_and_a_summed_output_recover_the_plain_transformer(make_model, batch):
    """docs/papers/elc-bert.md, "Layer weighting": all alpha 1, ELC-BERT's Equation 2, and a head that reads the sum of
    all outputs."""
    plain = make_model(layer_weighting="none")
    unrolled = LayerWeighting("sum", input_in_output=False, input_in_feed_forward=True, output_mixture=True)
    other = LanguageModel(plain.config, weighting=unrolled)
    other.load_state_dict(plain.state_dict())
    ids, mask, labels = batch
    states, outputs = plain.encoder(ids, mask), other.encoder(ids, mask)
    torch.testing.assert_close(outputs[-1], states[-1], atol=2e-6, rtol=0)
    torch.testing.assert_close(outputs[2], states[2] - states[1], atol=2e-6, rtol=0)
    torch.testing.assert_close(other(ids, mask, labels).loss_sum, plain(ids, mask, labels).loss_sum)


@pytest.mark.parametrize("kind", PLAIN)
def test_all_weight_on_the_previous_layer_recovers_any_encoder(make_model, batch, kind):
    plain = make_model(**PLAIN[kind])
    one_hot = LayerWeighting("softmax", True, input_in_feed_forward=True, previous_layer_bias=200.0)
    other = LanguageModel(plain.config, weighting=one_hot)
    initialise_(other, 1)
    ids, mask, _ = batch
    for ours, theirs in zip(other.encoder(ids, mask), plain.encoder(ids, mask), strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-6, rtol=0)


@pytest.mark.parametrize("kind", PLAIN)
@pytest.mark.parametrize("name", VARIANTS)
def test_a_layer_weighting_is_learned_in_any_encoder(make_model, batch, kind, name):
    plain, model = make_model(**PLAIN[kind]), make_model(**{**PLAIN[kind], "layer_weighting": name})
    model(*batch).loss_sum.backward()
    first, *others = model.encoder.mixture.layer_weights
    # A softmax over one candidate is constant: its gradient is 0, but must exist, so that optimisers need no exception.
    assert first.grad.abs().max() == 0
    assert all(vector.grad.abs().max() > 0 for vector in others)
    assert not [name for name, parameter in model.named_parameters() if parameter.grad is None]
    difference = model.encoder(*batch[:2])[-1] - plain.encoder(*batch[:2])[-1]
    assert difference.abs().max() > 0.01


@pytest.mark.parametrize("name", VARIANTS)
def test_variants_start_from_the_same_backbone(make_model, name):
    plain, variant = make_model(layer_weighting="none").state_dict(), make_model(layer_weighting=name).state_dict()
    assert all(torch.equal(variant[key], plain[key]) for key in plain)
    assert {key.rsplit(".", 1)[0] for key in variant.keys() - plain.keys()} == {"encoder.mixture.layer_weights"}


def test_the_encoder_returns_as_many_states_as_the_papers_do(make_model, batch):
    ids, mask, _ = batch
    for name in LAYER_WEIGHTINGS:
        states = make_model(layer_weighting=name).encoder(ids, mask)
        assert len(states) == (5 if name == "weighted_output" else 4)
        assert all(state.shape == (3, 12, 24) for state in states)


def test_the_last_state_of_weighted_output_is_the_mixture_of_the_others(make_model, batch):
    model = make_model(layer_weighting="weighted_output")
    ids, mask, _ = batch
    with torch.no_grad():
        model.encoder.mixture.layer_weights[-1].copy_(torch.tensor([0.3, -1.0, 0.5, 2.0]))
    *outputs, mixture = model.encoder(ids, mask)
    alphas = torch.softmax(torch.tensor([0.3, -1.0, 0.5, 2.0]), 0)
    expected = sum(alpha * output for alpha, output in zip(alphas, outputs, strict=True))
    torch.testing.assert_close(mixture, expected, atol=1e-6, rtol=0)


def test_normalized_outputs_have_mean_zero_and_variance_one(make_model, batch):
    ids, mask, _ = batch
    for state in make_model(layer_weighting="normalized").encoder(ids, mask)[1:]:
        assert state.mean(-1).abs().max() < 1e-5
        assert (state.var(-1, unbiased=False) - 1).abs().max() < 1e-3


def test_the_papers_normalisation_gives_vectors_of_length_one(make_model, batch):
    ids, mask, _ = batch
    model = make_model(layer_weighting="normalized_unit_vector")
    # On a CPU, only sequences without padding keep their shape [B, T, D] in the layers.
    for given in (mask, torch.ones_like(mask)):
        for state in model.encoder(ids, given)[1:]:
            torch.testing.assert_close(state.norm(dim=-1), torch.ones(3, 12))


def test_the_biased_variant_sends_nothing_around_the_attention(make_model, batch):
    """Equation 5: with attention outputs of zero, a layer cannot pass on its input."""
    model = make_model(layer_weighting="biased")
    attention = model.encoder.layers[0].attention
    with torch.no_grad():
        attention.post_layer_norm.weight.zero_()
        attention.post_layer_norm.bias.zero_()
    assert model.encoder(*batch[:2])[1].abs().max() == 0


def test_layer_weight_table_lists_the_triangle_of_scaled_weights(make_model):
    rows = layer_weight_table(make_model(layer_weighting="biased"))
    assert [(row.consuming_layer, row.producing_layer) for row in rows] == [(n, i) for n in (1, 2, 3) for i in range(n)]
    assert [row.weight for row in rows if row.consuming_layer == 2] == pytest.approx([0.2689, 0.7311], abs=1e-4)
    assert all(row.scaled_weight == row.consuming_layer * row.weight for row in rows)
    assert layer_weight_table(make_model(layer_weighting="none")) == []
    assert len(layer_weight_table(make_model(layer_weighting="weighted_output"))) == 10


def test_only_a_record_distinguishes_the_variants(make_model):
    """A weighting that has no name can be studied without a new class."""
    config = make_model().config
    record = dataclasses.replace(LAYER_WEIGHTINGS["zero"], previous_layer_bias=3.0)
    model = LanguageModel(config, weighting=record)
    initialise_(model, 1)
    assert model.encoder.mixture.alphas(3)[-1] > 0.9
