"""A small model, batches and four steps of the engine, for its tests."""

from dataclasses import replace

import torch
from torch import Tensor, nn

from hatchery.modeling.language_model import LanguageModel, initialise_
from hatchery.modeling.ltg.family import LtgBertConfig
from hatchery.tokenization.special_tokens import UNLABELLED
from hatchery.training.engine import Engine, Update
from hatchery.training.optimizers import build_optimizer
from hatchery.training.precision import Precision, resolve_precision
from hatchery.training.settings import OptimizerSettings
from hatchery.training.topology import SINGLE_PROCESS

CPU = torch.device("cpu")
FP32 = Precision("fp32")
VOCABULARY, LENGTH = 50, 12
# The epsilon is large, because Adam's m / sqrt(v) would blow up the rounding of gradients that are almost zero.
OPTIMIZER = OptimizerSettings("lamb", 0.01, 0.1, 0.9, 0.98, 1e-3, max_gradient_norm=0.5)


def make_model(dropout: float = 0.0) -> LanguageModel:
    model = LanguageModel(
        LtgBertConfig(
            vocab_size=VOCABULARY,
            hidden_size=32,
            intermediate_size=48,
            num_hidden_layers=2,
            num_attention_heads=2,
            position_bucket_size=8,
            hidden_dropout_prob=dropout,
            attention_probs_dropout_prob=dropout,
            layer_weighting="biased",
        )
    )
    initialise_(model, 7)
    return model


def make_batch(sequences: int, seed: int) -> dict[str, Tensor]:
    """Random sequences in which the numbers of labels differ widely, and one has no padding."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(7, VOCABULARY, (sequences, LENGTH), generator=generator)
    mask = torch.arange(LENGTH)[None] < torch.randint(3, LENGTH + 1, (sequences, 1), generator=generator)
    labelled = torch.rand(sequences, LENGTH, generator=generator) < torch.linspace(0.1, 0.9, sequences)[:, None]
    labels = torch.where(labelled & mask, ids, UNLABELLED)
    labels[:, 1] = ids[:, 1]
    return {"input_ids": ids, "attention_mask": mask, "labels": labels}


def cut(batch: dict[str, Tensor], size: int) -> list[dict[str, Tensor]]:
    pieces = range(0, len(batch["input_ids"]), size)
    return [{key: value[start : start + size] for key, value in batch.items()} for start in pieces]


def train_with_engine(
    micro_batch_size: int, precision: str = "fp32", name: str = "lamb"
) -> tuple[nn.Module, list[float]]:
    model = make_model()
    optimizer = build_optimizer(model, replace(OPTIMIZER, name=name))
    engine = Engine(
        model, optimizer, OPTIMIZER.max_gradient_norm, resolve_precision(precision, CPU), CPU, SINGLE_PROCESS
    )
    norms = []
    for step in range(4):
        batch = make_batch(6, step)
        labelled = int((batch["labels"] != UNLABELLED).sum())
        engine.begin_step(seed=3, step=step, learning_rate=0.02)
        for piece in cut(batch, micro_batch_size):
            engine.backward(engine.forward(piece).loss_sum / labelled)
        norms.append(engine.step().gradient_norm.item())
    return model, norms


def one_step(engine: Engine, batch: dict[str, Tensor]) -> Update:
    engine.begin_step(seed=3, step=0, learning_rate=0.02)
    engine.backward(engine.forward(batch).loss_sum / 10)
    return engine.step()
