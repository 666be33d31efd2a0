"""Keys and values that are kept give the states that the whole text gives, in every kind of causal model."""

from typing import Any

import pytest
import torch

from hatchery.modeling.attention import TokenCache
from hatchery.modeling.families import model_config
from hatchery.modeling.language_model import LanguageModel
from hatchery.modeling.layer_weighting import LAYER_WEIGHTINGS

SIZES: dict[str, Any] = {
    "vocab_size": 30,
    "hidden_size": 12,
    "intermediate_size": 16,
    "num_hidden_layers": 3,
    "num_attention_heads": 3,
    "max_position_embeddings": 32,
}
LTG = {**SIZES, "position_bucket_size": 4, "max_position_embeddings": 12}
KINDS: dict[str, dict[str, Any]] = {
    **{f"ltg, {weighting}": {**LTG, "layer_weighting": weighting} for weighting in LAYER_WEIGHTINGS},
    "ltg, bnc layout": {**LTG, "position_head_layout": "bnc"},
    "ltg, exchanged": {**LTG, "position_to_content_index": "key_minus_query"},
    "ltg, absolute post-norm": {**SIZES, "position_embedding": "absolute", "normalisation": "post_norm"},
    "roberta": {**SIZES, "family": "roberta"},
    "roberta, projected": {**SIZES, "family": "roberta", "embedding_size": 8, "tie_word_embeddings": False},
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("pieces", [[1] * 15, [6, 1, 8]])
def test_a_text_that_grows_has_the_states_of_the_whole_text(kind: str, pieces: list[int]) -> None:
    model = LanguageModel(model_config(KINDS[kind]), causal=True).eval()
    generator = torch.Generator().manual_seed(1)
    for parameter in model.parameters():
        parameter.data = 0.5 * torch.randn(parameter.shape, generator=generator)
    # 15 tokens: farther apart than relative positions tell.
    ids = torch.randint(5, 30, (2, sum(pieces)), generator=generator)
    mask = torch.ones_like(ids, dtype=torch.bool)
    # Padding on the left, as where several beginnings are gone on with together.
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
                torch.testing.assert_close(found * tokens, expected[:, before:until] * tokens, atol=1e-4, rtol=1e-4)
            before = until


@pytest.mark.parametrize("first", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("kind", KINDS)
def test_in_bf16_on_the_processor_tokens_are_kept_too_and_follow_those_of_full_precision(
    kind: str, first: torch.dtype
) -> None:
    torch.manual_seed(2)
    model = LanguageModel(model_config(KINDS[kind]), causal=True).eval()
    for parameter in model.parameters():
        parameter.data = 0.3 * torch.randn(parameter.shape)
    ids, caches = torch.randint(5, 30, (2, 12)), [TokenCache() for _ in model.encoder.layers]
    with torch.no_grad():
        expected = model.encoder(ids)[-1][:, 9:]
        with torch.autocast("cpu", first, enabled=first == torch.bfloat16):
            model.encoder.states_behind(ids[:, :9], None, caches, 0)
        with torch.autocast("cpu", torch.bfloat16):
            found = model.encoder.states_behind(ids, None, caches, 9)[-1]
    assert [cache.kept is not None and cache.kept[0].shape[2] for cache in caches] == [12] * len(caches)
    assert float((found - expected).norm() / expected.norm()) < 0.03
