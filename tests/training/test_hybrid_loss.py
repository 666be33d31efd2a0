"""The loss of a batch with masked and causal sequences equals the loss of the published GPT-BERT model."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from hatchery.modeling.families import model_config
from hatchery.modeling.gpt_bert.published_names import from_published
from hatchery.modeling.language_model import LanguageModel
from hatchery.tokenization.special_tokens import UNLABELLED
from hatchery.training.batches import StepBatch
from hatchery.training.loop import divisors, loss_of
from hatchery.training.objectives.hybrid import HybridObjective, HybridSettings
from hatchery.training.topology import SINGLE_PROCESS

CPU, COLUMNS = torch.device("cpu"), 16
CASES = {
    "fifteen_sixteenths": HybridSettings(causal_share=1 / 16),
    "half": HybridSettings(causal_share=0.5),
    "one_sixteenth": HybridSettings(causal_share=15 / 16),
    "half_of_columns_ratio_15_16": HybridSettings(causal_share=0.5, causal_weight=1 / 16),
    # The loss of an empty part is 0, and the other part keeps its weight.
    "all_columns_masked_ratio_15_16": HybridSettings(causal_share=1 / 16),
    "no_column_masked_ratio_1_16": HybridSettings(causal_share=15 / 16),
    "all_columns_masked_ratio_1": HybridSettings(causal_share=0.0),
}


@pytest.fixture(scope="module")
def directory(golden_directory: Path) -> Path:
    return golden_directory / "gpt_bert"


@pytest.fixture(scope="module")
def model(directory: Path) -> LanguageModel:
    info = json.loads((directory / "hybrid" / "hybrid.json").read_text("utf-8"))
    made = LanguageModel(model_config({**info["config"], "family": "gpt_bert"}))
    weights = np.load(directory / "model_gate_dwa" / "weights.npz")
    made.load_state_dict(
        from_published({name.removeprefix("state."): torch.from_numpy(weights[name]) for name in weights})
    )
    return made.eval()


def batch_of(arrays: Any, n_masked: int) -> dict[str, Tensor]:
    """Return a batch with masked columns first, then causal ones; batch first, mask True at visible keys."""
    kinds = ["masked"] * n_masked + ["causal"] * (COLUMNS - n_masked)

    def rows(name: str, axis: int) -> Tensor:
        return torch.stack([torch.from_numpy(arrays[f"{kind}_{name}"]).select(axis, i) for i, kind in enumerate(kinds)])

    return {
        "input_ids": rows("input_ids", 1).long(),
        "labels": rows("labels", 1).long(),
        "attention_mask": ~rows("attention_mask", 0),
        "causal": torch.tensor([kind == "causal" for kind in kinds]),
    }


@pytest.mark.parametrize("name", CASES)
def test_losses_of_both_kinds_are_weighed_as_in_the_published_code(
    directory: Path, model: LanguageModel, name: str
) -> None:
    case = json.loads((directory / "hybrid" / "hybrid.json").read_text("utf-8"))["cases"][name]
    settings, expected = CASES[name], case["float32"]
    assert settings.weights[0] == case["ratio"]
    batch = batch_of(np.load(directory / "hybrid" / "hybrid.npz"), case["num_masked"])
    output = model(**batch)
    labelled = (batch["labels"] != UNLABELLED).sum(dim=1)
    both = tuple(int(labelled[batch["causal"] == kind].sum()) for kind in (False, True))
    counted = (sum(both),) if settings.one_kind else both
    divisor = divisors(StepBatch([batch], counted, 0), "tokens", SINGLE_PROCESS, CPU)
    found = {}
    for z_loss in (0.0, 1.0):
        values = {"causal_share": settings.causal_share, "causal_weight": settings.causal_weight, "z_loss": z_loss}
        terms = HybridObjective(HybridSettings(**values)).terms(output, batch)
        found[z_loss] = loss_of(terms, divisor).item()
        for term, own, key in zip(terms, divisor, ("masked_loss", "causal_loss"), strict=False):
            assert term.loss_sum.item() / float(own) == pytest.approx(expected[key], abs=1e-5)
    assert found[0.0] == pytest.approx(expected["loss"], abs=1e-5)
    assert found[1.0] - found[0.0] == pytest.approx(expected["z_loss"], abs=5e-5)
