"""Encoder behaviour that the papers do not measure: padding, precision, dropout, long inputs, compilation.

Also the readers of the encoder: the last states at selected positions, and the classifier of sentence pairs.
"""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from hatchery.errors import ModelError
from hatchery.modeling.attention import TokenCache
from hatchery.modeling.layer_weighting import LAYER_WEIGHTINGS
from hatchery.modeling.norm_and_dropout import Dropout
from hatchery.modeling.position_buckets import bucket_of_distance
from hatchery.modeling.relative_positions import RelativePositions
from hatchery.training.decay_groups import is_decayed, parameter_groups
from hatchery.training.objectives.masked import pair_term
from hatchery.training.optimizer_settings import OptimizerSettings


@pytest.mark.parametrize(("bucket_size", "max_positions"), [(32, 512), (8, 64)])
def test_position_rows_are_the_published_table(golden_directory, bucket_size, max_positions):
    published = np.load(golden_directory / f"buckets/bucket{bucket_size}_max{max_positions}.npz")["position_indices"]
    rows = RelativePositions(bucket_size, max_positions).rows(max_positions)
    assert np.array_equal(rows.numpy(), published)


def test_longer_inputs_extend_the_table_as_the_babylm_code_does(golden_directory):
    published = np.load(golden_directory / "buckets/bucket32_max512_extended_to640.npz")["babylm"]
    assert np.array_equal(RelativePositions(32, 512).rows(640)[:, 0].numpy(), published)


@pytest.mark.parametrize(("bucket_size", "max_positions"), [(32, 713), (8, 90), (8, 384), (2, 9), (3, 7), (9, 4)])
def test_no_distance_points_outside_the_table(bucket_size, max_positions):
    """At some sizes the logarithm rounds the largest distance up, and the published code fails."""
    buckets = [bucket_of_distance(d, bucket_size, max_positions) for d in range(2 * max_positions)]
    assert buckets == sorted(buckets)
    assert buckets[0] >= 0 and buckets[-1] <= bucket_size - 1
    rows = RelativePositions(bucket_size, max_positions).rows(2 * max_positions)
    assert rows.min() >= 0 and rows.max() <= 2 * bucket_size - 2


@pytest.mark.parametrize("changes", [{}, {"layer_weighting": "zero"}, {"position_embedding": "absolute"}])
@pytest.mark.parametrize("side", ["right", "left"])
def test_padding_changes_nothing_at_tokens(make_model, batch, changes, side):
    model = make_model(**changes)
    ids, mask = batch[:2] if side == "right" else (tensor.flip(1) for tensor in batch[:2])
    padded = model.encoder(ids, mask)[-1]
    for row, tokens in enumerate(mask):
        alone = model.encoder(ids[row : row + 1, tokens])[-1]
        torch.testing.assert_close(padded[row, tokens], alone[0], atol=3e-6, rtol=0)
    scrambled = model.encoder(ids.where(mask, 17), mask)[-1]
    assert torch.equal(scrambled[mask], padded[mask])


def test_padding_on_the_right_learns_the_bits_that_all_tokens_would(make_model):
    """With a mask, positions are looked up; without a mask, they are added. The sum over the sequences is bitwise
    equal."""
    embedding = make_model(position_embedding="absolute").encoder.embedding
    ids, mask = torch.full((64, 40), 7), torch.arange(40) < torch.arange(3, 67)[:, None] % 40 + 1
    weights = torch.randn(64, 40, 24)
    table = embedding.position_embedding.weight
    whole, padded = (
        torch.autograd.grad((embedding(ids, given)[0] * weights).sum(), table)[0] for given in (None, mask)
    )
    assert torch.equal(padded, whole)


def test_a_full_mask_is_the_same_as_none(make_model, batch):
    model, ids = make_model(), batch[0]
    assert torch.equal(model.encoder(ids, torch.ones_like(ids, dtype=torch.bool))[-1], model.encoder(ids)[-1])


def test_a_row_without_tokens_stays_finite(make_model, batch):
    model = make_model()
    ids, mask, labels = batch
    mask = mask.clone()
    mask[2] = False
    model(ids, mask, labels).loss_sum.backward()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())


def test_loss_is_the_sum_over_labelled_positions(make_model, batch):
    model = make_model()
    ids, mask, labels = batch
    result = model(ids, mask, labels)
    logits = model.logits_at(model.encoder(ids, mask)[-1])
    labelled = labels != -100
    expected = torch.nn.functional.cross_entropy(logits[labelled], labels[labelled], reduction="sum")
    torch.testing.assert_close(result.loss_sum, expected)
    assert int(result.n_labelled) == int(labelled.sum())
    assert int(result.n_correct) == int((logits.argmax(-1) == labels)[labelled].sum())


def test_a_batch_without_labels_has_loss_and_gradient_zero(make_model, batch):
    model = make_model()
    ids, mask, labels = batch
    result = model(ids, mask, torch.full_like(labels, -100))
    result.loss_sum.backward()
    assert (float(result.loss_sum.detach()), int(result.n_labelled), int(result.n_correct)) == (0.0, 0, 0)
    assert all(parameter.grad is None or not parameter.grad.any() for parameter in model.parameters())


@pytest.mark.parametrize("changes", [{"layer_weighting": "biased"}, {"family": "gpt_bert"}], ids=["elc", "gpt_bert"])
def test_bf16_autocast_keeps_norms_scores_and_loss_in_fp32(make_model, batch, changes):
    model = make_model(**changes)
    exact = model(*batch)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        states = model.encoder(*batch[:2])
        result = model(*batch)
    assert result.loss_sum.dtype == torch.float32
    assert states[0].dtype == states[-1].dtype == torch.float32
    result.loss_sum.backward()
    assert all(p.grad is None or p.grad.dtype == torch.float32 for p in model.parameters())
    assert float(result.loss_sum.detach()) == pytest.approx(float(exact.loss_sum.detach()), rel=0.02)


@pytest.mark.parametrize("probability", [0.1, 0.5])
def test_dropout_keeps_the_mean_and_passes_gradients_where_it_keeps_values(probability):
    torch.manual_seed(3)
    dropout = Dropout(probability)
    values = torch.ones(1001, 301, requires_grad=True)
    dropped = dropout(values)
    dropped.sum().backward()
    dropped = dropped.detach()
    assert torch.equal(values.grad, dropped)
    kept = dropped != 0
    assert float(kept.float().mean()) == pytest.approx(1 - probability, abs=5 * (0.25 / values.numel()) ** 0.5)
    assert float(dropped[kept].unique()) == pytest.approx(1 / (1 - probability), rel=1e-4)
    # Two neighbouring elements share one 64-bit draw, but must still be independent.
    pairs = (~kept[:, 0:300:4] & ~kept[:, 1:300:4]).float().mean()
    assert float(pairs) == pytest.approx(probability**2, abs=0.01)


def test_dropout_follows_torchs_seed_and_is_off_in_evaluation(make_model, batch):
    model = make_model(hidden_dropout_prob=0.2, attention_probs_dropout_prob=0.2)

    def loss(seed):
        torch.manual_seed(seed)
        return float(model(*batch).loss_sum.detach())

    assert loss(1) == loss(1) != loss(2)
    model.eval()
    assert loss(1) == loss(2)


def test_set_dropout_reaches_every_dropout(make_model, batch):
    model = make_model(hidden_dropout_prob=0.2, attention_probs_dropout_prob=0.3)
    model.encoder.set_dropout(0.0)
    assert torch.equal(model.encoder(*batch[:2])[-1], model.encoder(*batch[:2])[-1])
    with pytest.raises(ModelError, match="dropout"):
        model.encoder.set_dropout(1.0)


def test_the_traced_graph_computes_the_same(make_model, batch):
    """torch.compile captures the whole encoder in one graph; the eager backend needs no compiler on the machine."""
    model = make_model(layer_weighting="weighted_output")
    compiled = torch.compile(model.encoder, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(*batch[:2])[-1], model.encoder(*batch[:2])[-1], atol=1e-6, rtol=0)


VARIANTS = [
    *(("ltg", {"layer_weighting": name}) for name in LAYER_WEIGHTINGS),
    ("ltg", {"normalisation": "post_norm"}),
    ("ltg", {"position_embedding": "absolute"}),
    ("ltg", {"position_head_layout": "bnc"}),
    ("ltg", {"position_to_content_index": "key_minus_query"}),
    ("ltg", {"num_attention_heads": 1, "position_bucket_size": 2}),
    ("ltg", {"num_hidden_layers": 1, "layer_weighting": "weighted_output"}),
    ("gpt_bert", {}),
    ("gpt_bert", {"attention_gate": False, "layer_weighting": "none"}),
    ("modern", {}),
    ("modern", {"value_residual": False, "unet_skips": False}),
    ("roberta", {}),
    ("roberta", {"layer_weighting": "unrestricted"}),
]


@pytest.mark.parametrize(("kind", "changes"), VARIANTS)
@pytest.mark.parametrize("mask", [None, "full", "padded", "by query"])
def test_a_few_rows_are_rows_of_the_whole(make_encoder, tokens, kind, changes, mask):
    ids, padded = tokens
    masks = {None: None, "full": torch.ones_like(padded), "padded": padded}
    causal = torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool).tril()
    masks["by query"] = (padded[:, None] & causal) | torch.eye(ids.shape[1], dtype=torch.bool)
    encoder = make_encoder(kind, **changes).eval()
    with torch.no_grad():  # a fresh model has zero biases and uniform attention, which could hide a wrong score
        for parameter in encoder.parameters():
            parameter.add_(0.2 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(0)))
    # Rows of tokens, not sorted, one of them twice.
    rows = torch.tensor([17, 1, 26, 1])
    with torch.no_grad():
        whole = encoder(ids, masks[mask])[-1].flatten(0, 1)[rows]
        few = encoder.hidden_at(ids, masks[mask], rows, few=True)
    torch.testing.assert_close(few, whole, atol=1e-5, rtol=0)


@pytest.mark.parametrize("kind", ["ltg", "elc", "gpt_bert", "roberta", "modern"])
def test_each_layer_gives_probabilities_that_are_shares_of_the_tokens_in_sight(make_encoder, tokens, kind):
    encoder, (ids, mask) = make_encoder(kind).eval(), tokens
    causal, kept = torch.tensor([True, False, False]), []
    states = encoder(ids, mask, causal=causal, probabilities=kept)
    torch.testing.assert_close(states[-1][mask], encoder(ids, mask, causal=causal)[-1][mask])
    past = torch.ones(12, 12, dtype=torch.bool).tril()
    hidden = ~(mask[:, None, None, :] & (past | ~causal[:, None, None, None])).expand(3, 3, 12, 12)
    assert [probabilities.shape for probabilities in kept] == [(3, 3, 12, 12)] * 3
    for probabilities in kept:
        assert not probabilities[hidden].any() and probabilities[~hidden].all()
        torch.testing.assert_close(probabilities.sum(dim=-1), torch.ones(3, 3, 12))
    # Tokens that follow a text have the probabilities that they have in the whole text.
    caches, following, whole = [TokenCache() for _ in encoder.layers], [], []
    encoder.states_behind(ids[:, :5], None, caches, 0)
    encoder.states_behind(ids, None, caches, 5, following)
    encoder(ids, causal=True, probabilities=whole)
    for part, probabilities in zip(following, whole, strict=True):
        torch.testing.assert_close(part, probabilities[:, :, 5:])


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


def test_the_loss_is_the_cross_entropy_of_the_first_tokens_logit(make_model, batch):
    model = make_model(sentence_pair_head=True)
    ids, mask, labels = batch
    pair_labels = torch.tensor([1, 0, 1])
    output = model(ids, mask, labels, pair_labels)
    logits = model.pair_head(model.encoder(ids, mask)[-1][:, 0])
    expected = F.binary_cross_entropy(torch.sigmoid(logits), pair_labels.float(), reduction="sum")
    term = pair_term(output.pair_logits, pair_labels)
    torch.testing.assert_close(term.loss_sum, expected)
    assert int(term.sums[0]) == int(((logits > 0).long() == pair_labels).sum())
    torch.testing.assert_close(output.loss_sum, model(ids, mask, labels).loss_sum)
    assert model(ids, mask, labels).pair_logits is None


def test_every_weight_of_the_head_is_trained(make_model, batch):
    """The published training loop did not pass the head to its optimiser."""
    model = make_model(sentence_pair_head=True)
    together = torch.tensor([1, 0, 1])
    pair_term(model(*batch, together).pair_logits, together).loss_sum.backward()
    head = {f"pair_head.{name}": parameter for name, parameter in model.pair_head.named_parameters()}
    assert all(parameter.grad.abs().max() > 0 for parameter in head.values())
    grouped = {id(parameter) for group in parameter_groups(model, OptimizerSettings()) for parameter in group["params"]}
    assert all(id(parameter) in grouped for parameter in head.values())
    assert {name for name in head if is_decayed(name)} == {"pair_head.linear.weight", "pair_head.output.weight"}


def test_labelled_padding_and_first_tokens_are_read_from_a_padded_batch_as_from_a_full_one(make_model, batch):
    """The encoder skips padding, but must return states at padded positions that are requested."""
    model = make_model(sentence_pair_head=True)
    ids, mask, labels = batch
    labels = labels.clone()
    labels[2, 10:] = 3
    output = model(ids, mask, labels, torch.tensor([1, 0, 1]))
    hidden = model.encoder(ids, mask)[-1]
    wanted = labels != -100
    expected = F.cross_entropy(model.logits_at(hidden[wanted]), labels[wanted], reduction="sum")
    torch.testing.assert_close(output.loss_sum, expected)
