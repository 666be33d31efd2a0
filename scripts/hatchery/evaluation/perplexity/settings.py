"""What a perplexity is measured on and how: the splits, the masks, the length and number of the sequences.

Part of the result's identity, except `PerplexityRuntime`. Impossible values are refused before anything is read.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from hatchery.errors import ConfigError
from hatchery.evaluation.runtime import DeviceName
from hatchery.settings.fields import Settings
from hatchery.typed import build, stage_body

# Large enough to fill a GPU; the logits are made in smaller parts.
TOKENS_PER_BATCH = 16384


@dataclass(frozen=True)
class PerplexitySettings(Settings):
    """Which guesses a model is asked for."""

    splits: tuple[Literal["dev", "test"], ...]
    # Tokens of a sequence, special tokens included.
    sequence_length: int
    # "common": single subwords, the same for every model with this tokenizer. "own": the objective that the model was
    # trained with, which compares seeds and sizes but not objectives.
    masking: Literal["common", "own"] = "common"
    # The three shares of common masks; without random and kept tokens every guess is behind a [MASK].
    mask_probability: float = 0.15
    random_probability: float = 0.0
    keep_probability: float = 0.0
    # How common sequences are cut out of documents.
    segments: Literal["babylm", "bnc", "packed", "documents"] = "babylm"
    # At most so many sequences of each split, drawn with `seed`; null takes all.
    sequences: int | None = None
    # Draws sequences, masks and the sentences of the pseudo-perplexity.
    seed: int = 20_231_106
    # Also exp(-log-likelihood per token) with every token masked alone, over so many sentences; 0 leaves it out.
    pseudo_perplexity_sentences: int = 0


@dataclass(frozen=True)
class PerplexityRuntime(Settings):
    """How it is carried out: tokens per batch (padding included; null: TOKENS_PER_BATCH), device, CPU threads."""

    tokens_per_batch: int | None = None
    device: DeviceName = "auto"
    threads: int | None = None


def perplexity_settings(settings: Mapping[str, Any]) -> PerplexitySettings:
    """The settings of a job, checked. Raises ConfigError naming the key."""
    typed = build(PerplexitySettings, stage_body(settings), "perplexity")
    _require(0 < len(typed.splits) == len(set(typed.splits)), "splits", typed.splits, "dev, test or both")
    # Two tokens frame a sequence, and every way of cutting needs room for two more.
    _require(typed.sequence_length >= 4, "sequence_length", typed.sequence_length, "4 or more")
    _require(typed.sequences is None or typed.sequences >= 1, "sequences", typed.sequences, "1 or more, or null")
    _require(typed.seed >= 0, "seed", typed.seed, "0 or more")
    _require(0 < typed.mask_probability <= 1, "mask_probability", typed.mask_probability, "0 < x <= 1")
    visible = (typed.random_probability, typed.keep_probability)
    _require(
        min(visible) >= 0 and sum(visible) <= 1,
        "random_probability and keep_probability",
        visible,
        "0 or more, together at most 1",
    )
    sentences = typed.pseudo_perplexity_sentences
    _require(sentences >= 0, "pseudo_perplexity_sentences", sentences, "0 or more")
    return typed


def perplexity_runtime(runtime: Mapping[str, Any]) -> PerplexityRuntime:
    """The runtime values of a job, checked. Raises ConfigError naming the key."""
    options = build(PerplexityRuntime, runtime, "runtime")
    if options.tokens_per_batch is not None and options.tokens_per_batch < 1:
        raise ConfigError(f"runtime.tokens_per_batch must be at least 1, got {options.tokens_per_batch}")
    return options


def _require(condition: bool, key: str, value: object, expected: str) -> None:
    if not condition:
        raise ConfigError(f"perplexity.{key}: got {value!r}, expected {expected}")
