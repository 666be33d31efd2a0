"""Tokens per second of the loader alone, drawn by a thread and by processes, and how much a training has to wait.

Batches come from the shards of a real corpus through the run's own objective and masking. The first lines are the
loader alone, nothing else running; the last is a training that takes `--step-milliseconds` per step outside of the
interpreter, as a GPU does, and the share of its time that it stood still for batches. Fails above the limit.

    python benchmarks/loader.py --tokens results/<...>/manifest.json [--workers 0 1 2] [--sequences 256] [--length 128]
"""

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))

from hatchery.tokenization.documents import TRAINING_SPLIT
from hatchery.tokenization.token_shards import TokenShards
from hatchery.training.batches import BatchLoader, TrainingBatches
from hatchery.training.data_order import Phase
from hatchery.training.objectives import objective_of
from hatchery.training.objectives.masked import MaskedSettings
from hatchery.training.topology import SINGLE_PROCESS

LIMIT = 0.02
"""Largest share of the time that a training may wait."""


def make_loader(arguments: argparse.Namespace, workers: int) -> BatchLoader:
    shards = TokenShards.open(arguments.tokens, TRAINING_SPLIT)
    phases = [Phase(0, arguments.steps, arguments.length, arguments.sequences)]
    batches = TrainingBatches(
        phases,
        42,
        SINGLE_PROCESS,
        arguments.micro_batch,
        lambda length: objective_of(MaskedSettings()).examples(shards, length),
    )
    # The index is made once per phase and is no part of the speed.
    batches.examples_at(0)
    return BatchLoader(batches, workers)


def measure(loader: BatchLoader, step_seconds: float) -> tuple[float, float]:
    """Tokens per second, and the share of the time that was spent waiting for batches."""
    tokens = 0
    with loader.from_step(0) as batches:
        next(batches)
        loader.waited_seconds, started = 0.0, time.perf_counter()
        for batch in batches:
            tokens += batch.tokens
            time.sleep(step_seconds)
        seconds = time.perf_counter() - started
    return tokens / seconds, loader.waited_seconds / seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=Path, required=True, help="manifest of token shards")
    parser.add_argument("--workers", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--sequences", type=int, default=256)
    parser.add_argument("--micro-batch", type=int, default=64)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--step-milliseconds", type=float, default=250.0)
    arguments = parser.parse_args()
    waited = 0.0
    for workers in arguments.workers:
        who = f"{workers} process(es)" if workers else "a thread"
        rate, _ = measure(make_loader(arguments, workers), 0.0)
        trained, waited = measure(make_loader(arguments, workers), arguments.step_milliseconds / 1000)
        print(
            f"loader by {who}: {rate:,.0f} tokens/s alone; a training of {trained:,.0f} tokens/s waits "
            f"{100 * waited:.2f} % of its time (limit {100 * LIMIT:.0f} %)",
            flush=True,
        )
    sys.exit(0 if waited <= LIMIT else 1)


if __name__ == "__main__":
    main()
