"""The sentence-pair head as a part of the model: its size, its loss, and its place in the optimiser."""

import pytest
import torch
import torch.nn.functional as F

from hatchery.modeling.language_model import LanguageModel
from hatchery.modeling.ltg.family import LtgBertConfig
from hatchery.training.optimizers import is_decayed, parameter_groups
from hatchery.training.settings import OptimizerSettings


@pytest.mark.parametrize(
    ("hidden_size", "intermediate_size", "heads", "expected"),
    [(768, 2048, 12, 98_821_121), (384, 1024, 6, 27_890_177), (192, 512, 3, 8_571_137)],
)
def test_models_with_the_head_have_the_published_number_of_parameters(hidden_size, intermediate_size, heads, expected):
    with torch.device("meta"):
        config = LtgBertConfig(
            vocab_size=16384,
            hidden_size=hidden_size,
            intermediate_size=intermediate_size,
            num_hidden_layers=12,
            num_attention_heads=heads,
            sentence_pair_head=True,
        )
        model = LanguageModel(config)
    assert sum(parameter.numel() for parameter in model.parameters()) == expected


def test_the_loss_is_the_cross_entropy_of_the_first_tokens_logit(make_model, batch):
    model = make_model(sentence_pair_head=True)
    ids, mask, labels = batch
    pair_labels = torch.tensor([1, 0, 1])
    output = model(ids, mask, labels, pair_labels)
    logits = model.pair_head(model.encoder(ids, mask)[-1][:, 0])
    expected = F.binary_cross_entropy(torch.sigmoid(logits), pair_labels.float(), reduction="sum")
    torch.testing.assert_close(output.pair_loss_sum, expected)
    assert int(output.n_pairs_correct) == int(((logits > 0).long() == pair_labels).sum())
    torch.testing.assert_close(output.loss_sum, model(ids, mask, labels).loss_sum)
    assert model(ids, mask, labels).pair_loss_sum is None


def test_every_weight_of_the_head_is_trained(make_model, batch):
    """The published loop left the head out of its optimiser."""
    model = make_model(sentence_pair_head=True)
    model(*batch, torch.tensor([1, 0, 1])).pair_loss_sum.backward()
    head = {f"pair_head.{name}": parameter for name, parameter in model.pair_head.named_parameters()}
    assert all(parameter.grad.abs().max() > 0 for parameter in head.values())
    grouped = {id(parameter) for group in parameter_groups(model, OptimizerSettings()) for parameter in group["params"]}
    assert all(id(parameter) in grouped for parameter in head.values())
    assert {name for name in head if is_decayed(name)} == {"pair_head.linear.weight", "pair_head.output.weight"}


def test_labelled_padding_and_first_tokens_are_read_from_a_padded_batch_as_from_a_full_one(make_model, batch):
    """Padding is left out of the computation; what is asked for at a padded position is not."""
    model = make_model(sentence_pair_head=True)
    ids, mask, labels = batch
    labels = labels.clone()
    labels[2, 10:] = 3
    output = model(ids, mask, labels, torch.tensor([1, 0, 1]))
    hidden = model.encoder(ids, mask)[-1]
    wanted = labels != -100
    expected = F.cross_entropy(model.logits_at(hidden[wanted]), labels[wanted], reduction="sum")
    torch.testing.assert_close(output.loss_sum, expected)
