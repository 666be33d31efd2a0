"""Texts, a small module, a stopping watcher and small settings for tests of `hatchery.train`."""

import random
import signal
from pathlib import Path
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

import hatchery
from hatchery.training.watchers import Watcher

MODEL = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "position_bucket_size": 8,
    "max_position_embeddings": 64,
}
TOKENIZER = {"kind": "wordpiece", "vocabulary_size": 300, "allow_smaller": True}
SETTINGS: dict[str, Any] = {"steps": 12, "batch_size": 8, "sequence_length": 16, "evaluation_interval_steps": 4}


def texts(number: int = 60) -> list[str]:
    rng = random.Random(5)
    verbs, nouns = ["sees", "likes", "finds", "carries", "draws"], ["dog", "child", "teacher", "river", "garden"]
    sentence = lambda: f"the {rng.choice(nouns)} {rng.choice(verbs)} a {rng.choice(nouns)} ."  # noqa: E731
    return ["\n".join(sentence() for _ in range(12)) for _ in range(number)]


def trained(folder: Path, given: Any = None, model: Any = MODEL, **changes: Any) -> Any:
    """Train with small settings and `changes` into a folder, on generated texts if no others are given."""
    chosen = {"tokenizer": TOKENIZER, "device": "cpu", **SETTINGS, **changes}
    if "budget" in changes:
        del chosen["steps"]
    return hatchery.train(texts() if given is None else given, folder, model, **chosen)


class Small(nn.Module):
    """Attention over embeddings, with a tied output matrix."""

    def __init__(self, vocabulary_size: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary_size, 16)
        self.query, self.out = nn.Linear(16, 16), nn.Linear(16, vocabulary_size)
        self.out.weight = self.embedding.weight
        nn.init.normal_(self.out.weight, std=0.02)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        states = self.embedding(input_ids)
        read = F.scaled_dot_product_attention(self.query(states), states, states, attn_mask=attention_mask)
        return self.out(states + read)


class Stops(Watcher):
    """Raise SIGINT after `step` steps."""

    def __init__(self, step: int) -> None:
        self.left = step

    def after_step(self, step: int, model: nn.Module) -> None:
        self.left -= 1
        if self.left == 0:
            signal.raise_signal(signal.SIGINT)
