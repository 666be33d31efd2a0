"""Fresh weights of both families: their distribution against the published one, and what they depend on."""

import json
import math
from typing import Any

import pytest
import torch
from torch import Tensor

from hatchery.errors import ConfigError
from hatchery.modeling.families import model_config
from hatchery.modeling.language_model import LanguageModel, initialise_
from hatchery.modeling.roberta.family import RobertaConfig


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


SIZES: dict[str, Any] = {
    "vocab_size": 61,
    "embedding_size": 16,
    "hidden_size": 256,
    "intermediate_size": 40,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "extra_vocabulary_rows": 3,
    "tie_word_embeddings": False,
}


def fresh(seed: int = 3, **changes: Any) -> dict[str, Tensor]:
    """Every parameter of an initialised model by its name."""
    model = LanguageModel(RobertaConfig(**{**SIZES, **changes}))
    initialise_(model, seed)
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


def test_published_initialisation_is_xavier_and_leaves_one_norm_at_a_hundredth():
    for name, weight in fresh(initialisation="as_published").items():
        if weight.dim() == 2:
            expected = math.sqrt(2 / sum(weight.shape))
            assert float(weight.std()) == pytest.approx(expected, rel=4 / math.sqrt(2 * weight.numel())), name
            assert abs(float(weight.mean())) < 4 * expected / math.sqrt(weight.numel()), name
        elif "norm" in name and "projection" not in name:
            assert bool((weight == (1.0 if name.endswith("weight") else 0.0)).all()), name
        else:
            torch.testing.assert_close(weight, torch.full_like(weight, 0.01), atol=0, rtol=0, msg=name)
    assert fresh(initialisation="as_published")["encoder.embedding.word_embedding.weight"][1].any()


def test_corrected_initialisation_mends_only_the_constants():
    published, corrected = fresh(initialisation="as_published"), fresh()
    for name, weight in corrected.items():
        if weight.dim() == 2:
            assert torch.equal(weight, published[name]), name
        else:
            is_gain = "norm" in name and name.endswith("weight")
            assert bool((weight == float(is_gain)).all()), name


def test_initial_weights_depend_on_seed_and_name_alone():
    torch.manual_seed(1)
    first = fresh()
    torch.manual_seed(2)
    again, shallower, other = fresh(), fresh(num_hidden_layers=2), fresh(seed=4)
    assert all(torch.equal(first[name], weight) for name, weight in again.items())
    assert all(torch.equal(first[name], weight) for name, weight in shallower.items())
    assert not torch.equal(first["head.vocabulary_weight"], other["head.vocabulary_weight"])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_attention_heads": 5}, r"num_attention_heads: got 5, expected a divisor of hidden_size \(256\)"),
        ({"tie_word_embeddings": True}, "tie_word_embeddings: got True, expected false with embedding_size 16"),
        ({"embedding_size": 0}, "embedding_size: got 0, expected at least 1"),
        ({"extra_vocabulary_rows": -1}, "extra_vocabulary_rows: got -1, expected at least 0"),
        ({"pad_token_id": 61}, r"pad_token_id: got 61, expected an id below vocab_size \(61\)"),
        ({"max_position_embeddings": 0}, "max_position_embeddings: got 0, expected at least 2"),
        ({"hidden_dropout_prob": 1.0}, "hidden_dropout_prob: got 1.0"),
        ({"layer_norm_eps": 0.0}, "layer_norm_eps: got 0.0"),
    ],
)
def test_an_impossible_configuration_is_refused_with_key_and_value(changes, message):
    with pytest.raises(ConfigError, match=message):
        RobertaConfig(**{**SIZES, **changes})
