"""Tokens per second of the whole loop against bare forward and backward passes of the same model on the same batches.

The time of the loop includes drawing of batches, DeepSpeed, sums over processes, clipping, LAMB, rows of metrics, and
progress. Indexing of the corpus, evaluation and checkpoints are not timed. The time of an update does not depend on the
batch size, so a small batch would exaggerate the share of updates. A global batch therefore has `--sequences` sequences
in micro-batches of `--micro-batch`, as in a run whose batch does not fit on the device. The loop and the bare passes
alternate step by step, with one thread; CPU time of the process is measured or, on a CUDA device, wall time. The
program prints the speed of the loop divided by the speed of the bare passes, and fails if this ratio is below its
minimum.

With `--processes 2`, the loop also runs in two processes, and the ratio of the speeds per process is printed; the ratio
is only meaningful with two free processors.

    python benchmarks/training_loop.py --tokens results/<...>/manifest.json [--sequences 512] [--micro-batch 32]
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))

import torch

from hatchery.modeling.language_model import LanguageModel, initialise_, labelled_positions
from hatchery.modeling.ltg.config import LtgBertConfig
from hatchery.tokenization.documents import TRAINING_SPLIT
from hatchery.tokenization.token_shards import TokenShards
from hatchery.training.batches import BatchLoader, StepBatch, TrainingBatches
from hatchery.training.engine import Engine
from hatchery.training.loop import train
from hatchery.training.objectives import objective_of
from hatchery.training.objectives.causal import CausalSettings
from hatchery.training.objectives.masked import MaskedSettings
from hatchery.training.optimizer_settings import OptimizerSettings
from hatchery.training.optimizers import build_optimizer
from hatchery.training.precision import resolve_precision
from hatchery.training.processes import prepare_device, process_group, select_device
from hatchery.training.record import RunRecord
from hatchery.training.run_checkpoints import RunCheckpoints
from hatchery.training.runtime_settings import RuntimeSettings
from hatchery.training.settings import OutputBiasSettings, PretrainSettings, ScheduleSettings
from hatchery.training.speed import Speedometer, peak_flops_of
from hatchery.training.step_plan import StepPlan
from hatchery.training.telemetry import Telemetry
from hatchery.training.topology import Topology, read_topology

LIMIT = 0.92
OBJECTIVE = MaskedSettings()
OPTIMIZER = OptimizerSettings()


def make_model(vocabulary_size: int, device: torch.device) -> LanguageModel:
    """Return an LTG-BERT of the size of `ltg_mini` (config/models)."""
    config = LtgBertConfig(
        vocab_size=vocabulary_size,
        hidden_size=128,
        intermediate_size=344,
        num_hidden_layers=6,
        num_attention_heads=4,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    return initialised(config, device)


def initialised(config: LtgBertConfig, device: torch.device, causal: bool = False) -> LanguageModel:
    """Return a model on `device` whose random initial weights have the seed 42."""
    model = LanguageModel(config, causal=causal)
    initialise_(model, 42)
    return model.to(device)


class Turns(BatchLoader):
    """A loader for the training loop. Before the loop receives a batch, the model `bare` computes a forward and
    backward pass of the batch; the times of `bare` and of the loop are recorded separately.
    """

    def __init__(self, batches: TrainingBatches, workers: int, bare: LanguageModel | None, engine: Engine) -> None:
        super().__init__(batches, workers, pin_memory=engine.device.type == "cuda")
        self.bare, self.engine = bare, engine
        self.loop_seconds: list[float] = []
        self.bare_seconds: list[float] = []
        self.tokens: list[int] = []

    @contextmanager
    def from_step(self, first_step: int) -> Iterator[Iterator[StepBatch]]:
        """Yield an iterator over the loader's batches, and record for each batch the seconds of the loop and of the
        model `bare`.
        """
        with super().from_step(first_step) as drawn:
            yield self._in_turns(drawn)

    def _in_turns(self, drawn: Iterator[StepBatch]) -> Iterator[StepBatch]:
        # The processor time of drawing, in the loop's or in the loader's thread, is between two readings.
        began = self._now()
        for batch in drawn:
            aside = 0.0
            if self.bare is not None:
                aside = self._bare_step(batch)
                self.bare_seconds.append(aside)
            yield batch
            now = self._now()
            self.loop_seconds.append(now - began - aside)
            self.tokens.append(batch.tokens)
            began = now

    def _bare_step(self, batch: StepBatch) -> float:
        # The time of this thread only, because batches that the loader draws meanwhile belong to the loop.
        now = self._now if self.engine.device.type == "cuda" else time.thread_time
        started = now()
        model = self.bare
        assert model is not None
        device, precision = self.engine.device, self.engine.precision
        for part in batch.micro_batches:
            # Compute the labelled positions before the batch is moved, as in the engine, to avoid a synchronisation
            # with the GPU.
            part = {**part, "labelled": labelled_positions(part["labels"])}
            with precision.autocast(device.type):
                output = model(**{key: value.to(device, non_blocking=True) for key, value in part.items()})
            (output.loss_sum / batch.labelled).backward()
        model.zero_grad(set_to_none=True)
        return now() - started

    def _now(self) -> float:
        if self.engine.device.type == "cuda":
            torch.cuda.synchronize()
            return time.perf_counter()
        return time.process_time()


def run(
    arguments: argparse.Namespace,
    topology: Topology,
    folder: Path,
    model_of: Callable[[int, torch.device], LanguageModel] = make_model,
    beside_bare: bool = True,
    objective: MaskedSettings | CausalSettings = OBJECTIVE,
) -> dict[str, float]:
    """Return the tokens per second of the training loop in this process. With one process and `beside_bare`, bare
    forward and backward passes alternate with the loop, and the result also contains their tokens per second.

    `waited` is the share of the wall time in which the loop waits for batches. This share is meaningful only without
    bare passes, whose time is part of the wall time.
    """
    shards = TokenShards.open(arguments.tokens, TRAINING_SPLIT)
    device = select_device(arguments.device, topology)
    prepare_device(device, 1)
    precision = resolve_precision(arguments.precision, device)
    settings = PretrainSettings(
        model={},
        objective=objective,
        output_bias=OutputBiasSettings(),
        optimizer=OPTIMIZER,
        schedule=ScheduleSettings("cosine", 0.1, 0.1),
        steps=arguments.steps,
        sequence_length=arguments.length,
        batch_size=arguments.sequences,
        long_sequence=None,
        precision=precision.name,
        evaluation_interval_steps=10**6,
        evaluation_sequences=0,
        seed=42,
    )
    runtime = RuntimeSettings(
        device=arguments.device,
        micro_batch_size=arguments.micro_batch,
        checkpoint_interval_steps=10**6,
        keep_checkpoints=1,
        background_checkpoints=False,
        threads=1,
    )
    examples = objective_of(objective).examples(shards, arguments.length)
    batches = TrainingBatches(StepPlan(settings), 42, topology, arguments.micro_batch, lambda length: examples)
    with process_group(topology, device):
        model = model_of(shards.vocabulary_size, device)
        optimizer = build_optimizer(model, OPTIMIZER)
        with Engine(model, optimizer, 2.0, precision, device, topology) as engine:
            has_bare = beside_bare and topology.world_size == 1
            bare = model_of(shards.vocabulary_size, device).train() if has_bare else None
            loader = Turns(batches, arguments.workers, bare, engine)
            checkpoints = RunCheckpoints(folder, topology, runtime)
            speed = Speedometer(device, topology.world_size, peak_flops_of(device, precision.name))
            opened = (lambda text, step: Telemetry(folder, text)) if topology.is_first else None
            log = runtime.log_interval_steps
            read = 1 if device.type == "cpu" else log
            record = RunRecord("training_loop", settings.steps, checkpoints, speed, opened, log, read)
            started = time.perf_counter()
            train(objective_of(settings.objective), engine, loader, record)
            wall = time.perf_counter() - started
    # Do not time the first steps, which allocate memory and fill the loader's queue.
    kept = slice(2, None)
    tokens = statistics.median(loader.tokens[kept])
    return {
        "loop": tokens / statistics.median(loader.loop_seconds[kept]),
        "bare": tokens / statistics.median(loader.bare_seconds[kept]) if loader.bare_seconds else 0.0,
        "wall": sum(loader.tokens) / wall,
        "waited": loader.waited_seconds / wall,
    }


def two_processes(arguments: argparse.Namespace) -> list[dict[str, float]]:
    """Run the loop in two processes that share the global batch; return for each process the results of `run`."""
    meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(arguments.port), "WORLD_SIZE": "2"}
    command = [sys.executable, *sys.argv, "--processes", "1"]
    running = [
        subprocess.Popen(
            command,
            env={**os.environ, **meeting, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for rank in range(2)
    ]
    return [json.loads(process.communicate()[0].splitlines()[-1]) for process in running]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=Path, required=True, help="manifest of token shards")
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--sequences", type=int, default=512, help="number of sequences in a global batch")
    parser.add_argument("--micro-batch", type=int, default=32)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precision", default="auto")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--port", type=int, default=29_531)
    arguments = parser.parse_args()
    topology = read_topology(os.environ)
    with tempfile.TemporaryDirectory() as folder:
        figures = run(arguments, topology, Path(folder))
    if topology.world_size > 1:
        print(json.dumps(figures))
        return
    ratio = figures["loop"] / figures["bare"]
    print(
        f"training_loop: loop {figures['loop']:,.0f} tokens/s, bare forward and backward passes {figures['bare']:,.0f} "
        f"tokens/s, speed of the loop / speed of the bare passes {ratio:.3f} (minimum {LIMIT}); the loop waited "
        f"{100 * figures['waited']:.1f} % of the wall time for batches; device {arguments.device}"
    )
    if arguments.processes == 2:
        both = two_processes(arguments)
        per_process = sum(one["loop"] for one in both) / 2
        print(
            f"training_loop: 2 processes {2 * per_process:,.0f} tokens/s; "
            f"speed per process / speed of a single process {per_process / figures['loop']:.3f}; "
            f"by wall time, 2 processes {sum(one['wall'] for one in both):,.0f} tokens/s"
        )
    sys.exit(0 if ratio >= LIMIT else 1)


if __name__ == "__main__":
    main()
