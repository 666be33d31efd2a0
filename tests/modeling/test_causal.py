"""Causal models: the layers of masked models, no influence of later tokens, and texts extended step by step."""

import json
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import GPT2Config, GPT2Model

from hatchery.modeling.attention import TokenCache
from hatchery.modeling.language_model import LanguageModel
from hatchery.modeling.layer_weighting import LAYER_WEIGHTINGS
from hatchery.modeling.store import load_language_model, save_model

MakeModel = Callable[..., LanguageModel]
GPT2_LIKE = {
    "position_embedding": "absolute",
    "normalisation": "pre_norm",
    "block_norm_affine": True,
    "feed_forward_activation": "gelu",
    "feed_forward_bias": True,
    "layer_norm_eps": 1e-5,
}
MODELS: dict[str, dict[str, Any]] = {
    "relative positions": {},
    "post-norm": {"normalisation": "post_norm"},
    "layer weighting": {"layer_weighting": "weighted_output"},
    "as GPT-2": GPT2_LIKE,
    "roberta": {"family": "roberta"},
    "gpt_bert": {"family": "gpt_bert"},
    "modern": {"family": "modern"},
}


def random_ids(rows: int, length: int, seed: int = 3) -> Tensor:
    return torch.randint(6, 61, (rows, length), generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("changes", MODELS.values(), ids=MODELS.keys())
def test_what_follows_changes_nothing_and_what_precedes_does(make_model: MakeModel, changes: dict[str, Any]) -> None:
    model, ids = make_model(causal=True, disturbed=0.1, **changes).double(), random_ids(2, 12)
    before = model.encoder(ids)[-1]
    altered = ids.clone()
    altered[:, 7] = 5
    after = model.encoder(altered)[-1]
    assert torch.equal(after[:, :7], before[:, :7])
    assert ((after[:, 7:] - before[:, 7:]).abs().amax(dim=2) > 1e-6).all()


@pytest.mark.parametrize("changes", MODELS.values(), ids=MODELS.keys())
def test_padding_and_the_positions_that_are_asked_for_do_not_matter(
    make_model: MakeModel, changes: dict[str, Any]
) -> None:
    model, ids = make_model(causal=True, disturbed=0.1, **changes).double().eval(), random_ids(3, 12)
    mask = torch.arange(12) < torch.tensor([12, 9, 5])[:, None]
    padded = ids.where(mask, 1)
    whole = [model.encoder(ids[row : row + 1, :length])[-1][0] for row, length in enumerate((12, 9, 5))]
    rows = torch.tensor([3, 11, 12 + 8, 24, 24 + 4])
    expected = torch.stack([whole[row // 12][row % 12] for row in rows.tolist()])
    for few in (False, True):
        torch.testing.assert_close(model.encoder.hidden_at(padded, mask, rows, few=few), expected)
        for number, row in enumerate(rows.tolist()):
            alone = ids[row // 12, : row % 12 + 1][None]
            found = model.encoder.hidden_at(alone, None, torch.tensor([row % 12]), few=few)
            torch.testing.assert_close(found[0], expected[number])


@pytest.mark.parametrize("name", ["relative positions", "roberta"])
def test_packed_documents_that_are_kept_apart_are_read_as_if_they_were_alone(make_model: MakeModel, name: str) -> None:
    model, ids = make_model(causal=True, disturbed=0.1, **MODELS[name]).double(), random_ids(1, 12)
    mask = torch.zeros(1, 12, 12, dtype=torch.bool)
    mask[:, :5, :5] = mask[:, 5:, 5:] = True
    together = model.encoder(ids, mask)[-1]
    torch.testing.assert_close(together[:, :5], model.encoder(ids[:, :5])[-1])
    torch.testing.assert_close(together[:, 5:], model.encoder(ids[:, 5:])[-1])
    assert not torch.allclose(model.encoder(ids)[-1][:, 5:], together[:, 5:])


def blocks_in_gpt2(layer: nn.Module, block: nn.Module) -> dict[str, tuple[Tensor, Tensor]]:
    """Return pairs of parameters: GPT-2's in our layout, and ours."""
    size = block.attn.c_proj.weight.shape[0]
    into, offset = block.attn.c_attn.weight, block.attn.c_attn.bias
    pairs: dict[str, tuple[Tensor, Tensor]] = {
        "query_key.weight": (into[:, : 2 * size].T, layer.attention.query_key_projection.weight),
        "query_key.bias": (offset[: 2 * size], layer.attention.query_key_projection.bias),
        "value.weight": (into[:, 2 * size :].T, layer.attention.value_projection.weight),
        "value.bias": (offset[2 * size :], layer.attention.value_projection.bias),
    }
    modules = {
        "output": (block.attn.c_proj, layer.attention.output_projection),
        "fc": (block.mlp.c_fc, layer.feed_forward.input_projection),
        "proj": (block.mlp.c_proj, layer.feed_forward.output_projection),
        "ln_1": (block.ln_1, layer.attention.pre_layer_norm),
        "ln_2": (block.ln_2, layer.feed_forward.pre_layer_norm),
    }
    for name, (theirs, ours) in modules.items():
        # GPT-2 stores the weights of linear layers transposed.
        weight = theirs.weight
        pairs[f"{name}.weight"] = (weight.T if weight.dim() == 2 else weight, ours.weight)
        pairs[f"{name}.bias"] = (theirs.bias, ours.bias)
    return pairs


def test_the_layers_are_those_of_gpt2_with_their_gradients(make_model: MakeModel) -> None:
    ours = make_model(causal=True, disturbed=0.1, **GPT2_LIKE)
    theirs = GPT2Model(
        GPT2Config(
            vocab_size=61,
            n_positions=64,
            n_embd=24,
            n_inner=40,
            n_layer=3,
            n_head=3,
            resid_pdrop=0.0,
            embd_pdrop=0.0,
            attn_pdrop=0.0,
            layer_norm_epsilon=1e-5,
        )
    )
    layers = [blocks_in_gpt2(*pair) for pair in zip(ours.encoder.layers, theirs.h, strict=True)]
    with torch.no_grad():
        theirs.wpe.weight.zero_()
        for layer in layers:
            for their, our in layer.values():
                their.copy_(our)
    ids = random_ids(3, 20)
    mask = torch.arange(20) < torch.tensor([20, 13, 6])[:, None]
    states = ours.encoder(ids, mask)
    embedded = states[0].detach().clone().requires_grad_()
    output = theirs(inputs_embeds=embedded, attention_mask=mask.long(), output_hidden_states=True)
    for our, their in zip(states[1:-1], output.hidden_states[1:-1], strict=True):
        torch.testing.assert_close(our[mask], their[mask], atol=1e-5, rtol=0)
    final = F.layer_norm(states[-1], (24,), eps=1e-5)
    torch.testing.assert_close(final[mask], output.last_hidden_state[mask], atol=1e-5, rtol=0)

    weights = torch.randn(final.shape, generator=torch.Generator().manual_seed(1)) * mask[:, :, None]
    states[0].retain_grad()
    (final * weights).sum().backward()
    (output.last_hidden_state * weights).sum().backward()
    torch.testing.assert_close(states[0].grad, embedded.grad, atol=1e-5, rtol=0)
    for number, (layer, block) in enumerate(zip(ours.encoder.layers, theirs.h, strict=True)):
        gradients = blocks_in_gpt2(Gradients(layer), Gradients(block))
        for name, (their, our) in gradients.items():
            torch.testing.assert_close(
                our, their, atol=1e-5, rtol=1e-5, msg=lambda t, n=f"{number}.{name}": f"{n}: {t}"
            )


class Gradients:
    """A view of a module that returns gradients in place of its parameters."""

    def __init__(self, module: nn.Module) -> None:
        self.module = module

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.module, name)
        return Gradients(found) if isinstance(found, nn.Module) else found.grad


def test_a_causal_model_is_stored_as_such_and_a_masked_one_as_ever(make_model: MakeModel, tmp_path: Any) -> None:
    stored = []
    for causal in (True, False):
        save_model(tmp_path, make_model(causal=causal))
        assert load_language_model(tmp_path).causal == causal
        stored.append(json.loads((tmp_path / "config.json").read_text()))
    assert stored[0].pop("causal") is True and stored[0] == stored[1]


@pytest.mark.parametrize("changes", MODELS.values(), ids=MODELS.keys())
@pytest.mark.parametrize("padded", [False, True])
def test_one_batch_can_hold_causal_and_other_sequences(
    make_model: MakeModel, changes: dict[str, Any], padded: bool
) -> None:
    model, ids = make_model(disturbed=0.1, **changes).double(), random_ids(4, 12)
    mask = torch.arange(12) < torch.tensor([12, 9, 12, 9])[:, None] if padded else None
    kinds = torch.tensor([True, True, False, False])
    both = [model.encoder(ids, mask, causal=kind)[-1] for kind in (True, False)]
    mixed = model.encoder(ids, mask, causal=kinds)[-1]
    torch.testing.assert_close(mixed[:2], both[0][:2])
    torch.testing.assert_close(mixed[2:], both[1][2:])
    assert not torch.allclose(both[0], both[1])


@pytest.mark.parametrize("trained_as", [False, True])
def test_batches_say_what_a_token_may_attend_to_whatever_the_model_was_trained_as(
    make_model: MakeModel, trained_as: bool
) -> None:
    models = [make_model(causal=causal, disturbed=0.1) for causal in (trained_as, False)]
    ids = random_ids(2, 12)
    batch = {"input_ids": ids, "labels": ids.roll(-1, dims=1)}
    for kinds in ({}, {"causal": torch.tensor([True, True])}, {"causal": torch.tensor([True, False])}):
        ours, expected = (model(**batch, attention_mask=None, **kinds).loss_sum for model in models)
        hidden, labels = models[0].labelled_hidden({**batch, **kinds})
        assert torch.equal(ours, expected)
        torch.testing.assert_close(F.cross_entropy(models[0].logits_at(hidden), labels, reduction="sum"), ours)


LTG = {"position_bucket_size": 4, "max_position_embeddings": 12}
KINDS: dict[str, dict[str, Any]] = {
    **{f"ltg, {weighting}": {**LTG, "layer_weighting": weighting} for weighting in LAYER_WEIGHTINGS},
    "ltg, bnc layout": {**LTG, "position_head_layout": "bnc"},
    "ltg, exchanged": {**LTG, "position_to_content_index": "key_minus_query"},
    "ltg, absolute post-norm": {"position_embedding": "absolute", "normalisation": "post_norm"},
    "gpt_bert": {**LTG, "family": "gpt_bert"},
    "modern": {"family": "modern"},
    "modern with switches": {"family": "modern", "value_residual": True, "head_gate": True, "unet_skips": True},
    "roberta": {"family": "roberta"},
    "roberta, projected": {"family": "roberta", "embedding_size": 8, "tie_word_embeddings": False},
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("pieces", [[1] * 15, [6, 1, 8]])
def test_a_text_that_grows_has_the_states_of_the_whole_text(
    make_model: MakeModel, kind: str, pieces: list[int]
) -> None:
    model = make_model(causal=True, disturbed=0.5, **KINDS[kind]).double().eval()
    # 15 tokens exceed the largest distance that relative positions distinguish.
    ids = random_ids(2, sum(pieces))
    mask = torch.ones_like(ids, dtype=torch.bool)
    # The second text is padded on the left, as in a batch of prompts of different lengths.
    mask[1, :2] = False
    ids[1, :2] = getattr(model.config, "pad_token_id", 3)
    with torch.no_grad():
        whole = model.encoder(ids, mask)
        caches, before = [TokenCache() for _ in model.encoder.layers], 0
        for piece in pieces:
            until = before + piece
            states = model.encoder.states_behind(ids[:, :until], mask[:, :until], caches, before)
            for found, expected in zip(states, whole, strict=True):
                tokens = mask[:, before:until, None]
                torch.testing.assert_close(found * tokens, expected[:, before:until] * tokens)
            before = until


@pytest.mark.parametrize("first", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("kind", KINDS)
def test_in_bf16_on_the_processor_tokens_are_kept_too_and_follow_those_of_full_precision(
    make_model: MakeModel, kind: str, first: torch.dtype
) -> None:
    model = make_model(causal=True, disturbed=0.3, **KINDS[kind]).eval()
    ids, caches = random_ids(2, 12), [TokenCache() for _ in model.encoder.layers]
    with torch.no_grad():
        expected = model.encoder(ids)[-1][:, 9:]
        with torch.autocast("cpu", first, enabled=first == torch.bfloat16):
            model.encoder.states_behind(ids[:, :9], None, caches, 0)
        with torch.autocast("cpu", torch.bfloat16):
            found = model.encoder.states_behind(ids, None, caches, 9)[-1]
    assert [cache.kept is not None and cache.kept[0].shape[2] for cache in caches] == [12] * len(caches)
    assert float((found - expected).norm() / expected.norm()) < 0.03
