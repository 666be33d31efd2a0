"""BabyLM's fine-tuning against traces of its code on tiny models and invented rows (tests/golden/babylm_2026)."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from hatchery.evaluation.baselines.encoder import BaselineEncoder
from hatchery.evaluation.baselines.loading import BaselineTokenizer, load_folder
from hatchery.evaluation.finetuning import loop
from hatchery.evaluation.finetuning.batches import predict
from hatchery.evaluation.finetuning.finetune_on_task import development_value, make_model
from hatchery.evaluation.finetuning.run_results import predictions_json
from hatchery.evaluation.finetuning.task_data import encode_task
from hatchery.evaluation.tasks.settings import FinetuneSettings
from hatchery.experiment.project import Project
from hatchery.raw.registration import open_source, register_source

CPU = torch.device("cpu")
OFFICIAL = Project(Path(__file__).parents[3] / "config")
CASES = [
    *(("finetune_nodropout", "causal_bos", task) for task in ("mrpc", "boolq", "mnli")),
    *(("finetune_nodropout", "masked_wp", task) for task in ("mrpc", "boolq", "mnli")),
    ("finetune_first_token_2025", "masked_wp", "mrpc"),
    ("finetune_accumulate2", "causal_bos", "mrpc"),
]


def settings_of(task: str, edition: int, parts: int) -> FinetuneSettings:
    """Return the task and the protocol of config/ with the changes that the traces were made with."""
    name = f"babylm_2026_{task}"
    block = OFFICIAL.task(name).settings(name)
    pooling = "last_token" if edition == 2026 else "first_token"
    head = replace(block.head, options={**block.head.options, "pooling": pooling})
    chosen = OFFICIAL.protocol("babylm_2026")
    keys = {**chosen.settings, **chosen.tasks.get(name, {})}
    keys |= {"edition": edition, "batch_size": 4, "learning_rates": (1e-3,), "dropout": 0.0, "epochs": 10}
    keys["gradient_accumulation"] = parts
    keys["selection_metric"] = keys["reported_metric"] = block.metrics[0]
    protocol = loop.ProtocolSettings(**{key: value for key, value in keys.items() if key != "reported_metric"})
    return FinetuneSettings(replace(block, head=head, expected_rows={}), replace(protocol, seeds=(42,)))


@pytest.mark.parametrize(("results", "model", "task"), CASES)
def test_a_run_is_that_of_the_official_code(golden_directory, tmp_path, monkeypatch, results, model, task):
    golden = golden_directory / "babylm_2026"
    folder = golden / "results" / results / model / "main" / "finetune" / task
    trace = json.loads((folder / "trace.json").read_text())
    architecture = "causal" if model.startswith("causal") else "masked"
    network, tokenizer = load_folder(golden / "models" / model, architecture)
    its = BaselineTokenizer(tokenizer, architecture, model, template=True)
    parts = 2 if results == "finetune_accumulate2" else 1
    settings = settings_of(task, 2025 if results == "finetune_first_token_2025" else 2026, parts)
    register_source("full", golden / "data" / "full", tmp_path / "source.json")
    encoded = encode_task(settings, {settings.task.name: open_source(tmp_path / "source.json")}, None, its)
    made = make_model(settings, encoded, BaselineEncoder(network, architecture, its), encoded.train.data, seed=42)
    head: Any = made.head
    weights = load_file(folder / "initial_head.safetensors")
    with torch.no_grad():
        for layer, name in ((head.linear, "nonlinearity.1"), (head.output, "nonlinearity.5")):
            layer.weight.copy_(weights[f"{name}.weight"])
            layer.bias.copy_(weights[f"{name}.bias"])
    rows = np.array(trace["rows_per_step"]).reshape(trace["total_steps"], -1)
    per_epoch = len(rows) // 10
    monkeypatch.setattr(loop, "training_batches", lambda *args: rows[(args[3] - 1) * per_epoch : args[3] * per_epoch])
    losses, rates, values = [], [], []
    monkeypatch.setattr(loop.FiniteWatch, "add", lambda self, loss, norm: losses.append(float(loss)))
    rate_of = loop.set_rates

    def noted(optimizer: Any, *given: Any) -> None:
        rate_of(optimizer, *given)
        rates.append({group["lr"] for group in optimizer.param_groups})

    monkeypatch.setattr(loop, "set_rates", noted)
    value = development_value(settings, encoded.sets[0])

    def judged(predicted: Any) -> float:
        values.append(value(predicted))
        return values[-1]

    found = loop.train_model(
        made, encoded.train.data, loop.Development(encoded.sets[0].data, judged), settings.protocol, 1e-3, 42, CPU
    )
    expected_rates = [float(rate) for rate in trace["learning_rate_per_step"]]
    assert all(len(rate) == 1 for rate in rates)
    np.testing.assert_allclose([rate.pop() for rate in rates], expected_rates[: len(rates)], rtol=1e-12)
    expected_losses = np.array(trace["loss_per_step"], dtype=float).reshape(-1, parts).mean(axis=1)
    np.testing.assert_allclose(losses, expected_losses[: len(losses)], atol=1e-5)
    metric = "f1" if task == "mrpc" else "accuracy"
    assert values == pytest.approx([epoch[metric] for epoch in trace["valid_per_epoch"]][: len(values)])
    assert found.best_step == per_epoch * (trace["selected_epoch_from_0"] + 1)
    answers = encoded.sets[0].answers(predict(made, encoded.sets[0].data, CPU, settings.protocol.edition))
    assert json.loads(predictions_json(settings.task, answers)) == json.loads((folder / "predictions.json").read_text())
    logits = np.array(trace["final_valid_logits_of_selected_model"], dtype=float)
    np.testing.assert_allclose(answers.scores, logits, atol=1e-4)


def test_below_17_steps_nothing_warms_up_and_dropout_changes_no_rate(golden_directory):
    folder = golden_directory / "babylm_2026" / "results" / "causal_bos" / "main" / "finetune" / "boolq"
    trace = json.loads((folder / "trace.json").read_text())
    protocol = loop.ProtocolSettings(**{**OFFICIAL.protocol("babylm_2026").settings, "batch_size": 16})
    steps = loop.step_count(20, protocol)
    assert steps == trace["total_steps"] < 17
    optimizer = torch.optim.SGD([{"params": [torch.nn.Parameter(torch.zeros(1))], "peak": 3e-5}])
    for step, expected in enumerate(trace["learning_rate_per_step"]):
        loop.set_rates(optimizer, protocol, step, steps)
        assert optimizer.param_groups[0]["lr"] == pytest.approx(float(expected), rel=1e-12)
    assert float(trace["learning_rate_per_step"][0]) == 3e-5
