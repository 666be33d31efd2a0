"""Sums over the tokens of held-out text, by hand: weighted losses, and log-probabilities by token frequency."""

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from hatchery.evaluation.perplexity.rows import FrequencyRow
from hatchery.evaluation.perplexity.scoring import FrequencyTally, score_batches
from hatchery.objectives.mask_rates import MASKABLE, WEIGHTS
from hatchery.tokenization.special_tokens import UNLABELLED

METRICS = ("log_frequency_nats", "log_probability_nats", "log_probability_without_bias_nats")


def rows_of(tally: FrequencyTally, width: float) -> dict[tuple[float | None, str], FrequencyRow]:
    return {(row.lowest, row.metric): row for row in tally.rows("dev", width)}


def test_bins_have_means_of_their_tokens_and_errors_from_two_tokens_on() -> None:
    # With one added to every count, the frequencies are 10, 1, 5 and 4 of 20; their logarithms are -0.69, -3.00, -1.39
    # and -1.61.
    tally = FrequencyTally(np.array([9, 0, 4, 3]))
    tally.add(torch.tensor([0, 2]), torch.tensor([-1.0, -3.0]), torch.tensor([-2.0, -4.0]))
    tally.add(torch.tensor([0, 3, 1]), torch.tensor([-2.0, -5.0, -7.0]), torch.tensor([-2.0, -4.0, -9.0]))
    rows = rows_of(tally, 1.0)
    assert [lowest for lowest, _ in rows] == [None] * 2 + [place for place in (-3.0, -2.0, -1.0) for _ in METRICS]
    found = {key: (row.tokens, row.value, row.standard_error) for key, row in rows.items() if row.lowest is not None}
    # The standard error of two numbers is half of their distance.
    x = [math.log(share) for share in (0.5, 0.05, 0.25, 0.2)]
    expected = [
        *((1, x[1], None), (1, -7.0, None), (1, -9.0, None)),
        *((2, (x[2] + x[3]) / 2, (x[2] - x[3]) / 2), (2, -4.0, 1.0), (2, -4.0, 0.0)),
        *((2, x[0], 0.0), (2, -1.5, 0.5), (2, -2.0, 0.0)),
    ]
    for (key, (tokens, value, error)), (n, mean, deviation) in zip(found.items(), expected, strict=True):
        assert (tokens, error is None) == (n, deviation is None), key
        assert value == pytest.approx(mean) and (error or 0.0) == pytest.approx(deviation or 0.0, abs=1e-7)
    # The lower ends of narrow bins are rounded: 7 times 0.1 is 0.7000000000000001.
    assert (-0.7, "log_frequency_nats") in rows_of(tally, 0.1)
    assert rows[-1.0, METRICS[1]].task == "dev_from_-1" and rows[None, "frequency_slope"].task == "dev"


def test_a_slope_needs_two_frequencies_and_its_error_three_tokens() -> None:
    for tokens, slopes, known in (([0, 0, 0], 0, False), ([0, 2], 2, False), ([0, 2, 2], 2, True)):
        tally = FrequencyTally(np.array([9, 0, 4, 3]))
        values = torch.tensor([-1.0, -2.0, -4.0][: len(tokens)])
        tally.add(torch.tensor(tokens), values, values)
        found = [row for row in tally.rows("dev", 1.0) if row.lowest is None]
        assert len(found) == slopes and all((row.standard_error is not None) is known for row in found)
        for row in found:
            # The line passes through the means -1 and -2, or -1 and -3, at frequencies with the ratio 2.
            assert row.value == pytest.approx((len(tokens) - 1) / math.log(2)) and row.tokens == len(tokens)


class Fixed:
    """A model that returns given logits, in two parts."""

    device = torch.device("cpu")

    def __init__(self, logits: torch.Tensor, bias: torch.Tensor | None = None) -> None:
        self.logits, self.output_bias = logits, bias

    def labelled_logits(self, batch: Any) -> Any:
        wanted = batch["labels"][batch["labels"] != UNLABELLED]
        for part in (slice(0, 1), slice(1, None)):
            yield self.logits[part], wanted[part]


def test_weighted_losses_are_divided_by_the_number_of_maskable_tokens() -> None:
    logits = torch.tensor([[2.0, 0.0, 1.0], [0.0, 0.0, 0.0], [0.0, 3.0, 0.0]])
    labels = torch.tensor([[UNLABELLED, 0, 2], [1, UNLABELLED, UNLABELLED]])
    weights = torch.tensor([[9.0, 0.5, 2.0], [4.0, 9.0, 9.0]])
    losses = [math.log(math.e**2 + 1 + math.e) - 2, math.log(3), math.log(2 + math.e**3) - 3]
    batch = {"labels": labels, WEIGHTS: weights, MASKABLE: torch.tensor([3, 2])}
    empty = {"labels": torch.full((1, 3), UNLABELLED), WEIGHTS: torch.ones(1, 3), MASKABLE: torch.tensor([3])}
    model: Any = Fixed(logits)
    found = score_batches(model, [(2, batch), (1, empty)], "dev")
    loss = (0.5 * losses[0] + 2 * losses[1] + 4 * losses[2]) / 5
    assert (found.sequences, found.labelled_tokens) == (3, 5)
    assert found.loss_nats == pytest.approx(loss) and found.perplexity == pytest.approx(math.exp(loss))
    # The first and the third prediction are right, and the second has equal logits, of which the first counts.
    assert found.accuracy == pytest.approx((0.5 + 4) / 5)
    plain = score_batches(model, [(2, {"labels": labels})], "dev")
    assert (plain.labelled_tokens, plain.accuracy) == (3, pytest.approx(2 / 3))
    assert plain.loss_nats == pytest.approx(sum(losses) / 3)
    steep: Any = Fixed(logits * torch.tensor([-900.0, 900.0, 900.0]))
    assert score_batches(steep, [(2, {"labels": labels})], "dev").perplexity == math.inf


def test_without_the_output_bias_padding_rows_of_the_vocabulary_get_no_probability() -> None:
    bias = torch.tensor([1.0, 0.0, -1.0, -50.0])
    model: Any = Fixed(torch.tensor([[3.0, 1.0, 0.0, -50.0], [1.0, 2.0, -1.0, -50.0]]), bias)
    tally: Any = SimpleNamespace(types=3, added=[])
    tally.add = lambda *values: tally.added.append([value.tolist() for value in values])
    score_batches(model, [(1, {"labels": torch.tensor([[0, 1]])})], "dev", tally)
    # Without the bias, the logits are 2, 1 and 1, and 0, 2 and 0.
    shares = [math.e / (math.e + 2), math.e**2 / (math.e**2 + 2)]
    without = [[math.log(share)] for share in shares]
    assert [added[2] for added in tally.added] == [pytest.approx(one, rel=1e-5) for one in without]
    assert [added[0] for added in tally.added] == [[0], [1]]
    first = 3 - math.log(math.e**3 + math.e + 1)
    assert tally.added[0][1] == pytest.approx([first], rel=1e-5)
