"""The RoBERTa-like family against `transformers`, against its written-out definition, and in combination with other
parts."""

import math
from collections.abc import Callable
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from hatchery.errors import ModelError
from hatchery.modeling.language_model import LanguageModel
from hatchery.modeling.norm_and_dropout import Dropout
from hatchery.modeling.roberta.encoder import position_ids

PAD = 1
PROJECTED = {"embedding_size": 16, "tie_word_embeddings": False, "extra_vocabulary_rows": 3}


@pytest.fixture
def make(make_model: Callable[..., LanguageModel]) -> Callable[..., LanguageModel]:
    """A small model of the family."""
    return partial(make_model, family="roberta", disturbed=0.1)


@pytest.fixture
def inputs(tokens: tuple[Tensor, Tensor], batch: tuple[Tensor, Tensor, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    """Ids, mask and labels [3, 12] of sequences of 12, 9 and 5 tokens; padding has the id 1."""
    return *tokens, batch[2]


def name_in_transformers(name: str) -> str:
    """Return the name that `transformers` gives to our parameter `name`."""
    embeddings = "roberta.embeddings."
    fixed = {
        "encoder.embedding.word_embedding.weight": f"{embeddings}word_embeddings.weight",
        "encoder.embedding.position_embedding.weight": f"{embeddings}position_embeddings.weight",
        "encoder.embedding.token_type_embedding.weight": f"{embeddings}token_type_embeddings.weight",
        "head.vocabulary_bias": "lm_head.bias",
    }
    if name in fixed:
        return fixed[name]
    for ours, theirs in (
        ("encoder.embedding.layer_norm", "roberta.embeddings.LayerNorm"),
        ("encoder.layers", "roberta.encoder.layer"),
        ("attention_norm", "attention.output.LayerNorm"),
        ("feed_forward_norm", "output.LayerNorm"),
        ("attention.query_projection", "attention.self.query"),
        ("attention.key_projection", "attention.self.key"),
        ("attention.value_projection", "attention.self.value"),
        ("attention.output_projection", "attention.output.dense"),
        ("feed_forward.input_projection", "intermediate.dense"),
        ("feed_forward.output_projection", "output.dense"),
        ("head.linear", "lm_head.dense"),
        ("head.layer_norm", "lm_head.layer_norm"),
    ):
        name = name.replace(ours, theirs)
    return name


@pytest.mark.parametrize("attends_to_padding", [False, True])
def test_the_stock_family_is_the_roberta_of_transformers(make, inputs, attends_to_padding):
    transformers = pytest.importorskip("transformers")
    ids, mask, labels = inputs
    ours = make()
    config = transformers.RobertaConfig(
        vocab_size=61,
        hidden_size=24,
        intermediate_size=40,
        num_hidden_layers=3,
        num_attention_heads=3,
        max_position_embeddings=66,
        type_vocab_size=2,
        layer_norm_eps=1e-5,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        pad_token_id=PAD,
    )
    theirs = transformers.RobertaForMaskedLM(config)
    weights = {name_in_transformers(name): parameter.detach() for name, parameter in ours.named_parameters()}
    missing, unexpected = theirs.load_state_dict(weights, strict=False)
    assert not unexpected
    assert set(missing) <= {"lm_head.decoder.weight", "lm_head.decoder.bias", "roberta.embeddings.position_ids"}
    theirs.tie_weights()

    expected = theirs(
        input_ids=ids,
        attention_mask=torch.ones_like(mask).long() if attends_to_padding else mask.long(),
        labels=labels,
        output_hidden_states=True,
    )
    given = None if attends_to_padding else mask
    states = ours.encoder(ids, given)
    for state, reference in zip(states, expected.hidden_states, strict=True):
        torch.testing.assert_close(state, reference, atol=1e-5, rtol=0)
    torch.testing.assert_close(ours.logits_at(states[-1]), expected.logits, atol=1e-5, rtol=0)
    output = ours(ids, given, labels)
    torch.testing.assert_close(output.loss_sum / output.n_labelled, expected.loss, atol=1e-5, rtol=0)

    (output.loss_sum / output.n_labelled).backward()
    expected.loss.backward()
    gradients = {name: parameter.grad for name, parameter in theirs.named_parameters()}
    for name, parameter in ours.named_parameters():
        torch.testing.assert_close(parameter.grad, gradients[name_in_transformers(name)], atol=1e-5, rtol=1e-4)


def written_out(model: LanguageModel, ids: Tensor, mask: Tensor) -> Tensor:
    """Return the logits [B, T, V] of the projected family, computed from the definition by head and sentence."""
    weights = dict(model.named_parameters())
    heads, layers = model.config.num_attention_heads, model.config.num_hidden_layers

    def linear(x: Tensor, name: str) -> Tensor:
        return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]

    def norm(x: Tensor, name: str) -> Tensor:
        centred = x - x.mean(-1, keepdim=True)
        deviation = (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt()
        return centred / deviation * weights[f"{name}.weight"] + weights[f"{name}.bias"]

    def gelu(x: Tensor) -> Tensor:
        return x * 0.5 * (1 + torch.erf(x / math.sqrt(2)))

    logits = []
    for row, tokens in zip(ids, mask, strict=True):
        places = [int((row[: t + 1] != PAD).sum()) + 1 if row[t] != PAD else 1 for t in range(len(row))]
        embedding = "encoder.embedding"
        x = weights[f"{embedding}.word_embedding.weight"][row]
        x = x + weights[f"{embedding}.position_embedding.weight"][places]
        x = x + weights[f"{embedding}.token_type_embedding.weight"][0]
        x = norm(x, f"{embedding}.layer_norm")
        x = norm(linear(x, "encoder.projection"), "encoder.projection_layer_norm")
        for n in range(layers):
            layer = f"encoder.layers.{n}"
            query, key, value = (linear(x, f"{layer}.attention.{p}_projection") for p in ("query", "key", "value"))
            width = x.shape[-1] // heads
            contexts = []
            for head in range(heads):
                columns = slice(head * width, (head + 1) * width)
                scores = query[:, columns] @ key[:, columns].T / math.sqrt(width)
                scores[:, ~tokens] = -math.inf
                contexts.append(scores.softmax(-1) @ value[:, columns])
            attention = linear(torch.cat(contexts, dim=-1), f"{layer}.attention.output_projection")
            x = norm(x + attention, f"{layer}.attention_norm")
            inner = gelu(linear(x, f"{layer}.feed_forward.input_projection"))
            x = norm(x + linear(inner, f"{layer}.feed_forward.output_projection"), f"{layer}.feed_forward_norm")
        x = norm(gelu(linear(x, "head.linear")), "head.layer_norm")
        logits.append(x @ weights["head.vocabulary_weight"].T + weights["head.vocabulary_bias"])
    return torch.stack(logits)


@pytest.mark.parametrize("embedding_size", [16, 24, 40])
@pytest.mark.parametrize("attends_to_padding", [False, True])
def test_the_projected_family_is_its_written_out_definition(make, inputs, embedding_size, attends_to_padding):
    ids, mask, labels = inputs
    model = make(**{**PROJECTED, "embedding_size": embedding_size}).double()
    seen = torch.ones_like(mask) if attends_to_padding else mask
    expected = written_out(model, ids, seen)
    assert expected.shape == (3, 12, 64)
    given = None if attends_to_padding else mask
    logits = model.logits_at(model.encoder(ids, given)[-1])
    torch.testing.assert_close(logits, expected, atol=1e-10, rtol=0)
    output = model(ids, given, labels)
    loss = F.cross_entropy(expected.flatten(0, 1), labels.flatten(), ignore_index=-100)
    torch.testing.assert_close(output.loss_sum / output.n_labelled, loss, atol=1e-10, rtol=0)


@pytest.mark.parametrize("changes", [{}, PROJECTED])
def test_what_stands_at_padding_changes_no_token(make, inputs, changes):
    ids, mask, _ = inputs
    model = make(**changes)
    alone = model.encoder(ids[2:, :5], None)[-1]
    torch.testing.assert_close(model.encoder(ids, mask)[-1][2:, :5], alone, atol=1e-5, rtol=0)
    rows = mask.flatten().nonzero().squeeze(1)
    without_padding = model.encoder.hidden_at(ids, mask, rows)
    torch.testing.assert_close(without_padding, model.encoder(ids, mask)[-1].flatten(0, 1)[rows], atol=1e-5, rtol=0)


def test_texts_packed_into_one_input_have_the_states_that_they_have_alone(make, inputs):
    ids = inputs[0]
    texts = [ids[0, :4], ids[1, :5], ids[2, :2]]
    text_of = torch.tensor([0] * 4 + [1] * 5 + [2] * 2 + [3])
    packed = torch.cat([*texts, torch.tensor([PAD])])[None]
    model = make(**PROJECTED)
    states = model.encoder(packed, (text_of[:, None] == text_of[None, :])[None])[-1][0]
    alone = torch.cat([model.encoder(text[None])[-1][0] for text in texts])
    torch.testing.assert_close(states[:11], alone, atol=1e-5, rtol=0)


def test_positions_count_from_two_and_padding_has_one():
    ids = torch.tensor([[0, 7, 8, 2, PAD, PAD], [PAD, 0, 9, PAD, 2, PAD]])
    assert position_ids(ids, PAD).tolist() == [[2, 3, 4, 5, 1, 1], [1, 2, 3, 1, 4, 1]]
    assert position_ids(ids, pad_token_id=60).tolist() == [[2, 3, 4, 5, 6, 7]] * 2
    # Word vectors do not show the padding, so only the mask does.
    vectors = torch.zeros(2, 6, 4)
    assert position_ids(vectors, PAD, ids != PAD).tolist() == [[2, 3, 4, 5, 1, 1], [1, 2, 3, 1, 4, 1]]
    assert position_ids(vectors, PAD).tolist() == [[2, 3, 4, 5, 6, 7]] * 2


def test_the_longest_input_of_the_study_has_128_tokens_and_130_positions(make):
    model = make(max_position_embeddings=128)
    assert model.encoder.embedding.position_embedding.weight.shape == (130, 24)
    longest = torch.full((1, 128), 7)
    assert model.encoder(longest)[-1].shape == (1, 128, 24)
    with pytest.raises(ModelError, match="129 tokens, expected at most 128, the number of absolute positions"):
        model.encoder(torch.full((1, 129), 7))


def test_looking_up_padding_gives_its_rows_no_gradient_even_where_it_is_attended_to(make, inputs):
    ids, _, labels = inputs
    model = make(**PROJECTED)
    model(ids, None, labels).loss_sum.backward()
    embedding = model.encoder.embedding
    assert not embedding.word_embedding.weight.grad[PAD].any()
    assert not embedding.position_embedding.weight.grad[1].any()
    assert embedding.word_embedding.weight.grad[ids[0, 0]].any()


def test_spare_rows_of_the_vocabulary_have_logits_and_take_part_in_the_softmax(make, inputs):
    ids, mask, labels = inputs
    model = make(**PROJECTED)
    assert model.config.vocabulary_rows == 64
    before = model(ids, mask, labels).loss_sum
    with torch.no_grad():
        model.head.vocabulary_bias[61:] = 9.0
    assert model(ids, mask, labels).loss_sum > before + 1


def test_a_layer_weighting_mixes_the_outputs_of_earlier_layers_as_elc_bert_does(make, inputs):
    ids, mask, _ = inputs
    model = make(layer_weighting="zero", **PROJECTED)
    states = model.encoder(ids, mask)
    layer, mixture = model.encoder.layers[2], model.encoder.mixture
    shares = torch.softmax(mixture.layer_weights[2], dim=0)
    hidden = sum(share * state for share, state in zip(shares, states[:3], strict=True))
    _, attention_inputs = model.encoder.embed(ids, mask)
    attention = layer.attention(hidden, attention_inputs)
    inner = layer.feed_forward(layer.attention_norm(hidden + attention))
    expected = layer.feed_forward_norm(layer.attention_norm(attention) + inner)
    torch.testing.assert_close(states[3], expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    ("place", "n"),
    [("embedding.dropout", 1), ("probability_dropout", 3), ("output_dropout", 3), ("feed_forward.dropout", 3)],
)
def test_dropout_acts_in_training_at_every_place_of_the_definition(make, place, n):
    model = make(**PROJECTED)
    dropouts = {name: module for name, module in model.named_modules() if isinstance(module, Dropout)}
    here = [module for name, module in dropouts.items() if name.endswith(place)]
    assert (len(dropouts), len(here)) == (10, n)
    ids = torch.full((2, 6), 7)
    without = model.train().encoder(ids)[-1]
    for module in here:
        module.probability = 0.5
        assert not torch.allclose(model.train().encoder(ids)[-1], without, atol=1e-3)
        torch.testing.assert_close(model.eval().encoder(ids)[-1], without)
        module.probability = 0.0


def test_dropout_probabilities_of_the_configuration_reach_their_places(make):
    model = make(hidden_dropout_prob=0.2, attention_probs_dropout_prob=0.3)
    for name, module in model.named_modules():
        if isinstance(module, Dropout):
            assert module.probability == (0.3 if name.endswith("probability_dropout") else 0.2)
