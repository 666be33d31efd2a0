"""GPT-BERT against its formulas, written out for one sequence and one head at a time in double precision.

The golden models have one width, one number of heads and one length each; these models have others: an odd number of
heads, odd buckets, sequences longer than the table, padding on either side and a batch of one.
"""

import math
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor

from hatchery.modeling.language_model import LanguageModel
from hatchery.modeling.norm_and_dropout import Dropout

ODD = {"hidden_size": 20, "num_attention_heads": 5, "intermediate_size": 28, "num_hidden_layers": 2, "vocab_size": 40}
KINDS = {
    "whole": {},
    "without gate": {"attention_gate": False},
    "without mixing": {"layer_weighting": "none"},
    "one head, one layer": {"num_attention_heads": 1, "num_hidden_layers": 1},
    "odd buckets": {"position_bucket_size": 7, "max_position_embeddings": 19},
    "another epsilon": {"layer_norm_eps": 0.5},
}


def norm(x: Tensor, eps: float) -> Tensor:
    return (x - x.mean(-1, keepdim=True)) / (x.var(-1, correction=0, keepdim=True) + eps).sqrt()


def gelu(x: Tensor) -> Tensor:
    return x * (1 + torch.erf(x / math.sqrt(2))) / 2


def gelu_by_tanh(x: Tensor) -> Tensor:
    return x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2


def bucket(distance: int, size: int, most: int) -> int:
    """Return the bucket of a signed distance, in a table for distances below `most`."""
    middle, far = size // 2, min(abs(distance), most - 1)
    if far > middle:
        far = middle + math.ceil(math.log(far / middle) / math.log((most - 1) / middle) * (middle - 1))
    return int(math.copysign(far, distance))


def attention(w: dict[str, Tensor], x: Tensor, table: Tensor, sees: Tensor, config: Any, factor: float) -> Tensor:
    """Return the attention block's output [T, D] of `x` [T, D]; `sees`, bool [T, T], is True
    where a query (row) may attend to a key (column).

    Each dropout is replaced by a multiplication with `factor`.
    """
    eps, heads = config.layer_norm_eps, config.num_attention_heads
    size, width = x.shape[1], x.shape[1] // heads
    x = norm(x, eps)

    def query_key(of: Tensor) -> tuple[Tensor, Tensor]:
        both = of @ w["query_key_projection.weight"].T + w["query_key_projection.bias"]
        return both[:, :size], both[:, size:]

    limits = config.position_bucket_size, config.max_position_embeddings
    distances = [[bucket(i - j, *limits) for j in range(len(x))] for i in range(len(x))]
    (q, k), (q_pos, k_pos) = query_key(x), query_key(table * factor)
    value = x @ w["value_projection.weight"].T + w["value_projection.bias"]
    rows = torch.tensor([[config.position_bucket_size - 1 + far for far in buckets] for buckets in distances])
    context = torch.zeros_like(x)
    for head in range(heads):
        own = slice(head * width, (head + 1) * width)
        for i in range(len(x)):
            scores = k[:, own] @ q[i, own] + k_pos[rows[i], own] @ q[i, own] + (k * q_pos[rows[i]])[:, own].sum(dim=1)
            if (keys := sees[i].nonzero().flatten()).numel():
                shares = torch.softmax(scores[keys] / math.sqrt(3 * width), dim=0)
                context[i, own] = (shares * factor) @ value[keys, own]
    if config.attention_gate:
        context = context * gelu(value[:, size:])
    return factor * (norm(context, eps) @ w["output_projection.weight"].T + w["output_projection.bias"])


def written_out(
    model: LanguageModel, ids: Tensor, sees: Tensor, factor: float = 1.0, factor_in_attention: float = 1.0
) -> Tensor:
    """Return the logits [T, V] of one sequence, int64 [T]; a multiplication with a factor replaces each dropout."""
    config, eps = model.config, model.config.layer_norm_eps
    w = {name: value.detach() for name, value in model.named_parameters()}
    table = norm(w["encoder.embedding.relative_embedding"], eps)
    table = table * w["encoder.embedding.relative_layer_norm.weight"] + w["encoder.embedding.relative_layer_norm.bias"]
    words = w["encoder.embedding.word_embedding.weight"]
    stream = norm(words[ids], eps) * factor
    sums = [stream]
    for layer, block in product(range(config.num_hidden_layers), ("attention", "feed_forward")):
        start = f"encoder.layers.{layer}.{block}."
        own = {name.removeprefix(start): value for name, value in w.items() if name.startswith(start)}
        if block == "attention":
            output = attention(own, stream, table, sees, config, factor_in_attention)
        else:
            inner = norm(stream, eps) @ own["input_projection.weight"].T
            value, gate = inner.chunk(2, dim=-1)
            output = factor * (norm(value * gelu_by_tanh(gate), eps) @ own["output_projection.weight"].T)
        stream = stream + output
        sums.append(stream)
        if config.layer_weighting == "unrestricted":
            weights = w[f"encoder.mixture.layer_weights.{len(sums) - 2}"]
            stream = sum(weight * one for weight, one in zip(weights, sums, strict=True))
    hidden = gelu(norm(stream, eps) @ w["head.linear.weight"].T + w["head.linear.bias"])
    return (norm(hidden, eps) * factor) @ words.T + w["head.vocabulary_bias"]


@pytest.fixture(params=KINDS.values(), ids=KINDS.keys())
def model(request: pytest.FixtureRequest, make_model: Any) -> LanguageModel:
    return make_model(**{"family": "gpt_bert", "disturbed": 0.3, **ODD, **request.param}).double().eval()


@pytest.mark.parametrize("causal", [False, True], ids=["both ways", "causal"])
@torch.no_grad()
def test_logits_are_those_of_the_formulas_whatever_pads_a_sequence(model: LanguageModel, causal: bool) -> None:
    generator = torch.Generator().manual_seed(5)
    # 23 tokens exceed the table of odd buckets.
    ids = torch.randint(5, 40, (3, 23), generator=generator)
    tokens = torch.ones(3, 23, dtype=torch.bool)
    tokens[1, 14:] = False
    tokens[2, :6] = False
    found = model.logits_at(model.encoder(ids, tokens, causal=causal)[-1])
    for row, kept in enumerate(tokens):
        own = ids[row, kept]
        sees = torch.ones(len(own), len(own), dtype=torch.bool)
        expected = written_out(model, own, sees.tril() if causal else sees)
        torch.testing.assert_close(found[row, kept], expected, atol=1e-9, rtol=1e-9)
        alone = model.logits_at(model.encoder(own[None], causal=causal)[-1])[0]
        torch.testing.assert_close(alone, expected, atol=1e-9, rtol=1e-9)
        last = torch.tensor([len(own) - 1])
        at_one = model.encoder.hidden_at(own[None], None, last, causal=causal, few=True)
        torch.testing.assert_close(model.logits_at(at_one), expected[-1:], atol=1e-9, rtol=1e-9)


@torch.no_grad()
def test_logits_of_packed_blocks_and_of_padding_are_those_of_the_formulas(model: LanguageModel) -> None:
    ids = torch.randint(5, 40, (1, 13), generator=torch.Generator().manual_seed(6))
    block = torch.tensor([0] * 4 + [1] * 8 + [2])
    sees = block[:, None] == block
    sees[12, 12] = False
    for kind in (sees, sees.tril()):
        found = model.logits_at(model.encoder(ids, kind[None])[-1])[0]
        torch.testing.assert_close(found, written_out(model, ids[0], kind), atol=1e-9, rtol=1e-9)


@torch.no_grad()
def test_what_is_dropped_in_training_is_dropped_where_the_formulas_say_and_at_its_own_rate(
    make_model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Dropout, "forward", lambda dropout, values: values * dropout.probability)
    rates = {"hidden_dropout_prob": 0.7, "attention_probs_dropout_prob": 0.4}
    model = make_model(**{"family": "gpt_bert", "disturbed": 0.3, **ODD, **rates}).double().train()
    ids = torch.randint(5, 40, (1, 9), generator=torch.Generator().manual_seed(7))
    found = model.logits_at(model.encoder(ids)[-1])[0]
    expected = written_out(model, ids[0], torch.ones(9, 9, dtype=torch.bool), *rates.values())
    torch.testing.assert_close(found, expected, atol=1e-9, rtol=1e-9)
