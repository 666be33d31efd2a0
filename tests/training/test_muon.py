"""Muon and NorMuon against PyTorch's own Muon, a singular value decomposition, and the formulas of their papers."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from hatchery.errors import ConfigError
from hatchery.modeling.families import model_config
from hatchery.modeling.language_model import LanguageModel
from hatchery.training import muon
from hatchery.training.muon import Muon, orthogonalised
from hatchery.training.optimizer_settings import OptimizerSettings
from hatchery.training.optimizers import build_optimizer
from hatchery.typed import build

SHAPES = ((6, 6), (4, 10), (10, 4), (6, 6))
MATRICES = {"matrices": True, "momentum": 0.9, "row_decay": None, "rate_factor": 1.0, "weight_decay": 0.1}
SIZES = {"vocab_size": 50, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2}


def drawn(seed: int) -> list[Tensor]:
    """Return a random matrix of each shape."""
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=generator) for shape in SHAPES]


def trained(make: Callable[[list[nn.Parameter]], torch.optim.Optimizer], steps: int = 4) -> list[Tensor]:
    """Return the matrices after `steps` optimiser steps with random gradients."""
    parameters = [nn.Parameter(matrix) for matrix in drawn(0)]
    optimizer = make(parameters)
    for step in range(steps):
        for parameter, gradient in zip(parameters, drawn(step + 1), strict=True):
            parameter.grad = gradient
        optimizer.step()
    return [parameter.detach() for parameter in parameters]


def test_the_steps_are_those_of_pytorch_s_muon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(muon, "orthogonalised", partial(orthogonalised, precision=torch.bfloat16))
    ours = trained(lambda parameters: Muon([{"params": parameters, **MATRICES}], lr=0.05))
    theirs = trained(
        lambda parameters: torch.optim.Muon(
            parameters, lr=0.05, weight_decay=0.1, momentum=0.9, adjust_lr_fn="match_rms_adamw"
        )
    )
    before = drawn(0)
    for found, expected, start in zip(ours, theirs, before, strict=True):
        # The products have 8 bits of precision, so the results differ by up to a hundredth of the change.
        assert (found - expected).norm() < 0.01 * (expected - start).norm()


@pytest.mark.parametrize("shape", [(12, 12), (5, 20), (20, 5)])
def test_an_orthogonal_matrix_has_the_singular_vectors_and_values_of_about_one(shape: tuple[int, int]) -> None:
    matrix = torch.randn(shape, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    left, _, right = torch.linalg.svd(matrix, full_matrices=False)
    found = left.T @ orthogonalised(matrix[None], torch.float64)[0] @ right.T
    values = found.diagonal()
    assert (found - values.diag()).abs().max() < 1e-9
    assert values.min() > 0.68 and values.max() < 1.21


def test_normuon_divides_the_rows_by_their_running_mean_and_keeps_the_size() -> None:
    def normuon(parameters: list[nn.Parameter]) -> Muon:
        return Muon([{"params": parameters, **MATRICES, "row_decay": 0.8, "rate_factor": 2.0}], lr=0.05)

    found = trained(normuon, steps=3)
    for index, start in enumerate(drawn(0)):
        # Li et al. 2025, arXiv:2510.05491, Algorithm 1.
        weight, momentum, squares = start.double().numpy(), np.zeros(start.shape), np.zeros((len(start), 1))
        for step in range(3):
            momentum = 0.9 * momentum + 0.1 * drawn(step + 1)[index].double().numpy()
            update = orthogonalised(torch.from_numpy(momentum)[None], torch.float64)[0].numpy()
            squares = 0.8 * squares + 0.2 * (update**2).mean(axis=1, keepdims=True)
            update = update / np.sqrt(squares)
            update *= 0.2 * np.sqrt(update.size) / np.linalg.norm(update)
            weight = weight - 0.1 * (update + 0.1 * weight)
        np.testing.assert_allclose(found[index].numpy(), weight, rtol=0, atol=2e-5)


@pytest.mark.parametrize(
    ("changes", "gradient", "expected"),
    [
        # AdamW's first step is the sign of the gradient; the decay is 0.1 x 0.5 of the value.
        ({}, 1.0, 2.0 - 0.1 * (1 + 0.5 * 2.0)),
        ({"cautious_decay": True}, 1.0, 2.0 - 0.1 * (1 + 0.5 * 2.0)),
        # The step leads away from zero, so there is no decay.
        ({"cautious_decay": True}, -1.0, 2.0 + 0.1),
        # At a quarter of the peak rate, the decay is a quarter.
        ({"decay_follows_rate": True}, 1.0, 2.0 - 0.1 * (1 + 0.25 * 0.5 * 2.0)),
    ],
)
def test_decay_is_cautious_and_follows_the_rate_if_asked(
    changes: dict[str, Any], gradient: float, expected: float
) -> None:
    model = nn.Linear(1, 1, bias=False)
    nn.init.constant_(model.weight, 2.0)
    peak = 0.4 if "decay_follows_rate" in changes else 0.1
    settings = OptimizerSettings("adamw", learning_rate=peak, weight_decay=0.5, **changes)
    optimizer = build_optimizer(model, settings)
    optimizer.param_groups[0]["lr"] = 0.1
    model.weight.grad = torch.full((1, 1), gradient)
    optimizer.step()
    assert model.weight.item() == pytest.approx(expected, abs=1e-5)


def test_adamw_without_a_trust_ratio_is_pytorch_s() -> None:
    def ours(parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
        return Muon([{"params": parameters}], lr=0.05, weight_decay=0.1, trust_ratio=False)

    def theirs(parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
        return torch.optim.AdamW(parameters, lr=0.05, betas=(0.9, 0.98), eps=1e-6, weight_decay=0.1)

    for found, expected in zip(trained(ours), trained(theirs), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("family", ["ltg", "gpt_bert", "roberta"])
def test_hidden_matrices_alone_are_made_orthogonal(family: str) -> None:
    with torch.device("meta"):
        model = LanguageModel(model_config({**SIZES, "family": family, "sentence_pair_head": True}))
    optimizer = build_optimizer(model, OptimizerSettings("muon", 0.01, matrix_learning_rate=0.03, others="lamb"))
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    matrices = {names[id(p)]: p for group in optimizer.param_groups if group.get("matrices") for p in group["params"]}
    assert matrices and all(".layers." in name and parameter.ndim == 2 for name, parameter in matrices.items())
    others = {names[id(p)] for group in optimizer.param_groups if not group.get("matrices") for p in group["params"]}
    assert matrices.keys() | others == set(names.values()) and not matrices.keys() & others
    wide = [name for name in others if model.get_parameter(name).ndim > 1]
    assert all("embedding" in name or "weights" in name or name.startswith(("head.", "pair_head.")) for name in wide), (
        wide
    )
    assert {name for name in wide if name.startswith("pair_head.")} == {
        "pair_head.linear.weight",
        "pair_head.output.weight",
    }
    assert {group["rate_factor"] for group in optimizer.param_groups if group.get("matrices")} == {3.0}
    for kind, decay in (("muon", None), ("normuon", 0.95)):
        groups = build_optimizer(model, OptimizerSettings(kind, 0.01)).param_groups
        assert [(of["row_decay"], of["rate_factor"]) for of in groups if of.get("matrices")] == [(decay, 1.0)]
    chosen = OptimizerSettings("normuon", 0.01, beta1=0.6, beta2=0.7, epsilon=1e-5, momentum=0.8, row_decay=0.5)
    found = build_optimizer(model, chosen).param_groups
    assert {(of["momentum"], of["row_decay"]) for of in found if of.get("matrices")} == {(0.8, 0.5)}
    assert {(of["betas"], of["eps"]) for of in found} == {((0.6, 0.7), 1e-5)}
    assert all(group["trust_ratio"] for group in optimizer.param_groups)
    # All groups have the scheduled rate of `learning_rate`, so their decay is compared with its peak.
    chosen = OptimizerSettings("muon", 0.01, matrix_learning_rate=0.03, cautious_decay=True, decay_follows_rate=True)
    found = build_optimizer(model, chosen).param_groups
    assert {(of["peak_rate"], of["cautious"]) for of in found} == {(0.01, True)}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"name": "lamb", "momentum": 0.9},
            "momentum: got 0.9, which cannot be combined with `name: lamb`, because only muon or normuon uses",
        ),
        (
            {"name": "muon", "row_decay": 0.9},
            "row_decay: got 0.9, which cannot be combined with `name: muon`, because only normuon uses",
        ),
    ],
)
def test_keys_of_another_optimiser_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        build(OptimizerSettings, changes, "optimizer")
    assert replace(OptimizerSettings(), name="normuon", row_decay=0.9).orthogonalises
