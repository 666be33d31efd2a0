"""Initial weights of LTG-BERT and RoBERTa: the published distribution, and the dependence on the seed."""

import json
import math
from typing import Any

import pytest
import torch

from hatchery.modeling.families import model_config
from hatchery.modeling.language_model import LanguageModel, initialise_


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
    """The model has a quarter of the published width; the nominal standard deviation is sqrt(2 / (5 D)), hence the
    scale 2."""
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
        # The standard error of a standard deviation is about error / sqrt(2), less for a truncated normal.
        assert values.std().item() == pytest.approx(row["std"] * scale, abs=3 * error + 0.002 * row["std"]), kind
        assert values.abs().max().item() <= row["max"] * scale * 1.0001, kind


def test_position_vectors_and_an_output_matrix_of_its_own_start_like_word_vectors(make_model):
    sizes = {"hidden_size": 60, "max_position_embeddings": 200, "vocab_size": 300}
    model = make_model(**sizes, position_embedding="absolute", tie_word_embeddings=False)
    tables = [model.encoder.embedding.position_embedding.weight, model.head.vocabulary_weight]
    for table in (*tables, model.encoder.word_embedding.weight):
        # A normal distribution truncated at two standard deviations has 0.8796 of the standard deviation.
        assert float(table.detach().std()) == pytest.approx(0.8796 * math.sqrt(2 / 300), rel=0.03)
        assert float(table.detach().abs().max()) <= 2 * math.sqrt(2 / 300)


def test_feed_forward_blocks_of_gpt_bert_start_smaller_in_deeper_layers(make_model):
    for depth, layer in enumerate(make_model(family="gpt_bert", hidden_size=48, intermediate_size=96).encoder.layers):
        for projection in (layer.feed_forward.input_projection, layer.feed_forward.output_projection):
            expected = 0.8796 * math.sqrt(2 / 240) / math.sqrt(2 * (depth + 1))
            assert float(projection.weight.detach().std()) == pytest.approx(expected, rel=0.05)


ROBERTA: dict[str, Any] = {
    "family": "roberta",
    "embedding_size": 16,
    "hidden_size": 240,
    "extra_vocabulary_rows": 3,
    "tie_word_embeddings": False,
}


@pytest.mark.parametrize("changes", [{}, ROBERTA])
def test_seed_and_name_alone_decide_the_weights(make_model, changes):
    torch.manual_seed(1)
    first = make_model(seed=5, **changes)
    torch.manual_seed(2)
    state = torch.get_rng_state()
    initialise_(first, 5)
    assert torch.equal(torch.get_rng_state(), state), "torch's generator is left alone"
    again, shallower, other = (
        make_model(seed, num_hidden_layers=layers, **changes).state_dict() for seed, layers in ((5, 3), (5, 2), (6, 3))
    )
    first = first.state_dict()
    assert all(torch.equal(first[name], weight) for name, weight in (*again.items(), *shallower.items()))
    same = {name for name in first if torch.equal(first[name], other[name])}
    assert all("bias" in name or "norm" in name for name in same)
    one, two = (first[f"encoder.layers.{n}.attention.value_projection.weight"] for n in (0, 1))
    assert not torch.equal(one, two), "tensors of one shape get different numbers"


@pytest.mark.parametrize(
    "changes",
    [
        {"layer_weighting": "biased", "head_scaling": True},
        {"position_embedding": "absolute", "tie_word_embeddings": False, "residual_scaling": True},
        {"family": "gpt_bert", "sentence_pair_head": True},
        {"family": "modern", "value_residual": True, "unet_skips": True, "output_transform": True},
        {"family": "encoder_decoder"},
        ROBERTA,
    ],
)
def test_every_parameter_is_set_whatever_its_value_was_before(make_model, changes):
    disturbed, expected = make_model(5, disturbed=0.5, **changes), make_model(5, **changes).state_dict()
    initialise_(disturbed, 5)
    assert [name for name, value in disturbed.state_dict().items() if not torch.equal(value, expected[name])] == []


@pytest.fixture
def fresh(make_model):
    """Return a function that returns all parameters of an initialised model of the reduced-vocabulary study by name."""
    return lambda **changes: make_model(3, **ROBERTA, **changes).state_dict()


def test_published_initialisation_is_xavier_and_leaves_one_norm_at_a_hundredth(fresh):
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


def test_corrected_initialisation_mends_only_the_constants(fresh):
    published, corrected = fresh(initialisation="as_published"), fresh()
    for name, weight in corrected.items():
        if weight.dim() == 2:
            assert torch.equal(weight, published[name]), name
        else:
            is_gain = "norm" in name and name.endswith("weight")
            assert bool((weight == float(is_gain)).all()), name
