"""Divergences of predictions and the drift of a bias follow their formulas."""

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from hatchery.modeling.language_model import LanguageModel
from hatchery.modeling.ltg.config import LtgBertConfig
from hatchery.training import output_divergences as module
from hatchery.training.bias_drift import DRIFT, BiasDrift
from hatchery.training.output_divergences import divergences
from hatchery.training.watchers import is_logged


def random_unigram(n_types: int, seed: int) -> np.ndarray:
    weights = np.random.default_rng(seed).pareto(1.0, n_types) + 1e-6
    return weights / weights.sum()


def by_definition(logits: np.ndarray, targets: np.ndarray, unigram: np.ndarray) -> list[float]:
    """Return sums over the rows, with each distribution computed in double precision."""
    logits = logits.astype(np.float64)
    n_types = len(unigram)
    everything = np.exp(logits - logits.max(axis=1, keepdims=True))
    model = everything / everything.sum(axis=1, keepdims=True)
    of_types = model[:, :n_types] / model[:, :n_types].sum(axis=1, keepdims=True)
    uniform = np.full(n_types, 1 / n_types)

    def divergence(first: np.ndarray, second: np.ndarray) -> float:
        first, second = np.broadcast_arrays(first, second)
        return float((first * np.log(first / second)).sum())

    model_at_types = model[:, :n_types]
    return [
        divergence(unigram, model_at_types),
        divergence(uniform, model_at_types),
        float(-np.log(model[np.arange(len(targets)), targets]).sum()),
        divergence(of_types, unigram),
        divergence(of_types, uniform),
        float(len(targets)),
    ]


@pytest.mark.parametrize("rows_beyond", [0, 10])
@pytest.mark.parametrize("scale", [0.0, 1.0, 8.0])
def test_each_measure_is_what_its_formula_says(scale: float, rows_beyond: int) -> None:
    rng = np.random.default_rng(3)
    n_types, positions = 1_237, 41
    logits = (scale * rng.standard_normal((positions, n_types + rows_beyond)) + 30).astype(np.float32)
    targets, unigram = rng.integers(0, n_types, positions), random_unigram(n_types, 4)
    sums = divergences(torch.from_numpy(logits), torch.from_numpy(targets), torch.from_numpy(unigram))
    assert sums.dtype == torch.float64
    np.testing.assert_allclose(sums.numpy(), by_definition(logits, targets, unigram), rtol=1e-9, atol=1e-9)


def test_a_large_vocabulary_is_looked_at_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    logits = torch.from_numpy(rng.standard_normal((7, 500)).astype(np.float32))
    targets, unigram = torch.from_numpy(rng.integers(0, 490, 7)), torch.from_numpy(random_unigram(490, 6))
    at_once = divergences(logits, targets, unigram)
    monkeypatch.setattr(module, "_LOGITS_AT_A_TIME", 7 * 13)
    torch.testing.assert_close(divergences(logits, targets, unigram), at_once, rtol=1e-12, atol=1e-12)


def test_a_vocabulary_of_thirty_thousand_is_never_copied_in_double_precision() -> None:
    largest = 0

    class Watched(TorchDispatchMode):
        def __torch_dispatch__(self, function: Any, types: Any, arguments: Any = (), keywords: Any = None) -> Any:
            nonlocal largest
            result = function(*arguments, **(keywords or {}))
            if isinstance(result, torch.Tensor) and result.dtype == torch.float64:
                largest = max(largest, result.numel())
            return result

    logits = torch.zeros(100, 30_000)
    with Watched():
        divergences(logits, torch.zeros(100, dtype=torch.int64), torch.full((30_000,), 1 / 30_000).double())
    assert 0 < largest <= 2**20 < logits.numel()


@pytest.mark.parametrize("height", [0.0, 3e4, -3e4])
def test_a_constant_that_is_added_to_all_logits_changes_nothing(height: float) -> None:
    logits = torch.linspace(-20, 20, 300).repeat(4, 1).round()
    targets, unigram = torch.tensor([0, 10, 200, 299]), torch.from_numpy(random_unigram(300, 1))
    torch.testing.assert_close(divergences(logits + height, targets, unigram), divergences(logits, targets, unigram))


def test_sums_of_parts_add_up_to_the_whole() -> None:
    logits, targets = torch.randn(20, 60), torch.randint(0, 60, (20,))
    unigram = torch.from_numpy(random_unigram(60, 2))
    parts = sum(divergences(logits[part], targets[part], unigram) for part in (slice(0, 3), slice(3, 3), slice(3, 20)))
    torch.testing.assert_close(parts, divergences(logits, targets, unigram))


def test_steps_double_and_fall_on_the_evaluation_grid() -> None:
    assert [step for step in range(70) if is_logged(step, 25)] == [0, 1, 2, 4, 8, 16, 25, 32, 50, 64]


def four_types() -> LanguageModel:
    sizes = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1}
    return LanguageModel(LtgBertConfig(vocab_size=4, **sizes))


def test_a_bias_at_the_unigram_distribution_has_no_divergence_and_moves_by_what_is_added() -> None:
    model, unigram = four_types(), np.array([0.5, 0.25, 0.125, 0.125])
    bias = model.output_layer[1]
    bias.data = torch.from_numpy(np.log(unigram)).float()
    drift, engine = BiasDrift(model, unigram), SimpleNamespace(model=model)
    start = drift.score(engine)
    assert tuple(start) == DRIFT
    assert start["bias_kl_unigram"] == pytest.approx(0, abs=1e-7)
    assert start["bias_norm"] == pytest.approx(float(np.linalg.norm(np.log(unigram))))
    assert start["bias_change"] == start["largest_bias_change"] == 0
    bias.data += torch.tensor([0.3, 0.0, 0.0, -0.4])
    moved = drift.score(engine)
    assert moved["bias_change"] == pytest.approx(0.5) and moved["largest_bias_change"] == pytest.approx(0.4)
    new = np.exp(bias.detach().double().numpy())
    new /= new.sum()
    assert moved["bias_kl_unigram"] == pytest.approx(float((unigram * np.log(unigram / new)).sum()), rel=1e-5)
    assert moved["reverse_bias_kl_unigram"] == pytest.approx(float((new * np.log(new / unigram)).sum()), rel=1e-5)


def test_a_bias_of_zero_is_as_far_as_the_uniform_distribution() -> None:
    unigram = np.array([0.5, 0.25, 0.125, 0.125])
    found = BiasDrift(four_types(), unigram).score(SimpleNamespace(model=four_types()))
    assert found["bias_kl_unigram"] == pytest.approx(math.log(4) + float((unigram * np.log(unigram)).sum()))
    assert found["bias_norm"] == 0


def test_a_constant_is_in_the_norm_of_a_bias_and_not_in_the_centred_one_and_a_spare_row_is_in_neither() -> None:
    model = four_types()
    drift = BiasDrift(model, np.full(3, 1 / 3))
    # The vocabulary has three entries; the last row is padding.
    model.output_layer[1].data = torch.tensor([4.0, 6.0, 5.0, -30.0])
    found = drift.score(SimpleNamespace(model=model))
    assert found["bias_norm"] == pytest.approx(math.sqrt(77)) == found["bias_change"]
    assert found["centred_bias_norm"] == pytest.approx(math.sqrt(2)) and found["largest_bias_change"] == 6
