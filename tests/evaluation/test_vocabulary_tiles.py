"""Log-probabilities of targets made tile by tile are those of a softmax over the whole vocabulary."""

import pytest
import torch

from hatchery.evaluation.minimal_pairs.likelihoods import (
    ITEMS_PER_TILE,
    ROWS_PER_TILE,
    tiled_log_probabilities,
)


def layer(n_rows: int, n_items: int, scale: float = 1.0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(n_rows + n_items)
    features, weight = torch.randn(n_rows, 16, generator=generator), torch.randn(n_items, 16, generator=generator)
    return features, weight * scale, torch.randn(n_items, generator=generator)


@pytest.mark.parametrize("n_rows", [1, ROWS_PER_TILE, 2 * ROWS_PER_TILE + 3])
@pytest.mark.parametrize("n_items", [5, ITEMS_PER_TILE, 2 * ITEMS_PER_TILE + 1])
@pytest.mark.parametrize("with_bias", [True, False])
def test_they_are_those_of_a_softmax_in_double_precision(n_rows: int, n_items: int, with_bias: bool) -> None:
    features, weight, bias = layer(n_rows, n_items)
    # Some positions are asked for several targets and in no order, others for none.
    generator = torch.Generator().manual_seed(0)
    of = torch.randint(n_rows, (2 * n_rows,), generator=generator)
    targets = torch.randint(n_items, (2 * n_rows,), generator=generator)
    found = tiled_log_probabilities(features, weight, bias if with_bias else None, of, targets)
    logits = features.double() @ weight.double().T + (bias.double() if with_bias else 0)
    expected = torch.log_softmax(logits, dim=-1)[of, targets].float()
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-6)


def test_logits_far_beyond_the_range_of_the_exponential_stay_finite() -> None:
    features, weight, bias = layer(9, ITEMS_PER_TILE + 10, scale=1000.0)
    of, targets = torch.arange(9), torch.arange(9)
    logits = features.double() @ weight.double().T + bias.double()
    expected = torch.log_softmax(logits, dim=-1)[of, targets].float()
    assert expected.abs().max() > 1000
    found = tiled_log_probabilities(features, weight, bias, of, targets)
    torch.testing.assert_close(found, expected, atol=1e-2, rtol=1e-5)


def test_one_weight_that_is_not_a_number_shows_wherever_it_lies() -> None:
    features, weight, bias = layer(3, 2 * ITEMS_PER_TILE)
    weight[ITEMS_PER_TILE + 7, 0] = float("nan")
    found = tiled_log_probabilities(features, weight, bias, torch.arange(3), torch.tensor([0, 1, 2]))
    assert found.isnan().all()
