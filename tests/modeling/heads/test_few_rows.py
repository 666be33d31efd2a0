"""The last states at a few positions, of which the last layer computes no others, are those of the whole."""

import pytest
import torch

from hatchery.modeling.layer_weighting import LAYER_WEIGHTINGS

VARIANTS = [
    *(("ltg", {"layer_weighting": name}) for name in LAYER_WEIGHTINGS),
    ("ltg", {"normalisation": "post_norm"}),
    ("ltg", {"position_embedding": "absolute"}),
    ("ltg", {"num_hidden_layers": 1, "layer_weighting": "weighted_output"}),
    ("roberta", {}),
]


@pytest.mark.parametrize(("kind", "changes"), VARIANTS)
@pytest.mark.parametrize("mask", [None, "full", "padded"])
def test_a_few_rows_are_rows_of_the_whole(make_encoder, tokens, kind, changes, mask):
    ids, padded = tokens
    masks = {None: None, "full": torch.ones_like(padded), "padded": padded}
    encoder = make_encoder(kind, **changes).eval()
    # In no order and one of them twice, all of them tokens.
    rows = torch.tensor([17, 1, 26, 1])
    with torch.no_grad():
        whole = encoder(ids, masks[mask])[-1].flatten(0, 1)[rows]
        few = encoder.hidden_at(ids, masks[mask], rows, few=True)
    torch.testing.assert_close(few, whole, atol=1e-5, rtol=0)


def test_the_last_layer_feeds_forward_nothing_else(make_encoder, tokens):
    encoder, seen = make_encoder().eval(), []
    for layer in encoder.layers:
        layer.feed_forward.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0].shape[:-1].numel()))
    encoder.hidden_at(tokens[0], None, torch.tensor([3, 30]), few=True)
    assert seen == [36, 36, 2]
