"""What a perplexity is measured on and how: the splits, the masks, the length and number of the sequences.

Part of the result's identity, except `PerplexityRuntime`. Impossible values are refused before anything is read.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import MinLen

from hatchery.settings.base import Count, DeviceName, Natural, Positive, Range, Settings, Share, ShareAboveZero, require
from hatchery.settings.fields import Unique
from hatchery.training.objective import SegmentsName

# Large enough to fill a GPU; the logits are made in smaller parts.
TOKENS_PER_BATCH = 16384

HeldOut = Literal["dev", "test"]
OPTIONAL = "frequency_bin_nats"
"""A key that the settings of a job have only where it is set: what was measured before keeps its address."""


@dataclass(frozen=True, kw_only=True)
class PerplexityChoice(Settings):
    """Which splits are scored, with masks that are the same for every model."""

    splits: Annotated[tuple[HeldOut, ...], Unique()] = ()
    """Splits of the corpus; none measures no perplexity."""
    masking: Literal["common", "own"] = "common"
    """common asks every model with this tokenizer the same guesses, single subwords; own masks as the model was
    trained, which compares seeds and sizes but not objectives."""
    # Two tokens frame a sequence, and every way of cutting needs room for two more.
    sequence_length: Annotated[int, Range(ge=4)] | None = None
    """Tokens of a sequence with its special tokens; null is that of pretraining."""
    sequences: Count | None = None
    """At most so many of each split, drawn with `seed`; null takes all."""
    mask_probability: ShareAboveZero = 0.15
    """Share of the tokens that common masks ask for."""
    random_probability: Share = 0.0
    """Share of these that are shown as a random token."""
    keep_probability: Share = 0.0
    """Share of these that are shown as they are; with neither, every guess is behind a [MASK]."""
    segments: SegmentsName = "babylm"
    """How documents are cut into sequences."""
    seed: Natural = 20_231_106
    """Draws sequences, masks and the sentences of the pseudo-perplexity."""
    pseudo_perplexity_sentences: Natural = 0
    """Also mask every token of so many sentences alone; 0 leaves it out."""
    frequency_bin_nats: Positive | None = None
    """Also the mean log-probability of tokens by the logarithm of their frequency in the training text, with the bias
    of the output layer and without it, in bins of so many nats; null leaves it out."""

    def __post_init__(self) -> None:
        visible = self.random_probability + self.keep_probability
        require(visible <= 1, "random_probability and keep_probability", visible, "together at most 1")


@dataclass(frozen=True, kw_only=True)
class PerplexitySettings(PerplexityChoice):
    """Which guesses a model is asked for."""

    splits: Annotated[tuple[HeldOut, ...], MinLen(1), Unique()]
    """Splits of the corpus."""
    sequence_length: Annotated[int, Range(ge=4)]
    """Tokens of a sequence with its special tokens."""


@dataclass(frozen=True)
class PerplexityRuntime(Settings):
    """How it is carried out; not part of the result's identity."""

    tokens_per_batch: Count | None = None
    """Tokens per batch, padding included; null is TOKENS_PER_BATCH."""
    device: DeviceName = "auto"
    """Where the model computes."""
    threads: Count | None = None
    """CPU threads of PyTorch; null leaves its choice."""
