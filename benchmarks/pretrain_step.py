"""Overhead of the engine: time of a step of Hatchery's training loop, compared with a plain torch loop.

The baseline runs forward and backward passes, clipping and the same optimiser in plain torch, in one process, with the
same model and batches. The two loops alternate, so that other jobs slow both loops equally. The ratio is the engine's
median time divided by the baseline's median time. The default model is the demo's model. The program prints the ratio
and its maximum, and fails if the ratio exceeds this maximum.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))

import torch
from torch import Tensor, nn

from hatchery.modeling.language_model import UNLABELLED, LanguageModel, initialise_
from hatchery.modeling.ltg.config import LtgBertConfig
from hatchery.training.batches import StepBatch
from hatchery.training.engine import Engine
from hatchery.training.loop import StepMeasures, accumulate_gradients
from hatchery.training.objectives import objective_of
from hatchery.training.objectives.masked import MaskedSettings
from hatchery.training.optimizer_settings import OptimizerSettings
from hatchery.training.optimizers import build_optimizer
from hatchery.training.precision import Precision
from hatchery.training.processes import prepare_device, process_group, select_device
from hatchery.training.topology import SINGLE_PROCESS

LIMIT = 1.10
OPTIMIZER = OptimizerSettings()
VOCABULARY = 2048


def make_model(device: torch.device) -> LanguageModel:
    config = LtgBertConfig(
        vocab_size=VOCABULARY,
        hidden_size=128,
        intermediate_size=344,
        num_hidden_layers=4,
        num_attention_heads=4,
        max_position_embeddings=128,
        position_bucket_size=16,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        layer_weighting="biased",
    )
    model = LanguageModel(config).to(device)
    initialise_(model, 42)
    return model


def make_batch(sequences: int, length: int) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(7, VOCABULARY, (sequences, length), generator=generator)
    labelled = torch.rand(ids.shape, generator=generator) < 0.15
    labels = torch.where(labelled, ids, UNLABELLED)
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids, dtype=torch.bool), "labels": labels}


def plain_step(device: torch.device, batch: dict[str, Tensor]) -> Callable[[int], None]:
    model = make_model(device).train()
    optimizer = build_optimizer(model, OPTIMIZER)
    labelled = int((batch["labels"] != UNLABELLED).sum())

    def step(number: int) -> None:
        for group in optimizer.param_groups:
            group["lr"] = 0.001
        output = model(**{key: value.to(device) for key, value in batch.items()})
        (output.loss_sum / labelled).backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), OPTIMIZER.max_gradient_norm, foreach=True)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        (output.loss_sum.item(), output.n_correct.item(), norm.item())

    return step


def engine_step(device: torch.device, batch: dict[str, Tensor]) -> Callable[[int], None]:
    model = make_model(device)
    optimizer = build_optimizer(model, OPTIMIZER)
    engine = Engine(model, optimizer, OPTIMIZER.max_gradient_norm, Precision("fp32"), device, SINGLE_PROCESS)
    labelled, tokens = int((batch["labels"] != UNLABELLED).sum()), int(batch["attention_mask"].sum())
    objective = objective_of(MaskedSettings())
    measures = StepMeasures("tokens", SINGLE_PROCESS, device, objective.columns)

    def step(number: int) -> None:
        engine.begin_step(42, number, 0.001)
        drawn = StepBatch([batch], (labelled,), tokens)
        sums = accumulate_gradients(engine, drawn, "tokens", objective)
        measures.add(number, drawn, sums, engine.step(), stop=False)
        measures.read()

    return step


def timed(step: Callable[[int], None], number: int) -> float:
    started = time.perf_counter()
    step(number)
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--sequences", type=int, default=32)
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    arguments = parser.parse_args()
    device = select_device(arguments.device, SINGLE_PROCESS)
    prepare_device(device, arguments.threads)
    batch = make_batch(arguments.sequences, arguments.length)
    with process_group(SINGLE_PROCESS, device):
        plain, engine = plain_step(device, batch), engine_step(device, batch)
        for number in range(5):
            plain(number)
            engine(number)
        pairs = [(timed(plain, number), timed(engine, number)) for number in range(arguments.steps)]
    plain_seconds, engine_seconds = (statistics.median(column) for column in zip(*pairs, strict=True))
    ratio = engine_seconds / plain_seconds
    rate = arguments.sequences * arguments.length / engine_seconds
    print(
        f"pretrain_step: engine {1000 * engine_seconds:.1f} ms per step, plain loop {1000 * plain_seconds:.1f} ms per "
        f"step, time of the engine / time of the plain loop {ratio:.3f} (maximum {LIMIT}); the engine computes "
        f"{rate:,.0f} tokens/s on {device} "
        f"with {arguments.threads} thread(s)"
    )
    sys.exit(0 if ratio <= LIMIT else 1)


if __name__ == "__main__":
    main()
