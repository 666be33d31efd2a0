"""Delayed reading of losses changes no result, and a diverged run is never saved."""

import json
import math
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from hatchery.errors import TrainingError
from hatchery.tokenization.documents import TRAINING_SPLIT
from hatchery.tokenization.special_tokens import SPECIAL_SETS
from hatchery.tokenization.token_shards import TokenShards
from hatchery.training.batches import BatchLoader, StepBatch, TrainingBatches
from hatchery.training.checkpoints import checkpoint_folders
from hatchery.training.development import DevelopmentSet, development_examples
from hatchery.training.engine import Engine
from hatchery.training.loop import Measured, _rows, divisors, train
from hatchery.training.objectives import objective_of
from hatchery.training.optimizers import build_optimizer
from hatchery.training.output_divergences import MEASURES, DivergenceProbe
from hatchery.training.output_prior import unigram_of_run
from hatchery.training.precision import Precision, resolve_precision
from hatchery.training.record import RunRecord
from hatchery.training.run_checkpoints import RunCheckpoints
from hatchery.training.run_parts import build_model
from hatchery.training.run_watchers import evaluated_steps
from hatchery.training.runtime_settings import runtime_settings
from hatchery.training.settings import pretrain_settings
from hatchery.training.speed import Speedometer
from hatchery.training.step_plan import StepPlan
from hatchery.training.telemetry import Telemetry
from hatchery.training.topology import SINGLE_PROCESS, Topology
from hatchery.training.watchers import Probe, is_logged

pytestmark = pytest.mark.usefixtures("single_process")
CPU = torch.device("cpu")


class Run:
    """A training in this process that reads its losses every `interval` steps, as on a GPU."""

    def __init__(self, folder: Path, token_data: Any, settings: Any, runtime: Any, interval: int) -> None:
        self.settings = pretrain_settings(settings)
        options = runtime_settings(runtime, self.settings)
        self.shards = TokenShards.open(token_data.tokens, TRAINING_SPLIT)
        self.model = build_model(self.settings, self.shards.vocabulary_size, self.shards.special)
        self.optimizer = build_optimizer(self.model, self.settings.optimizer)
        self.make = partial(objective_of(self.settings.objective).examples, self.shards)
        self.precision: Precision = resolve_precision(self.settings.precision, CPU)
        checkpoints = RunCheckpoints(folder, SINGLE_PROCESS, options)
        opened = partial(Telemetry, folder)
        steps, log = self.settings.steps, options.log_interval_steps
        self.record = RunRecord(
            "run", steps, checkpoints, Speedometer(CPU), lambda text, step: opened(text), log, interval
        )
        examples = development_examples(token_data.tokens, self.settings)
        assert examples is not None
        self.development = DevelopmentSet(examples, 8, 8, SINGLE_PROCESS)

    def resume(self, start: Path | None = None) -> None:
        self.record.resume(self.model, self.optimizer, self.precision, start=start)

    def train(self) -> list[dict[str, Any]]:
        batches = TrainingBatches(StepPlan(self.settings), self.settings.seed, SINGLE_PROCESS, None, self.make)
        if self.record.position.step == 0:
            self.resume()
        watchers = [Probe(self.development.score, evaluated_steps(self.settings))]
        if self.settings.divergences:
            unigram = unigram_of_run(
                self.settings.output_bias, lambda: self.make(16), self.shards, self.settings.seed, show=False
            )
            probe = DivergenceProbe(self.development.batches, unigram)
            interval = self.settings.evaluation_interval_steps
            due = lambda step: step == self.settings.steps or is_logged(step, interval)  # noqa: E731
            watchers.append(Probe(probe.score, due))
        with Engine(self.model, self.optimizer, 2.0, self.precision, CPU, SINGLE_PROCESS) as engine:
            train(objective_of(self.settings.objective), engine, BatchLoader(batches), self.record, watchers)
        return [json.loads(line) for line in self.record.metrics_text().splitlines()]


def test_losses_read_every_seven_steps_give_the_same_line_for_every_step(
    pretrain_slice: Any, runtime_slice: Any, token_data: Any, tmp_path: Path
) -> None:
    found = []
    for interval in (1, 7):
        folder = tmp_path / str(interval)
        run = Run(folder, token_data, pretrain_slice(steps=18), runtime_slice(checkpoint_interval_steps=9), interval)
        found.append(run.train())
    assert found[0] == found[1]
    assert [row["step"] for row in found[0]] == list(range(1, 19))


def break_after(run: Run, step: int) -> None:
    """Fill a parameter with NaN in update number `step` (counted from 1)."""

    def spoil(optimizer: Any, *_: Any) -> None:
        counts = [int(state["step"]) for state in optimizer.state.values()]
        if counts and max(counts) == step:
            parameter: Tensor = next(run.model.parameters())
            parameter.data.fill_(math.nan)

    run.optimizer.register_step_post_hook(spoil)


@pytest.mark.parametrize(("interval", "background"), [(1, False), (5, True), (100, True), (100, False)])
def test_a_run_that_diverges_stops_before_the_next_checkpoint_and_names_the_step_and_the_last_good_one(
    pretrain_slice: Any, runtime_slice: Any, token_data: Any, tmp_path: Path, interval: int, background: bool
) -> None:
    runtime = runtime_slice(checkpoint_interval_steps=4, background_checkpoints=background)
    run = Run(tmp_path, token_data, pretrain_slice(steps=18, evaluation_interval_steps=18), runtime, interval)
    break_after(run, 5)
    with pytest.raises(TrainingError, match=r"^step 6: the loss is nan; the last good checkpoint is .*step_00000004\."):
        run.train()
    (checkpoint,) = checkpoint_folders(tmp_path)
    assert checkpoint.name == "step_00000004"


def test_a_run_that_goes_on_from_another_measures_itself_by_its_own_steps_alone(
    pretrain_slice: Any, runtime_slice: Any, token_data: Any, tmp_path: Path
) -> None:
    def run(name: str, steps: int) -> Run:
        runtime = runtime_slice(checkpoint_interval_steps=4)
        return Run(tmp_path / name, token_data, pretrain_slice(steps=steps), runtime, 1)

    run("earlier", 8).train()
    (start, _) = checkpoint_folders(tmp_path / "earlier")
    ours = run("ours", 16)
    ours.resume(start)
    assert (ours.record.position.step, ours.record.rows(), ours.record.lowest_loss) == (8, [], math.inf)
    break_after(ours, 13)
    with pytest.raises(TrainingError, match=r"^step 14: "):
        ours.train()
    # After a restart, the metrics file begins with the rows of the earlier run.
    again = run("ours", 16)
    again.resume(start)
    assert [json.loads(line)["step"] for line in again.record.metrics_text().splitlines()] == list(range(1, 13))
    assert [row["step"] for row in again.record.rows()] == [9, 10, 11, 12]
    assert again.record.lowest_loss == min(row["loss"] for row in again.record.rows())
    # A milestone after the last step of the earlier run is not missing in this run.
    options = again.record.checkpoints.runtime
    newest = RunCheckpoints(tmp_path / "ours", SINGLE_PROCESS, options, required=[8, 12]).newest(after=8)
    assert newest == checkpoint_folders(tmp_path / "ours")[0]


def test_divergences_are_measured_before_the_first_step_and_at_doubling_ones(
    pretrain_slice: Any, runtime_slice: Any, token_data: Any, tmp_path: Path
) -> None:
    settings = {**pretrain_slice(steps=11, evaluation_interval_steps=6), "divergences": True}
    rows = Run(tmp_path, token_data, settings, runtime_slice(), 1).train()
    assert [row["step"] for row in rows] == list(range(12))
    assert [row["step"] for row in rows if "kl_unigram" in row] == [0, 1, 2, 4, 6, 8, 11]
    assert set(MEASURES) < set(rows[0]) and "loss" not in rows[0]
    last = rows[-1]
    assert last["kl_empirical"] == pytest.approx(last["development_loss"], rel=1e-6)


def test_fp16_tells_its_loss_scale_and_the_steps_that_it_left_out_and_goes_on_with_both(
    pretrain_slice: Any, runtime_slice: Any, token_data: Any, tmp_path: Path
) -> None:
    settings = pretrain_slice(steps=8, precision="fp16", evaluation_interval_steps=8)

    def start() -> Run:
        return Run(tmp_path, token_data, settings, runtime_slice(checkpoint_interval_steps=4), 1)

    first = start()
    assert first.precision.scaler is not None
    first.precision.scaler.scale = 2.0**120
    rows = first.train()
    assert rows[0]["loss_scale"] == 2.0**120 and rows[0]["skipped_steps"] == 1
    assert rows[-1]["skipped_steps"] == 8 and rows[-1]["loss_scale"] == 2.0**113
    again = start()
    again.resume()
    assert again.precision.scaler is not None and again.precision.scaler.scale == 2.0**112
    assert again.record.skipped_steps == 8


@pytest.mark.parametrize("loss_average", ["tokens", "processes"])
def test_rows_and_weights_are_those_of_a_loop_of_ten_lines(
    pretrain_slice: Any, token_data: Any, train_here: Any, loss_average: str
) -> None:
    changes = {
        **{f"model__{name}_dropout_prob": 0.0 for name in ("hidden", "attention_probs")},
        **{"optimizer__name": "adamw", "optimizer__weight_decay": 0.0, "optimizer__learning_rate": 0.02},
        **{"schedule__warmup_fraction": 0.4, "optimizer__max_gradient_norm": 0.5},
        **{"steps": 5, "evaluation_interval_steps": 2, "loss_average": loss_average},
    }
    made = train_here("run", {"micro_batch_size": 3}, **changes)
    rows = [json.loads(line) for line in made.file("metrics.jsonl").read_text().splitlines()]

    settings = pretrain_settings(pretrain_slice(**changes))
    shards = TokenShards.open(token_data.tokens, TRAINING_SPLIT)
    examples = objective_of(settings.objective).examples(shards, 16)
    held_out = objective_of(settings.objective).examples(TokenShards.open(token_data.tokens, "dev"), 16)
    keys = np.random.Philox(np.random.SeedSequence([20_231_106, 0])).random_raw(len(held_out))
    development = held_out.batch(20_231_106, 0, np.sort(np.argsort(keys)[:8]))
    model = build_model(settings, shards.vocabulary_size, shards.special)
    optimizer = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.98), eps=1e-6, weight_decay=0.0)
    keys = np.random.Philox(np.random.SeedSequence([42, 0])).random_raw(len(examples))
    tokens = 0
    # Two steps of warm-up are followed by half a cosine over three steps, down to a tenth.
    rates = [0.0, 0.01, 0.02, *(0.02 * (0.1 + 0.45 * (1 + math.cos(math.pi * third / 3))) for third in (1, 2))]
    for step, rate in enumerate(rates):
        batch = examples.batch(42, 0, np.argsort(keys)[8 * step : 8 * step + 8])
        output = model(**batch)
        loss = F.cross_entropy(output.logits, output.targets)
        optimizer.zero_grad()
        loss.backward()
        norm = math.sqrt(sum(float((each.grad**2).sum()) for each in model.parameters() if each.grad is not None))
        for each in model.parameters():
            if each.grad is not None:
                each.grad *= min(1.0, 0.5 / norm)
        optimizer.param_groups[0]["lr"] = rate
        optimizer.step()
        tokens += int((batch["input_ids"] != SPECIAL_SETS["babylm"].ids["[PAD]"]).sum())
        right = float((output.logits.argmax(dim=1) == output.targets).double().mean())
        expected = {"step": step + 1, "tokens": tokens, "loss": loss.item(), "masked_accuracy": right}
        expected |= {"learning_rate": rate, "gradient_norm": norm}
        if step + 1 in (2, 4, 5):
            model.eval()
            with torch.no_grad():
                scored = model(**development)
            model.train()
            score = F.cross_entropy(scored.logits, scored.targets).item()
            expected |= {"development_loss": score, "development_perplexity": math.exp(score)}
        assert {key: value for key, value in rows[step].items() if key != "words"} == pytest.approx(expected, rel=2e-4)
    assert len(rows) == 5 and max(row["gradient_norm"] for row in rows) > 0.5


@pytest.mark.parametrize(
    ("average", "processes", "counted", "expected"),
    [
        ("tokens", 1, (12, 4), [12, 4]),
        ("tokens", 1, (12, 0), [12, 1]),
        ("processes", 1, (12, 4), [12, 4]),
        ("processes", 4, (12, 4), [48, 16]),
        ("processes", 4, (12, 0), [48, 4]),
    ],
)
def test_each_term_is_divided_by_its_own_count_and_by_the_processes_whose_means_are_averaged(
    average: Any, processes: int, counted: tuple[int, ...], expected: list[float]
) -> None:
    topology = Topology(0, processes, 0, None, None)
    assert list(divisors(StepBatch([], counted, 99), average, topology, CPU)) == expected


def test_a_run_has_diverged_when_it_has_lost_more_than_a_guess_against_its_best_step() -> None:
    record: Any = SimpleNamespace(skipped_steps=0, lowest_loss=math.inf, position=SimpleNamespace(tokens=10, words=5))
    record.checkpoints = SimpleNamespace(last=lambda: "there is no checkpoint yet")
    plan: Any = SimpleNamespace(learning_rate=lambda step: 0.1 * step)

    def measured(step: int, loss: float) -> Measured:
        return Measured(step, ({"loss": loss},), 7, 3, 1.0, False, None, False)

    steps = [measured(4, 6.0), measured(5, 1.0), measured(6, 2.0), measured(7, 4.0)]
    rows = _rows(plan, record, steps, guessing_loss=3.0)
    assert [row["step"] for row in rows] == [5, 6, 7, 8]
    assert [(row["tokens"], row["words"]) for row in rows] == [(17, 8), (24, 11), (31, 14), (38, 17)]
    assert [row["learning_rate"] for row in rows] == pytest.approx([0.4, 0.5, 0.6, 0.7])
    with pytest.raises(TrainingError, match=r"step 9: the loss is 4\.01, but was 1\.00 at the best step"):
        _rows(plan, record, [*steps, measured(8, 4.01)], guessing_loss=3.0)
