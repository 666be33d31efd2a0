"""What tells the training for one objective from that for another; the engine asks it and knows no objective itself.

An objective is a class of settings (`hatchery.objectives.settings`) and a subclass here, which `objectives` lists by
task. What it says: what makes examples and batches of the encoded text, how the loss of a batch is computed and
divided, what is measured beside it, and what development text is asked. The defaults are those of one running text.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
from torch import Tensor

from hatchery.modeling.flops import PassShape
from hatchery.objectives.examples import build_examples
from hatchery.objectives.target_counts import target_counts
from hatchery.tokenization.token_reader import TokenShards
from hatchery.training.batches import Examples, shuffled
from hatchery.training.data_order import EpochSlice
from hatchery.training.development import DevelopmentSet
from hatchery.training.early_stopping import LOWEST_LOSS, Criterion
from hatchery.training.engine import Engine
from hatchery.training.measures import Columns, Term
from hatchery.training.topology import Topology


class Scores(Protocol):
    """What development text says of a model."""

    def row(self) -> dict[str, float]:
        """The columns of the metrics file, `development_loss` among them."""
        ...


class Development(Protocol):
    """Held-out text that a model is asked about again and again; every process has its share."""

    @property
    def batches(self) -> Sequence[dict[str, Tensor]]:
        """This process's batches, on which the divergences of the output are measured."""
        ...

    def score(self, engine: Engine) -> Scores:
        """Score the model as it is now, without dropout; every process has to call it."""
        ...


class Objective(ABC):
    """What a run trains for."""

    columns: ClassVar[Columns]
    """Names of what is measured in every step, term by term: the loss, then the means of `Term.sums`."""

    criterion: Criterion = LOWEST_LOSS
    """What of the development scores ends a run early."""

    def __init__(self, settings: Any) -> None:
        """`settings` are those of the objective."""
        self.settings = settings

    def open(self, tokens: Path, split: str) -> TokenShards:
        """The encoded text of a split behind a manifest, with `vocabulary_size` and `special`."""
        return TokenShards.open(tokens, split)

    def examples(self, shards: TokenShards, sequence_length: int) -> Examples:
        """The examples of a split in sequences of at most so many tokens, special tokens included."""
        return build_examples(shards, sequence_length, self.settings)

    def order(self, examples: Examples, seed: int, step: int, batch_size: int) -> list[EpochSlice]:
        """Which sequences the global batch of a phase's step number `step` has: a pure function of all four.

        Their number may differ from step to step, so that batches can be made by tokens.
        """
        return shuffled(examples, seed, step, batch_size)

    def epochs(self, examples: Examples, steps: int, batch_size: int) -> float:
        """How often so many steps read each of the examples."""
        return steps * batch_size / max(1, len(examples))

    def smallest_batch(self, make_examples: Callable[[], Examples], batch_size: int) -> int:
        """Sequences of the smallest batch; `make_examples` gives those of training, and is called only if asked for."""
        return batch_size

    def measures(self, make_examples: Callable[[], Examples]) -> dict[str, Any]:
        """What the run's manifest says of the training examples; `make_examples` gives them where that is asked for."""
        return {}

    @abstractmethod
    def terms(self, output: Any) -> tuple[Term, ...]:
        """The terms of the loss in what the model returns for a micro-batch, one for each number of `counted`."""

    def development(
        self, examples: Examples, sequences: int, share: int, topology: Topology, tokenizer: Path | None = None
    ) -> Development:
        """`sequences` development examples, at most `share` of them in a forward pass.

        `tokenizer` is the file of the run's tokenizer, for objectives that turn predictions into text.
        """
        return DevelopmentSet(examples, sequences, share, topology)

    def target_counts(self, shards: TokenShards) -> np.ndarray:
        """How often each type of the vocabulary can be a target in a split: int64 [V]."""
        return target_counts(shards, self.settings)

    def pass_shape(self, part: dict[str, Tensor], labelled_per_sequence: float) -> PassShape:
        """The forward pass of a micro-batch, whose operations are counted."""
        rows, length = part["input_ids"].shape
        return PassShape(rows, length, labelled_per_sequence * rows, pairs="pair_labels" in part)
