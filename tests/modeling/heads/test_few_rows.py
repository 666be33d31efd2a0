"""The last states at a few positions, of which the last layer computes no others, are those of the whole."""

import pytest
import torch

from hatchery.modeling.layer_weighting import LAYER_WEIGHTINGS

VARIANTS = [
    *(("ltg", {"layer_weighting": name}) for name in LAYER_WEIGHTINGS),
    ("ltg", {"normalisation": "post_norm"}),
    ("ltg", {"position_embedding": "absolute"}),
    ("ltg", {"position_head_layout": "bnc"}),
    ("ltg", {"position_to_content_index": "key_minus_query"}),
    ("ltg", {"num_attention_heads": 1, "position_bucket_size": 2}),
    ("ltg", {"num_hidden_layers": 1, "layer_weighting": "weighted_output"}),
    ("roberta", {}),
]


@pytest.mark.parametrize(("kind", "changes"), VARIANTS)
@pytest.mark.parametrize("mask", [None, "full", "padded", "by query"])
def test_a_few_rows_are_rows_of_the_whole(make_encoder, tokens, kind, changes, mask):
    ids, padded = tokens
    masks = {None: None, "full": torch.ones_like(padded), "padded": padded}
    causal = torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool).tril()
    masks["by query"] = (padded[:, None] & causal) | torch.eye(ids.shape[1], dtype=torch.bool)
    encoder = make_encoder(kind, **changes).eval()
    with torch.no_grad():  # a fresh model has no biases and attends to all alike, which would hide a wrong score
        for parameter in encoder.parameters():
            parameter.add_(0.2 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(0)))
    # In no order and one of them twice, all of them tokens.
    rows = torch.tensor([17, 1, 26, 1])
    with torch.no_grad():
        whole = encoder(ids, masks[mask])[-1].flatten(0, 1)[rows]
        few = encoder.hidden_at(ids, masks[mask], rows, few=True)
    torch.testing.assert_close(few, whole, atol=1e-5, rtol=0)


def test_training_computes_every_row_so_that_dropout_is_where_it_always_is(make_encoder, tokens):
    encoder = make_encoder(hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1).train()
    rows, found = torch.tensor([3, 30]), []
    for few in (True, False):
        torch.manual_seed(0)
        found.append(encoder.hidden_at(tokens[0], None, rows, few=few))
    assert torch.equal(*found)


def test_the_last_layer_feeds_forward_nothing_else(make_encoder, tokens):
    encoder, seen = make_encoder().eval(), []
    for layer in encoder.layers:
        layer.feed_forward.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0].shape[:-1].numel()))
    encoder.hidden_at(tokens[0], None, torch.tensor([3, 30]), few=True)
    assert seen == [36, 36, 2]
