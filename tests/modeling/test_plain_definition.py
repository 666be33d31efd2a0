"""Whole models against a second, plain implementation of the papers' formulas.

It covers sizes, variants and lengths that the golden files lack: one position vector per pair of tokens, one layer
after another, double precision, and weights under the names of the published code.
"""

import itertools
import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from hatchery.modeling.language_model import LanguageModel, initialise_
from hatchery.modeling.ltg.config import LtgBertConfig
from hatchery.modeling.ltg.published_names import published_name
from hatchery.modeling.norm_and_dropout import Dropout
from hatchery.training.objectives.masked import pair_term

EPS = 1e-7


def norm(x: Tensor, weight: Tensor | None = None, bias: Tensor | None = None) -> Tensor:
    return F.layer_norm(x, x.shape[-1:], weight, bias, EPS)


def bucket(distance: int, size: int, most: int) -> float:
    """Bucket of a distance as in docs/papers/ltg-bert.md, "Attention"."""
    middle, far = size // 2, min(abs(distance), most - 1)
    if far > middle:
        far = middle + math.ceil((middle - 1) * math.log(far / middle) / math.log((most - 1) / middle))
    return math.copysign(min(far, size - 1), distance)


def attention(
    w: dict[str, Tensor], name: str, x: Tensor, table: Tensor, visible: Tensor, config: LtgBertConfig
) -> Tensor:
    batch, length, size = x.shape
    heads, width = config.num_attention_heads, size // config.num_attention_heads
    x, kept = norm(x), 1 - config.attention_probs_dropout_prob
    projection, offset = w[f"{name}.in_proj_qk.weight"], w[f"{name}.in_proj_qk.bias"]
    query, key = (x @ projection.T + offset).split(size, dim=-1)
    value = x @ w[f"{name}.in_proj_v.weight"].T + w[f"{name}.in_proj_v.bias"]
    rows = [
        [int(bucket(i - j, config.position_bucket_size, config.max_position_embeddings)) for j in range(length)]
        for i in range(length)
    ]
    pairs = (kept * table @ projection.T + offset)[torch.tensor(rows) + config.position_bucket_size - 1]
    if config.position_head_layout == "bnc":
        position_query, position_key = pairs.view(length, length, heads, 2 * width).split(width, dim=-1)
    else:
        position_query, position_key = (part.view(length, length, heads, width) for part in pairs.split(size, -1))
    query, key, value = (part.view(batch, length, heads, width) for part in (query, key, value))
    if config.position_to_content_index == "key_minus_query":
        position_query = position_query.transpose(0, 1)
    scores = torch.einsum("bihd,bjhd->bhij", query, key)
    scores = scores + torch.einsum("bihd,ijhd->bhij", query, position_key)
    scores = scores + torch.einsum("bjhd,ijhd->bhij", key, position_query)
    scores = (scores / math.sqrt(3 * width)).masked_fill(~visible, -math.inf)
    context = torch.einsum("bhij,bjhd->bihd", kept * scores.softmax(-1), value).reshape(batch, length, size)
    output = context @ w[f"{name}.out_proj.weight"].T + w[f"{name}.out_proj.bias"]
    return kept * norm(output, w[f"{name}.post_layer_norm.weight"], w[f"{name}.post_layer_norm.bias"])


def feed_forward(w: dict[str, Tensor], name: str, x: Tensor, kept: float) -> Tensor:
    value, gate = (norm(x) @ w[f"{name}.mlp.1.weight"].T).chunk(2, dim=-1)
    return kept * norm(value * F.gelu(gate, approximate="tanh")) @ w[f"{name}.mlp.4.weight"].T


def transformed(w: dict[str, Tensor], name: str, x: Tensor, kept: float = 1.0) -> Tensor:
    """Return the transformed states that both heads pass to their output layer."""
    return norm(kept * F.gelu(norm(x) @ w[f"{name}.1.weight"].T + w[f"{name}.1.bias"]))


def plain_forward(
    w: dict[str, Tensor], ids: Tensor, visible: Tensor, config: LtgBertConfig
) -> tuple[list[Tensor], Tensor, Tensor]:
    """Return all states, the logits of the subwords, and the logits of the sentence pairs.

    The variants are those of docs/papers/elc-bert.md, "Layer weighting". Where dropout acts, the values are multiplied
    by the probability of keeping an element.
    """
    variant, kept = config.layer_weighting, 1 - config.hidden_dropout_prob
    table = norm(
        w["embedding.relative_embedding"],
        w["embedding.relative_layer_norm.weight"],
        w["embedding.relative_layer_norm.bias"],
    )
    states = [kept * norm(w["embedding.word_embedding.weight"][ids])]
    for number in range(config.num_hidden_layers):
        layer = f"transformer.layers.{number}"
        if variant == "none":
            before = states[-1]
        else:
            alphas = w[f"{layer}.prev_layer_weights"].softmax(0)
            before = sum(alpha * state for alpha, state in zip(alphas, states, strict=True))
        attended = attention(w, f"{layer}.attention", before, table, visible, config)
        if variant == "none":
            after = before + attended
            states.append(after + feed_forward(w, f"{layer}.mlp", after, kept))
            continue
        inner = attended if variant == "biased" else before + attended
        output = attended + feed_forward(w, f"{layer}.mlp", inner, kept)
        if variant == "normalized":
            output = norm(output)
        elif variant == "normalized_unit_vector":
            output = output / output.norm(dim=-1, keepdim=True)
        states.append(output)
    if variant == "weighted_output":
        alphas = w["transformer.prev_layer_weights"].softmax(0)
        states.append(sum(alpha * state for alpha, state in zip(alphas, states, strict=True)))
    hidden = kept * transformed(w, "classifier.nonlinearity", states[-1])
    logits = hidden @ w["embedding.word_embedding.weight"].T + w["classifier.nonlinearity.5.bias"]
    # In the head of sentence pairs, dropout precedes the second norm.
    first = transformed(w, "nsp_classifier.nonlinearity", states[-1][:, 0], kept)
    pairs = first @ w["nsp_classifier.nonlinearity.5.weight"].T + w["nsp_classifier.nonlinearity.5.bias"]
    return states, logits, pairs.squeeze(-1)


WEIGHTINGS = ("none", "biased", "zero", "normalized", "normalized_unit_vector", "weighted_output")
# Hidden size, heads, feed-forward, layers, buckets, positions, length; some sizes are odd, and some lengths exceed the
# table.
SIZES = [(20, 5, 33, 2, 4, 12, 7), (24, 2, 16, 4, 8, 20, 33), (16, 1, 40, 1, 32, 512, 70), (36, 6, 24, 3, 16, 128, 1)]


@pytest.mark.parametrize(("weighting", "sizes"), list(itertools.product(WEIGHTINGS, SIZES)))
@pytest.mark.parametrize("layout", ["bnc", "babylm"])
@pytest.mark.parametrize("index", ["query_minus_key", "key_minus_query"])
def test_states_logits_and_gradients_are_those_of_the_formulas(weighting, sizes, layout, index):
    compare(weighting, sizes, layout, index)


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("weighting", ["none", "weighted_output"])
def test_so_are_those_of_a_causal_model(weighting, sizes):
    compare(weighting, sizes, "babylm", "query_minus_key", causal=True)


def test_what_is_dropped_in_training_is_dropped_where_the_formulas_say_and_at_its_own_rate(monkeypatch):
    monkeypatch.setattr(Dropout, "forward", lambda dropout, values: values * (1 - dropout.probability))
    for weighting in ("none", "biased"):
        compare(weighting, SIZES[1], "babylm", "query_minus_key", hidden_dropout=0.3, attention_dropout=0.6)


def compare(weighting, sizes, layout, index, causal=False, hidden_dropout=0.0, attention_dropout=0.0):
    size, heads, inner, layers, buckets, positions, length = sizes
    config = LtgBertConfig(
        vocab_size=53,
        hidden_size=size,
        intermediate_size=inner,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        max_position_embeddings=positions,
        position_bucket_size=buckets,
        hidden_dropout_prob=hidden_dropout,
        attention_probs_dropout_prob=attention_dropout,
        layer_weighting=weighting,
        position_head_layout=layout,
        position_to_content_index=index,
        sentence_pair_head=True,
    )
    model = LanguageModel(config, causal=causal)
    initialise_(model, 5)
    model.double()
    generator = torch.Generator().manual_seed(length)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
    ids = torch.randint(0, 53, (3, length), generator=generator)
    mask = torch.arange(length) < torch.tensor([length, max(1, length // 2), max(1, length - 1)])[:, None]
    labels = torch.where((torch.rand(ids.shape, generator=generator) < 0.4) & mask, ids, -100)
    labels[0, 0] = 7

    published = {published_name(name, layers): parameter for name, parameter in model.named_parameters()}
    visible = mask[:, None, None, :] & torch.ones(length, length, dtype=torch.bool).tril(0 if causal else length)
    states, logits, pairs = plain_forward(published, ids, visible, config)
    together = torch.tensor([1, 0, 1])
    loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="sum")
    pair_loss = -torch.where(together == 1, pairs.sigmoid(), 1 - pairs.sigmoid()).log().sum()
    names, parameters = zip(*model.named_parameters(), strict=True)
    expected = torch.autograd.grad(loss + pair_loss, parameters)

    output = model(ids, mask, labels, together, causal=torch.full((3,), causal))
    judged = pair_term(output.pair_logits, together).loss_sum
    (output.loss_sum + judged).backward()
    torch.testing.assert_close(output.loss_sum, loss, atol=1e-9, rtol=1e-9)
    torch.testing.assert_close(judged, pair_loss, atol=1e-9, rtol=1e-9)
    for ours, theirs in zip(model.encoder(ids, mask), states, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-9, rtol=1e-9)
    torch.testing.assert_close(model.logits_at(model.encoder(ids, mask)[-1]), logits, atol=1e-9, rtol=1e-9)
    for name, parameter, gradient in zip(names, parameters, expected, strict=True):
        torch.testing.assert_close(
            parameter.grad, gradient, atol=1e-9, rtol=1e-7, msg=lambda text, n=name: f"{n}: {text}"
        )
