"""The average of the weights is the published one, takes their place while they are evaluated, and goes on."""

from pathlib import Path

import numpy as np
import torch
from torch import nn

from hatchery.training.start_settings import WeightAverageSettings
from hatchery.training.weight_average import AVERAGE, WeightAverage


def test_the_average_is_that_of_the_code_of_gpt_bert(golden_directory: Path) -> None:
    golden = np.load(golden_directory / "gpt_bert" / "optimiser" / "lamb_steps.npz")
    names = [name.removeprefix("start.") for name in golden.files if name.startswith("start.")]
    model = nn.ParameterList(nn.Parameter(torch.from_numpy(golden[f"start.{name}"])) for name in names)
    average = WeightAverage(WeightAverageSettings())
    average.begin(model)
    for step in range(6):
        for parameter, name in zip(model, names, strict=True):
            parameter.data = torch.from_numpy(golden[f"plain.parameters.{name}"][step])
        average.after_step(model)
    average.finish(model)
    for parameter, name in zip(model, names, strict=True):
        expected = torch.from_numpy(golden[f"plain.ema.{name}"])
        torch.testing.assert_close(parameter.data, expected, rtol=0, atol=1e-6, msg=name)


def test_it_stands_in_for_the_weights_while_they_are_evaluated_and_is_what_a_checkpoint_holds() -> None:
    model = nn.Linear(2, 1)
    model.weight.data.fill_(2.0)
    average = WeightAverage(WeightAverageSettings(decay=0.5, keep_raw_weights=True))
    average.begin(model)
    start = model.weight.detach().clone()
    model.weight.data += 1
    average.after_step(model)
    with average.in_place(model):
        assert torch.equal(model.weight.data, start + 0.5)
    assert torch.equal(model.weight.data, start + 1)
    state = average.state()
    assert set(state) == {f"{AVERAGE}weight", f"{AVERAGE}bias"}
    again = WeightAverage(WeightAverageSettings(decay=0.5))
    again.load({**state, "other": torch.zeros(1)})
    again.begin(model)
    assert torch.equal(again.state()[f"{AVERAGE}weight"], start + 0.5)
    average.finish(model)
    assert torch.equal(model.weight.data, start + 0.5) and torch.equal(average.raw["weight"], start + 1)
