"""Objectives, batches of real shards, and their rows without padding."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from hatchery.tokenization.documents import TRAINING_SPLIT
from hatchery.tokenization.special_tokens import SPECIAL_SETS
from hatchery.tokenization.token_shards import TokenShards
from hatchery.training.batches import BatchLoader, StepBatch, TrainingBatches
from hatchery.training.objectives import objective_of
from hatchery.training.settings import PretrainSettings
from hatchery.training.step_plan import StepPlan
from hatchery.training.topology import Topology

Factory = Callable[..., dict[str, Any]]
PAD = SPECIAL_SETS["babylm"].ids["[PAD]"]
OBJECTIVES: dict[str, dict[str, Any]] = {
    "babylm": {},
    "whole words": {"objective__kind": "whole_word", "objective__segments": "bnc"},
    "packed": {"objective__segments": "packed"},
    "document pairs": {"objective__segments": "bnc", "objective__sentence_pairs": "document"},
    "order pairs": {"objective__sentence_pairs": "order"},
    "padding as published": {
        "objective__kind": "subword",
        "objective__segments": "documents",
        "objective__special_tokens_maskable": True,
        "objective__padding_in_loss": True,
        "objective__padding_attended": True,
    },
}


def make_batches(settings: PretrainSettings, token_data: Any, topology: Topology, size: int | None) -> TrainingBatches:
    shards = TokenShards.open(token_data.tokens, TRAINING_SPLIT)
    make = partial(objective_of(settings.objective).examples, shards)
    return TrainingBatches(StepPlan(settings), settings.seed, topology, size, make)


def rows(micro_batches: list[dict[str, torch.Tensor]]) -> list[list[Any]]:
    """Return each sequence's ids, labels, mask and pair label, without padding."""
    found: list[list[Any]] = []
    for batch in micro_batches:
        for row, ids in enumerate(batch["input_ids"]):
            tokens = ids != PAD
            mask = batch["attention_mask"][row]
            kept = mask[tokens] if mask.dim() == 1 else mask[tokens][:, tokens]
            found.append([ids[tokens].tolist(), batch["labels"][row, tokens].tolist(), kept.tolist()])
            if "pair_labels" in batch:
                found[-1].append(int(batch["pair_labels"][row]))
    return found


def drawn(loader: BatchLoader, first_step: int) -> list[StepBatch]:
    with loader.from_step(first_step) as batches:
        return list(batches)
