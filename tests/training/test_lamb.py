"""LAMB against the trajectory of the authors' code."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from hatchery.training.lamb import Lamb


def test_lamb_follows_the_measured_trajectory(golden_directory: Path) -> None:
    golden = np.load(golden_directory / "lamb" / "trajectory.npz")
    names = [key.removeprefix("gradients.") for key in golden.files if key.startswith("gradients.")]
    parameters = {name: nn.Parameter(torch.from_numpy(golden[f"parameters.{name}"][0].copy())) for name in names}
    decayed = [parameters[name] for name in names if name.startswith("decay")]
    undecayed = [parameters[name] for name in names if name.startswith("nodecay")]
    assert len(decayed) == len(undecayed) == 3
    optimizer = Lamb([{"params": decayed, "weight_decay": 0.1}, {"params": undecayed, "weight_decay": 0.0}], lr=1.0)
    for step, rate in enumerate(golden["lr"]):
        for group in optimizer.param_groups:
            group["lr"] = float(rate)
        for name, parameter in parameters.items():
            parameter.grad = torch.from_numpy(golden[f"gradients.{name}"][step].copy())
        optimizer.step()
        for name, parameter in parameters.items():
            expected = golden[f"parameters.{name}"][step + 1]
            np.testing.assert_allclose(parameter.detach().numpy(), expected, rtol=1e-5, atol=5e-7, err_msg=name)
    for name, parameter in parameters.items():
        for key in ("exp_avg", "exp_avg_sq"):
            np.testing.assert_allclose(
                optimizer.state[parameter][key].numpy(), golden[f"{key}_final.{name}"], rtol=1e-5, atol=1e-7
            )


@pytest.mark.parametrize(
    ("weight_decay", "expected"),
    [
        (0.1, [[0.9848083, -2.0110486, 0.5131202], [0.9619751, -2.0125070, 0.5151857]]),
        (0.0, [[0.9900001, -2.01, 0.51], [0.9806515, -2.0126710, 0.5114478]]),
    ],
)
def test_two_steps_equal_the_published_numbers(weight_decay: float, expected: list[list[float]]) -> None:
    parameter = nn.Parameter(torch.tensor([1.0, -2.0, 0.5]))
    optimizer = Lamb([parameter], lr=0.01, weight_decay=weight_decay)
    for gradient, values in zip([[0.1, 0.2, -0.3], [0.05, -0.1, 0.2]], expected, strict=True):
        parameter.grad = torch.tensor(gradient)
        optimizer.step()
        torch.testing.assert_close(parameter.detach(), torch.tensor(values), rtol=0, atol=2e-7)


def test_a_parameter_without_gradient_is_left_alone() -> None:
    used, unused = nn.Parameter(torch.ones(3)), nn.Parameter(torch.ones(2))
    optimizer = Lamb([used, unused], lr=0.1)
    used.grad = torch.ones(3)
    optimizer.step()
    assert torch.equal(unused.detach(), torch.ones(2))
    assert not torch.equal(used.detach(), torch.ones(3))
    assert unused not in optimizer.state


def test_the_step_is_invariant_to_the_scale_of_the_gradient_with_decay_and_without() -> None:
    results = []
    for scale in (1.0, 1024.0):
        parameters = [nn.Parameter(torch.linspace(-1, 1, 12).reshape(3, 4)) for _ in range(2)]
        optimizer = Lamb(
            [{"params": parameters[:1], "weight_decay": 0.1}, {"params": parameters[1:], "weight_decay": 0.0}],
            lr=0.01,
            eps=0.0,
        )
        for step in range(3):
            for parameter in parameters:
                parameter.grad = scale * torch.cos(torch.arange(12.0) + step).reshape(3, 4)
            optimizer.step()
        results.append(torch.cat([parameter.detach() for parameter in parameters]))
    torch.testing.assert_close(results[0], results[1], rtol=1e-6, atol=1e-7)
