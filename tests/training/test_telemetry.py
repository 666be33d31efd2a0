"""Metrics are equal in every repetition of a run; speed has its own file, and sinks receive both."""

import json
import math
import os
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pyarrow.parquet as pq
import pytest
import torch

from hatchery.artifacts.manifests import volatile_facts
from hatchery.errors import ConfigError
from hatchery.modeling.language_model import LanguageModel
from hatchery.tokenization.special_tokens import SPECIAL_SETS
from hatchery.tokenization.token_shards import TokenShards
from hatchery.training import record as record_module
from hatchery.training import train_and_export
from hatchery.training.batches import StepBatch
from hatchery.training.checkpoints import Position, milestone_steps
from hatchery.training.inputs import Inputs
from hatchery.training.record import RunRecord
from hatchery.training.run import train_run
from hatchery.training.run_checkpoints import RunCheckpoints
from hatchery.training.runtime_settings import RuntimeSettings
from hatchery.training.settings import pretrain_settings
from hatchery.training.speed import Speedometer
from hatchery.training.telemetry import METRICS_FILE, SPEED_FILE, MetricsFile, Sinks, Telemetry, open_sinks
from hatchery.training.topology import SINGLE_PROCESS, Topology
from hatchery.typed import build

CPU = torch.device("cpu")


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_number_that_is_not_finite_never_enters_the_file(tmp_path: Path) -> None:
    metrics = MetricsFile(tmp_path / "metrics.jsonl")
    with pytest.raises(ValueError):
        metrics.append({"step": 1, "loss": float("nan")})
    assert metrics.text() == ""


def test_what_differs_from_machine_to_machine_stays_out_of_the_metrics(tmp_path: Path) -> None:
    texts = []
    for speed in (10.0, 20.0):
        folder = tmp_path / str(speed)
        folder.mkdir()
        telemetry = Telemetry(folder)
        telemetry.step({"step": 1, "loss": 2.0})
        telemetry.step({"step": 2, "loss": 1.0}, {"tokens_per_second": speed, "mfu": None})
        texts.append(telemetry.text())
        telemetry.close()
        assert rows(folder / SPEED_FILE) == [{"step": 2, "tokens_per_second": speed, "mfu": None}]
        assert rows(folder / METRICS_FILE) == [{"step": 1, "loss": 2.0}, {"step": 2, "loss": 1.0}]
    assert texts[0] == texts[1]


def test_a_resumed_run_begins_with_the_metrics_of_its_checkpoint_and_goes_on_with_speed(tmp_path: Path) -> None:
    first = Telemetry(tmp_path)
    for step in (1, 2, 3):
        first.step({"step": step}, {"tokens_per_second": 1.0 * step, "training_seconds": 10.0 * step})
    kept = "".join(first.text().splitlines(keepends=True)[:2])
    first.close()
    with (tmp_path / SPEED_FILE).open("a") as handle:
        handle.write('{"step": 4, "tok')  # a kill in the middle of a line
    second = Telemetry(tmp_path, kept)
    assert second.seconds() == 30.0
    second.step({"step": 3}, {"tokens_per_second": 9.0})
    assert [row["step"] for row in rows(tmp_path / METRICS_FILE)] == [1, 2, 3]
    speeds = [(row["step"], row["tokens_per_second"]) for row in rows(tmp_path / SPEED_FILE)]
    assert speeds == [(1, 1.0), (2, 2.0), (3, 3.0), (3, 9.0)]
    assert second.speed_text() == (tmp_path / SPEED_FILE).read_text()
    second.close()


class FakeWriter:
    """The part of TensorBoard's SummaryWriter that sinks use."""

    def __init__(self, log_dir: str, purge_step: int) -> None:
        self.log_dir, self.purge_step, self.closed = log_dir, purge_step, False
        self.scalars: list[tuple[str, float, int]] = []
        written.append(self)

    def add_scalar(self, name: str, value: float, step: int) -> None:
        self.scalars.append((name, value, step))

    def close(self) -> None:
        self.closed = True


written: list[FakeWriter] = []


def test_tensorboard_gets_metrics_and_speed_as_scalars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake: Any = ModuleType("torch.utils.tensorboard")
    fake.SummaryWriter = FakeWriter
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", fake)
    telemetry = Telemetry(tmp_path, sinks=open_sinks(["tensorboard"], tmp_path, "my_run", after_step=6))
    telemetry.step({"step": 7, "loss": 2.5}, {"tokens_per_second": 10.0, "mfu": None})
    telemetry.close()
    writer = written.pop()
    assert writer.scalars == [("loss", 2.5, 7), ("tokens_per_second", 10.0, 7)]
    assert (writer.log_dir, writer.purge_step, writer.closed) == (str(tmp_path / "tensorboard" / "my_run"), 7, True)


def test_trackio_gets_a_row_per_step_and_goes_on_with_its_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[Any, ...]] = []
    fake: Any = ModuleType("trackio")
    fake.init = lambda **keywords: calls.append(("init", keywords))
    fake.log = lambda values, step: calls.append(("log", values, step))
    fake.finish = lambda: calls.append(("finish",))
    monkeypatch.setitem(sys.modules, "trackio", fake)
    monkeypatch.setenv("TRACKIO_DIR", "theirs")
    telemetry = Telemetry(tmp_path, sinks=open_sinks(["trackio"], tmp_path, "my_run"), per_byte=0.25)
    telemetry.step({"step": 1, "loss": 2.5})
    telemetry.step({"step": 2, "loss": 2.5, "development_loss": 2 * math.log(2)})
    telemetry.close()
    assert calls == [
        ("init", {"project": "hatchery", "name": "my_run", "resume": "allow"}),
        ("log", {"loss": 2.5}, 1),
        ("log", {"loss": 2.5, "development_loss": 2 * math.log(2), "development_bits_per_byte": 0.5}, 2),
        ("finish",),
    ]
    # A folder that the user has set has priority over the run's folder.
    assert os.environ["TRACKIO_DIR"] == "theirs"
    monkeypatch.delenv("TRACKIO_DIR")
    open_sinks(["trackio"], tmp_path, "my_run")
    assert os.environ["TRACKIO_DIR"] == str(tmp_path / "trackio")


def test_weights_and_biases_stays_offline_and_goes_on_with_the_run_of_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[Any, ...]] = []
    run = SimpleNamespace(log=lambda values, step: calls.append((values, step)), finish=lambda: calls.append(()))
    fake: Any = ModuleType("wandb")
    fake.init = lambda **keywords: calls.append((keywords, os.environ["WANDB_MODE"])) or run
    monkeypatch.setitem(sys.modules, "wandb", fake)
    monkeypatch.delenv("WANDB_MODE", raising=False)
    for folder, name in (("one", "my_run"), ("one", "my_run"), ("two", "my_run"), ("two", "my_other_run")):
        telemetry = Telemetry(tmp_path, sinks=open_sinks(["wandb"], tmp_path / folder, name))
        telemetry.step({"step": 1, "loss": 2.5})
        telemetry.close()
    starts, rows, ends = calls[::3], calls[1::3], calls[2::3]
    assert (rows, ends) == ([({"loss": 2.5}, 1)] * 4, [()] * 4)
    assert {(given["resume"], mode) for given, mode in starts} == {("allow", "offline")}
    assert [given["name"] for given, _ in starts] == ["my_run"] * 3 + ["my_other_run"]
    folders = ("one", "one", "two", "two")
    assert [given["dir"] for given, _ in starts] == [str(tmp_path / name / "wandb") for name in folders]
    first, again, *others = (given["id"] for given, _ in starts)
    assert first == again and len({first, *others}) == 3
    monkeypatch.setenv("WANDB_MODE", "disabled")
    open_sinks(["wandb"], tmp_path, "my_run").close()
    assert calls[-2][1] == "disabled", "whoever set it wants it so"


@pytest.mark.parametrize(
    ("name", "module"), [("tensorboard", "torch.utils.tensorboard"), ("trackio", "trackio"), ("wandb", "wandb")]
)
def test_a_missing_package_is_named_with_the_key_that_asked_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, module: str
) -> None:
    # None makes the import fail as if the package were not installed.
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setenv("TRACKIO_DIR", "theirs")
    monkeypatch.setenv("WANDB_MODE", "offline")
    with pytest.raises(ConfigError, match=rf"^compute\.sinks: .*needs the package {name}, which is not installed") as e:
        open_sinks([name], tmp_path, "my_run")
    assert "\n" not in str(e.value)


def test_nothing_is_imported_for_sinks_that_nobody_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("torch.utils.tensorboard", "trackio", "wandb"):
        monkeypatch.setitem(sys.modules, module, None)
    telemetry = Telemetry(tmp_path, sinks=open_sinks([], tmp_path, "my_run"))
    telemetry.step({"step": 1})
    telemetry.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == [METRICS_FILE, SPEED_FILE]


def test_a_sink_that_fails_is_given_up_and_training_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    class Broken:
        def log(self, step: int, values: Any) -> None:
            raise OSError("no space left\non the device")

        def close(self) -> None:
            raise AssertionError("it was given up")

    telemetry = Telemetry(tmp_path, sinks=Sinks({"broken": Broken()}))
    telemetry.step({"step": 1, "loss": 1.0})
    telemetry.step({"step": 2, "loss": 1.0})
    telemetry.close()
    assert (
        capsys.readouterr().err
        == "warning: the tracker broken is closed and receives no more metrics: OSError: no space left\n"
    )
    assert len(rows(tmp_path / METRICS_FILE)) == 2


def test_a_run_tells_its_sinks_bits_per_byte(
    token_data: Any, pretrain_slice: Any, runtime_slice: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[dict[str, float]] = []
    fake: Any = ModuleType("trackio")
    fake.init, fake.finish = lambda **_: None, lambda: None
    fake.log = lambda values, step: told.append(values)
    monkeypatch.setitem(sys.modules, "trackio", fake)
    monkeypatch.setenv("TRACKIO_DIR", "theirs")
    inputs = Inputs(token_data.tokens, token_data.tokenizer)
    for sinks in ([], ["trackio"]):
        settings = pretrain_settings(pretrain_slice(steps=0))
        options = build(RuntimeSettings, runtime_slice(sinks=sinks), "runtime")
        made: Any = {"store": None, "folder": tmp_path, "output": tmp_path / "manifest.json", "name": "run"}
        record = train_run(settings, options, inputs, SINGLE_PROCESS, **made).record
        with record:
            record.append({"step": 1, "tokens": 8, "loss": 2.0, "development_loss": 2.0})
    (row,) = told
    # Sentences are encoded one by one, so their ordinary tokens represent all bytes but those of line ends.
    shards = TokenShards.open(token_data.tokens, "dev")
    n_tokens = sum(int((document.ids >= len(SPECIAL_SETS["babylm"].order)).sum()) for document in shards)
    files = token_data.corpus.parent.glob("dev-*.parquet")
    texts = [text for path in files for text in pq.read_table(path)["text"].to_pylist()]
    n_bytes = sum(len(line.encode("utf-8")) for text in texts for line in text.splitlines())
    assert len(texts) == 20
    assert row["development_bits_per_byte"] == pytest.approx(2.0 / math.log(2) * n_tokens / n_bytes, rel=1e-12)
    assert "development_bits_per_byte" not in rows(tmp_path / METRICS_FILE)[-1]


def test_a_record_counts_all_attempts_and_processes_and_saves_at_intervals_and_milestones(
    tmp_path: Path, runtime_slice: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [1000.0]
    monkeypatch.setattr(record_module.time, "monotonic", lambda: now[0])
    changes = {"log_interval_steps": 2, "checkpoint_interval_steps": 4, "milestones": [0.5]}
    options = build(RuntimeSettings, runtime_slice(**changes), "runtime")
    # An earlier attempt trained for 50 seconds until its last reading.
    (tmp_path / SPEED_FILE).write_text('{"step": 2, "training_seconds": 50.0}\n')
    topology = Topology(0, 2, 0, "a", 1)
    checkpoints = RunCheckpoints(tmp_path, topology, options, milestone_steps(options.milestones, 10), [3])
    assert [step for step in range(1, 11) if checkpoints.is_due(step)] == [3, 4, 5, 8]
    speed = Speedometer(CPU, devices=2, clock=lambda: now[0])
    record = RunRecord("run", 5, checkpoints, speed, lambda *begun: Telemetry(tmp_path, begun[0]), 3)
    record.position = record.resumed_from = Position(2, 400, 90)
    batch = StepBatch([], (6,), tokens=300)
    engine: Any = SimpleNamespace(topology=topology)
    with record:
        counted: list[tuple[int, float]] = []
        with monkeypatch.context() as patch:
            patch.setattr(record._speed, "count", lambda tokens, flops: counted.append((tokens, flops)))
            record.count(batch, engine, engine)
            # With a known peak of the device, the operations of three micro-batches are counted, 7 for each.
            record._speed.peak = 1e6
            patch.setattr(record_module, "training_flops", lambda config, shape: shape)
            known = SimpleNamespace(topology=topology, model=Mock(spec=LanguageModel, config=None))
            parts = StepBatch([{"input_ids": torch.zeros(2, 4)}] * 3, (6,), tokens=300)
            shape: Any = SimpleNamespace(pass_shape=lambda part, share: 7 * share)
            record.count(parts, known, shape)  # type: ignore[arg-type]
            record._speed.peak = None
        # Two processes double one process's tokens and operations; six sequences have six labels.
        assert counted == [(600, 0.0), (600, 42.0)]
        record.count(batch, engine, engine)
        # 63 operations in 3 seconds are half of the peak of two devices with 21 operations per second each.
        record._speed.peak = 21.0
        now[0] += 4
        record.append({"step": 3, "tokens": 1000, "words": 200, "loss": 1.5})
        record._speed.count(600, 63.0)
        now[0] += 1
        record.append({"step": 4, "tokens": 1300, "words": 250, "loss": 1.75})
        # A checkpoint takes a second, which belongs to the time of the training but not to that of its steps.
        with monkeypatch.context() as patch:
            patch.setattr(checkpoints, "save", lambda *_: now.__setitem__(0, now[0] + 1))
            record.checkpoint(engine)
        now[0] += 2
        record.append({"step": 5, "tokens": 1600, "words": 300, "loss": 2.0, "development_loss": 2.5})
    begun, announced, ended = (line.split(maxsplit=2)[2] for line in capsys.readouterr().err.splitlines())
    assert begun == f"run: continues after step 2 from {tmp_path}"
    assert announced == "run: 3 steps to do"
    assert ended == "run: 5 steps done in 8.0 s loss=2.000 tokens/s=200 mfu=0.500 development_loss=2.500"
    # Speed is read every three steps and after the last step.
    _, first, last = rows(tmp_path / SPEED_FILE)
    assert (first["step"], first["tokens_per_second"], first["training_seconds"]) == (3, 150.0, 54.0)
    assert (last["step"], last["training_seconds"]) == (5, 58.0)
    assert (record.training_seconds(), record.tokens_per_second()) == (58.0, 150.0)
    assert (record.position, record.lowest_loss) == (Position(5, 1600, 300), 1.5)


def test_the_provenance_of_a_run_has_its_own_seconds_speed_and_milestones(
    train_here: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained = train_and_export.train_run
    monkeypatch.setattr(
        train_and_export, "train_run", lambda *given: replace(trained(*given), loader_wait_seconds=1.23456)
    )
    monkeypatch.setattr(RunRecord, "training_seconds", lambda _: 98.76543)
    monkeypatch.setattr(RunRecord, "tokens_per_second", lambda _: 456.78)
    made = train_here("run", steps=6, evaluation_interval_steps=2, milestones=[4, 2])
    facts = volatile_facts(made.path)
    names = ("training_seconds", "tokens_per_second", "loader_wait_seconds", "resumed_from_step", "compile")
    assert [facts[name] for name in names] == [98.765, 456.8, 1.235, 0, "off"]
    assert facts["milestones"] == [2, 4]
