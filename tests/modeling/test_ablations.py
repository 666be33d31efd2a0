"""The ablations of LTG-BERT's Table 2, each against its formula (docs/papers/ltg-bert.md, "Ablations")."""

import pytest
import torch
import torch.nn.functional as F

from hatchery.errors import ModelError
from hatchery.modeling.attention import AttentionInputs
from hatchery.modeling.language_model import LanguageModel
from hatchery.modeling.ltg.config import LtgBertConfig
from hatchery.training.decay_groups import is_decayed

BASE = {"vocab_size": 16384, "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12}
FINAL = 98_229_760


def parameters(**changes) -> int:
    with torch.device("meta"):
        model = LanguageModel(LtgBertConfig(**{**BASE, "intermediate_size": 2048, **changes}))
    return sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize(
    ("changes", "difference"),
    [
        ({}, 0),
        # Without the gate, the block has the same number of parameters, as the paper says: 3 x 2048 = 2 x 3072.
        ({"feed_forward_activation": "gelu", "intermediate_size": 3072}, 0),
        ({"feed_forward_bias": True}, 58_368),
        # Pre-norm lacks two vectors of each of the twelve attention norms; post-norm has two more norms in every layer.
        ({"normalisation": "pre_norm"}, -12 * 2 * 768),
        ({"normalisation": "post_norm"}, 12 * 2 * 768),
        ({"normalisation": "post_norm", "block_norm_affine": False}, -12 * 2 * 768),
        ({"normalisation": "pre_norm", "block_norm_affine": True}, 12 * 2 * 768),
        # 512 position vectors instead of 63 rows and their norm.
        ({"position_embedding": "absolute"}, (512 - 63 - 2) * 768),
        ({"feed_forward_initial_scaling": False}, 0),
        # One factor for each of the twelve heads of a layer, or for each dimension.
        ({"head_scaling": True}, 12 * 12),
        ({"residual_scaling": True}, 12 * 768),
        ({"vocabulary_bias": False}, -16384),
        ({"tie_word_embeddings": False}, 16384 * 768),
        ({"sentence_pair_head": True}, 591_361),
    ],
)
def test_an_ablation_has_the_parameters_that_it_names(changes, difference):
    assert parameters(**changes) - FINAL == difference


def attention_of(model, layer, hidden):
    encoder = model.encoder
    _, inputs = encoder.embed(torch.zeros(hidden.shape[:2], dtype=torch.long), None)
    return layer.attention(hidden, inputs)


@pytest.fixture
def hidden():
    return torch.randn(2, 9, 24, generator=torch.Generator().manual_seed(2))


def perturbed(model):
    """Add noise to every parameter, so that no parameter is trivially 0 or 1 and a missing norm or bias changes the
    output."""
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator))
    return model


def test_post_norm_normalises_the_sums_and_nothing_else(make_model, hidden):
    model = perturbed(make_model(normalisation="post_norm"))
    layer = model.encoder.layers[1]
    assert layer.attention.pre_layer_norm is None and layer.attention.post_layer_norm is None
    assert layer.feed_forward.pre_layer_norm is None and layer.feed_forward.inner_layer_norm is None
    _, inputs = model.encoder.embed(torch.zeros(2, 9, dtype=torch.long), None)
    middle = layer.attention_norm(hidden + layer.attention(hidden, inputs))
    value, gate = layer.feed_forward.input_projection(middle).chunk(2, -1)
    feed_forward = layer.feed_forward.output_projection(value * F.gelu(gate, approximate="tanh"))
    expected = layer.feed_forward_norm(middle + feed_forward)
    torch.testing.assert_close(layer(hidden, inputs), expected, atol=1e-6, rtol=0)
    assert layer.attention_norm.weight is not None


def test_pre_norm_normalises_before_the_blocks_and_nowhere_else(make_model, hidden):
    model = perturbed(make_model(normalisation="pre_norm"))
    layer = model.encoder.layers[1]
    assert layer.attention.post_layer_norm is None and layer.feed_forward.inner_layer_norm is None
    _, inputs = model.encoder.embed(torch.zeros(2, 9, dtype=torch.long), None)
    middle = hidden + layer.attention(hidden, inputs)
    normalised = F.layer_norm(middle, (24,), eps=1e-7)
    value, gate = layer.feed_forward.input_projection(normalised).chunk(2, -1)
    expected = middle + layer.feed_forward.output_projection(value * F.gelu(gate, approximate="tanh"))
    torch.testing.assert_close(layer(hidden, inputs), expected, atol=1e-6, rtol=0)


def test_gelu_without_a_gate_and_biases_in_both_projections(make_model, hidden):
    model = perturbed(make_model(feed_forward_activation="gelu", feed_forward_bias=True))
    block = model.encoder.layers[0].feed_forward
    assert block.input_projection.weight.shape == (40, 24)
    inner = F.gelu(
        F.layer_norm(hidden, (24,), eps=1e-7) @ block.input_projection.weight.T + block.input_projection.bias,
        approximate="tanh",
    )
    expected = F.layer_norm(inner, (40,), eps=1e-7) @ block.output_projection.weight.T + block.output_projection.bias
    torch.testing.assert_close(block(hidden), expected, atol=1e-6, rtol=0)


def test_scales_multiply_heads_before_the_projection_and_the_residual_before_the_second_sum(make_model, hidden):
    model = perturbed(make_model(head_scaling=True, residual_scaling=True))
    plain = make_model()
    kept = {name: tensor for name, tensor in model.state_dict().items() if not name.endswith("_scale")}
    plain.load_state_dict(kept)
    layer, unscaled = model.encoder.layers[1], plain.encoder.layers[1]
    assert layer.attention.head_scale.shape == (3,) and layer.residual_scale.shape == (24,)
    # Scaling a head is the same as scaling the output projection's columns for this head.
    with torch.no_grad():
        unscaled.attention.output_projection.weight *= layer.attention.head_scale.repeat_interleave(8)
    middle = hidden + attention_of(plain, unscaled, hidden)
    expected = layer.residual_scale * middle + unscaled.feed_forward(middle)
    _, inputs = model.encoder.embed(torch.zeros(2, 9, dtype=torch.long), None)
    torch.testing.assert_close(layer(hidden, inputs), expected, atol=2e-6, rtol=0)


def test_scales_start_where_they_change_nothing(make_model):
    ids = torch.arange(6, 24).view(2, 9)
    scaled, plain = make_model(head_scaling=True, residual_scaling=True), make_model()
    torch.testing.assert_close(scaled.encoder(ids)[-1], plain.encoder(ids)[-1], atol=0, rtol=0)


def test_a_scaled_model_says_the_same_of_single_tokens_as_of_whole_texts(make_model):
    model = perturbed(make_model(head_scaling=True, residual_scaling=True)).eval()
    ids, rows = torch.arange(6, 24).view(2, 9), torch.tensor([3, 13])
    found = model.encoder.hidden_at(ids, None, rows, few=True)
    torch.testing.assert_close(found, model.encoder(ids)[-1].flatten(0, 1)[rows], atol=2e-6, rtol=0)


def test_scales_are_not_decayed(make_model):
    model = make_model(head_scaling=True, residual_scaling=True)
    scales = [name for name, _ in model.named_parameters() if name.endswith("_scale")]
    assert len(scales) == 2 * len(model.encoder.layers) and not any(map(is_decayed, scales))


def test_the_configuration_says_which_scales_a_model_has(make_model):
    written = make_model(head_scaling=True).config.to_dict()
    assert (written["head_scaling"], written["residual_scaling"]) == (True, False)


def test_absolute_positions_are_added_to_the_words_and_leave_plain_attention(make_model):
    model = perturbed(make_model(position_embedding="absolute"))
    encoder, ids = model.encoder, torch.arange(6, 24).view(2, 9)
    summed = encoder.embedding.word_embedding.weight[ids] + encoder.embedding.position_embedding.weight[:9]
    embedded, inputs = encoder.embed(ids, None)
    torch.testing.assert_close(embedded, F.layer_norm(summed, (24,), eps=1e-7), atol=1e-6, rtol=0)
    assert inputs == AttentionInputs()
    attention = encoder.layers[0].attention
    normalised = F.layer_norm(embedded, (24,), eps=1e-7)
    query, key = attention.query_key_projection(normalised).view(2, 9, 2, 3, 8).permute(2, 0, 3, 1, 4)
    value = attention.value_projection(normalised).view(2, 9, 3, 8).transpose(1, 2)
    context = torch.softmax(query @ key.transpose(-1, -2) / 8**0.5, -1) @ value
    context = context.transpose(1, 2).reshape(2, 9, 24)
    expected = attention.post_layer_norm(attention.output_projection(context))
    torch.testing.assert_close(attention(embedded, inputs), expected, atol=2e-6, rtol=0)


def test_absolute_positions_end_where_their_table_does(make_model):
    model = make_model(position_embedding="absolute", max_position_embeddings=10)
    model.encoder(torch.zeros(1, 10, dtype=torch.long))
    with pytest.raises(ModelError, match="11 tokens, expected at most 10, the number of absolute positions"):
        model.encoder(torch.zeros(1, 11, dtype=torch.long))


def test_without_initial_scaling_only_the_feed_forward_weights_differ(make_model):
    scaled, plain = make_model().state_dict(), make_model(feed_forward_initial_scaling=False).state_dict()
    different = {name for name in scaled if not torch.equal(scaled[name], plain[name])}
    assert different == {name for name in scaled if ".feed_forward." in name}
    for name in different:
        depth = int(name.split(".")[2])
        torch.testing.assert_close(plain[name] / (2 * (depth + 1)) ** 0.5, scaled[name])


def test_the_two_orders_of_the_heads_dropout_differ_in_training_and_agree_in_evaluation(make_model, hidden):
    orders = [make_model(head_dropout=order, hidden_dropout_prob=0.5).head for order in ("after_norm", "before_norm")]
    after, before = (head.features(hidden) for head in orders)
    # Dropout before the norm: the norm shifts the zeros. Dropout after the norm: zeros stay 0.
    assert 0.4 < float((after == 0).float().mean()) < 0.6
    assert float((before == 0).float().mean()) < 0.05
    for head in orders:
        head.eval()
    assert torch.equal(*(head.features(hidden) for head in orders))
