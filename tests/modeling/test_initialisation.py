"""Fresh weights: their distribution against the published one, and what they depend on."""

import json

import pytest
import torch

from hatchery.modeling.families import model_config
from hatchery.modeling.initialisation import initialise_
from hatchery.modeling.language_model import LanguageModel


def statistics_of(model) -> dict[str, torch.Tensor]:
    """All values of each kind of tensor, under the names of the published statistics."""
    layers, head = model.encoder.layers, model.head
    kinds = {
        "word embedding (tied with the output matrix)": [model.encoder.embedding.word_embedding.weight],
        "relative embedding": [model.encoder.embedding.relative_embedding],
        "relative layer norm weight": [model.encoder.embedding.relative_layer_norm.weight],
        "relative layer norm bias": [model.encoder.embedding.relative_layer_norm.bias],
        "query-key projection weight": [layer.attention.query_key_projection.weight for layer in layers],
        "query-key projection bias": [layer.attention.query_key_projection.bias for layer in layers],
        "value projection weight": [layer.attention.value_projection.weight for layer in layers],
        "value projection bias": [layer.attention.value_projection.bias for layer in layers],
        "attention output weight": [layer.attention.output_projection.weight for layer in layers],
        "attention output bias": [layer.attention.output_projection.bias for layer in layers],
        "attention post layer norm weight": [layer.attention.post_layer_norm.weight for layer in layers],
        "attention post layer norm bias": [layer.attention.post_layer_norm.bias for layer in layers],
        "head linear weight": [head.linear.weight],
        "head linear bias": [head.linear.bias],
        "vocabulary bias": [head.vocabulary_bias],
    }
    for depth, layer in enumerate(layers):
        kinds[f"feed-forward input weight, layer {depth}"] = [layer.feed_forward.input_projection.weight]
        kinds[f"feed-forward output weight, layer {depth}"] = [layer.feed_forward.output_projection.weight]
    return {kind: torch.cat([tensor.detach().flatten() for tensor in tensors]) for kind, tensors in kinds.items()}


def test_every_kind_of_weight_has_the_published_distribution(golden_directory):
    """At a quarter of the published width; standard deviations scale with the nominal one, sqrt(2 / (5 D))."""
    published = json.loads((golden_directory / "init/init_statistics.json").read_text())
    config = model_config({**published["config"], "hidden_size": 192, "intermediate_size": 512})
    model = LanguageModel(config)
    initialise_(model, 42)
    ours = statistics_of(model)
    rows = {row["kind"].removesuffix(" (12 layers)"): row for row in published["statistics"]}
    assert ours.keys() == rows.keys()
    for kind, row in rows.items():
        values, scale = ours[kind].double(), 2.0
        if row["std"] == 0:
            assert torch.all(values == row["mean"]), kind
            continue
        error = row["std"] * scale / values.numel() ** 0.5
        assert abs(values.mean()) < 4 * error, kind
        # The standard deviation of a standard deviation is about error / sqrt(2), less for a truncated normal.
        assert values.std().item() == pytest.approx(row["std"] * scale, abs=3 * error + 0.002 * row["std"]), kind
        assert values.abs().max().item() <= row["max"] * scale * 1.0001, kind


def test_only_the_seed_decides_the_weights(make_model):
    torch.manual_seed(1)
    first = make_model(seed=5).state_dict()
    torch.manual_seed(2)
    torch.rand(17)
    second = make_model(seed=5).state_dict()
    assert all(torch.equal(first[name], second[name]) for name in first)
    other = make_model(seed=6).state_dict()
    same = {name for name in first if torch.equal(first[name], other[name])}
    assert all("bias" in name or "layer_norm" in name for name in same)


def test_initialising_leaves_torchs_generator_alone(make_model):
    model = make_model()
    state = torch.get_rng_state()
    initialise_(model, 3)
    assert torch.equal(torch.get_rng_state(), state)


def test_tensors_of_one_shape_get_different_numbers(make_model):
    state = make_model().state_dict()
    first, second = (state[f"encoder.layers.{n}.attention.value_projection.weight"] for n in (0, 1))
    assert not torch.equal(first, second)
