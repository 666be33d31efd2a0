"""The average of the weights is the published one, replaces the weights during evaluation, and survives a kill."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import Tensor, nn

from hatchery.modeling.store import load_language_model
from hatchery.training.development import DevelopmentSet, development_examples
from hatchery.training.settings import pretrain_settings
from hatchery.training.start_settings import WeightAverageSettings
from hatchery.training.topology import SINGLE_PROCESS
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
        average.after_step(step + 1, model)
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
    average.after_step(1, model)
    with average.in_place(model):
        assert torch.equal(model.weight.data, start + 0.5)
    assert torch.equal(model.weight.data, start + 1)
    state = average.state()
    assert set(state) == {f"{AVERAGE}weight", f"{AVERAGE}bias"}
    again = WeightAverage(WeightAverageSettings(decay=0.5))
    again.load({**state, "other": torch.zeros(1)}, [])
    again.begin(model)
    assert torch.equal(again.state()[f"{AVERAGE}weight"], start + 0.5)
    average.finish(model)
    assert torch.equal(model.weight.data, start + 0.5) and torch.equal(average.raw["weight"], start + 1)


def test_an_equal_average_of_a_continued_run_begins_at_its_own_step_without_the_earlier_average() -> None:
    model = nn.Linear(1, 1, bias=False)
    average = WeightAverage(WeightAverageSettings(weights="equal", from_fraction=0.5), 10)
    # Eight of ten steps were made by a run with an exponential average over all its steps.
    average.load({f"{AVERAGE}weight": torch.tensor([[99.0]])}, [])
    model.weight.data.fill_(1.0)
    average.begin(model)
    with average.in_place(model):
        assert model.weight.item() == 1.0
    for step, weight in ((9, 2.0), (10, 5.0)):
        model.weight.data.fill_(weight)
        average.after_step(step, model)
    average.finish(model)
    assert model.weight.item() == 3.5


def test_development_scores_milestones_and_the_exported_model_are_those_of_weights_averaged_by_hand(
    train_here: Any, token_data: Any, pretrain_slice: Any
) -> None:
    decay, steps = 0.75, 6

    def weights(folder: Path) -> dict[str, Tensor]:
        return {name: tensor.double() for name, tensor in load_file(folder / "model.safetensors").items()}

    # In a run without averaging, each step's model is a milestone.
    start = train_here("start", steps=0).path.parent
    raw = train_here("raw", steps=steps, evaluation_interval_steps=1, milestones=list(range(1, steps))).path.parent
    folders = [*(raw / "milestones" / f"step_{step:08}" for step in range(1, steps)), raw]
    average, by_hand = weights(start), {}
    for step, folder in enumerate(folders, 1):
        now = weights(folder)
        average = {name: decay * average[name] + (1 - decay) * now[name] for name in now}
        by_hand[step] = average

    chosen = {"decay": decay, "keep_raw_weights": True}
    changes = {"steps": steps, "evaluation_interval_steps": 2, "milestones": [2, 4]}
    manifest = train_here("averaged", weight_average=chosen, **changes)
    made = manifest.path.parent
    exported = {2: made / "milestones/step_00000002", 4: made / "milestones/step_00000004", steps: made}
    assert sorted(path.name for path in (made / "milestones").iterdir()) == ["step_00000002", "step_00000004"]
    vouched = {path.parent for path in manifest.files() if path.name == "model.safetensors"}
    assert vouched == {*exported.values(), made / "raw_weights"}
    rows = [json.loads(line) for line in (made / "metrics.jsonl").read_text().splitlines()]
    scores = {row["step"]: row["development_loss"] for row in rows if "development_loss" in row}
    settings = pretrain_settings(pretrain_slice(**changes))
    examples = development_examples(token_data.tokens, settings)
    assert examples is not None and scores.keys() == exported.keys()
    batches = DevelopmentSet(examples, settings.evaluation_sequences, 8, SINGLE_PROCESS).batches
    for step, folder in exported.items():
        found = weights(folder)
        for name, expected in by_hand[step].items():
            torch.testing.assert_close(found[name], expected, rtol=0, atol=1e-6, msg=f"{name} after step {step}")
        model = load_language_model(start).eval()
        losses = []
        for weights_of in (by_hand[step], weights(folders[step - 1])):
            model.load_state_dict({name: tensor.float() for name, tensor in weights_of.items()})
            with torch.no_grad():
                outputs = [model(**batch) for batch in batches]
            logits, targets = (torch.cat([getattr(each, key) for each in outputs]) for key in ("logits", "targets"))
            losses.append(float(F.cross_entropy(logits, targets)))
        assert scores[step] == pytest.approx(losses[0], rel=1e-5)
        assert abs(losses[1] - losses[0]) > 1e-3 * losses[0], "the raw weights would be scored alike"
    kept, last = weights(made / "raw_weights"), weights(raw)
    assert all(torch.equal(kept[name], tensor) for name, tensor in last.items())


@pytest.mark.parametrize(
    ("chosen", "members", "weights"),
    [
        # The average is the mean of the five steps from 6 to 10.
        ({"weights": "equal", "from_fraction": 0.5}, [6, 7, 8, 9, 10], [0.2] * 5),
        # Every third step counts, back from the last step and not from step 3, the first step of the average.
        ({"weights": "equal", "from_fraction": 0.2, "every_steps": 3}, [4, 7, 10], [1 / 3] * 3),
        # The average starts with the weights of step 8, followed by two updates with factor 0.5.
        ({"decay": 0.5, "from_fraction": 0.7}, [8, 9, 10], [0.25, 0.25, 0.5]),
    ],
)
def test_a_late_average_is_that_of_its_steps_also_after_a_kill(
    chosen: dict[str, Any], members: list[int], weights: list[float]
) -> None:
    generator = torch.Generator().manual_seed(0)
    steps = [torch.randn(1, 2, generator=generator) for _ in range(11)]
    expected = sum((weight * steps[step] for step, weight in zip(members, weights, strict=True)), torch.zeros(1, 2))
    model, average = nn.Linear(2, 1), WeightAverage(WeightAverageSettings(**chosen), 10)
    for step in range(11):
        model.weight.data = steps[step].clone()
        if step == 0:
            average.begin(model)
            continue
        average.after_step(step, model)
        if step < members[0]:
            with average.in_place(model):
                assert torch.equal(model.weight.data, steps[step])
        state = {name: tensor.clone() for name, tensor in average.state().items()}
        average = WeightAverage(WeightAverageSettings(**chosen), 10)
        average.load(state, [])
        average.begin(model)
    average.finish(model)
    torch.testing.assert_close(model.weight.data, expected)
