"""What tells the training for one objective from that for another; the engine asks it and knows no objective itself.

An objective is a file of `objectives/`, with a class of settings (`ObjectiveKeys`) and a class that says what makes
examples and batches of the encoded text, how the loss of a batch is computed and divided, what is measured beside it,
and what a finished model is used as. The defaults are those of one running text. An objective may also have an order of
the data (`data_order.OrdersItself`) and development scores (`development.JudgesItself`) of its own.
Planning reads the settings, so what is slow to import is imported inside the methods.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

from hatchery.modeling.flops import PassShape
from hatchery.settings.base import Settings

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor

    from hatchery.modeling.language_model import LanguageModelOutput
    from hatchery.tokenization.token_shards import TokenShards
    from hatchery.training.examples import Examples

ModelKind = Literal["masked", "causal", "translation"]
"""What a model can do: guess hidden tokens, go on with a text, translate."""


class ObjectiveKeys(Settings):
    """What the settings of every objective offer."""

    if TYPE_CHECKING:
        task: str

    kinds: ClassVar[tuple[ModelKind, ...]]
    """What a finished model can be used as; the first is what it is used as where nothing else is said."""

    perplexity_per: ClassVar[str]
    """What the perplexity of a model is per, for people."""
    asked_for: ClassVar[str]
    """What a model is asked for on held-out text, for people."""

    predicted_before: ClassVar[int] = 0
    """How many positions before a hidden token the model predicts it."""

    @property
    def ends_texts(self) -> bool:
        """Whether something stands behind a text in training, so that a finished model is to be shown it, too."""
        # Blocks begin with a start, and nothing ends them.
        return getattr(self, "segments", "") != "blocks"

    @property
    def asked_as(self) -> str:
        """The task by which held-out text is asked: numbers of models that are asked alike stand beside each other."""
        return self.task

    @property
    def causal(self) -> bool:
        """Whether a finished model sees nothing behind a token where nothing else is said."""
        return self.kinds[0] == "causal"

    def mask_rate(self, progress: float) -> float | None:
        """Share of the tokens to be hidden where so much, 0 to 1, of the steps is done; None where nothing is."""
        return None

    def labelled_share_at(self, mask_rate: float | None) -> float:
        """Share of the positions that something is predicted at, with that rate of masking."""
        return 1.0

    def sequences_of_kinds(self, batch_size: int) -> tuple[int, ...]:
        """How many sequences of each kind a batch has: one kind, unless the objective has several.

        Each kind reads the text at a pace of its own.
        """
        return (batch_size,)

    @property
    def learned(self) -> tuple[ModelKind, ...]:
        """The uses among `kinds` that training is for; the first is the default use of a finished model."""
        return self.kinds

    @property
    def predicts_text_alone(self) -> bool:
        """Whether every label represents text, and no text is only read: else bits per byte are not defined."""
        return "translation" not in self.kinds

    @property
    def model_values(self) -> dict[str, object]:
        """What the objective decides of a model's configuration."""
        return {"sentence_pair_head": False}

    def sequences_of_step(self, batch_size: int, sequence_length: int) -> float:
        """How many sequences of that length a step has: as many as the batch size says, unless that counts tokens."""
        return batch_size

    @property
    def texts_of_sequence(self) -> int:
        """How many texts of that length a sequence is made of: one, or a source and its target."""
        return 1

    def early_evaluations_at(self, interval: int) -> tuple[int, ...]:
        """Steps after which development text is scored besides those at the interval; 0 is before the first."""
        return ()


class Term(NamedTuple):
    """One part of the loss of a micro-batch: scalar sums over what the objective counts for it."""

    loss_sum: "Tensor"
    """Nats, with the gradient."""
    sums: "tuple[Tensor, ...]" = ()
    """What is measured beside it, such as right answers."""
    weight: float = 1.0
    """What the mean of the loss counts for in the loss of the step."""
    penalty: "Tensor | None" = None
    """What is learned from with `loss_sum`, summed over the same, and not reported as loss."""


class HeldOutTerms(NamedTuple):
    """Scalar sums over a micro-batch of held-out text."""

    loss_sum: "Tensor"
    """Negative log-likelihood of its labels, nats."""
    pairs_correct: "Tensor | None" = None
    """Pairs of texts that were judged rightly; None where none are judged."""
    counted: "Tensor | None" = None
    """The number that the sum is divided by; None for the number of labels."""


Columns = tuple[tuple[str, ...], ...]
"""Names of what the terms of an objective measure: of each its loss, then the means of its further sums."""


class Criterion(NamedTuple):
    """What evaluations are compared by."""

    column: str
    """A column of the development scores."""
    name: str
    """What it is, for messages."""
    higher_is_better: bool = False


LOWEST_LOSS = Criterion("development_loss", "development loss")


class Objective(ABC):
    """What a run trains for."""

    columns: Columns
    """Names of what is measured in every step, term by term: the loss, then the means of `Term.sums`."""

    criterion: Criterion = LOWEST_LOSS
    """What of the development scores ends a run early."""

    def __init__(self, settings: Any) -> None:
        """`settings` are those of the objective."""
        self.settings = settings

    def open(self, tokens: Path, split: str) -> "TokenShards":
        """The encoded text of a split behind a manifest, with `vocabulary_size` and `special`."""
        from hatchery.tokenization.token_shards import TokenShards

        return TokenShards.open(tokens, split)

    @abstractmethod
    def examples(self, shards: "TokenShards", sequence_length: int) -> "Examples":
        """The examples of a split in sequences of at most so many tokens, special tokens included.

        The ids of the special tokens are those that the shards were encoded with. Raises TrainingError when the
        sequences are too short for text, or when the vocabulary has no ordinary token.
        """

    def smallest_batch(self, examples: "Examples", batch_size: int) -> int:
        """Sequences of the smallest batch of the training examples."""
        return batch_size

    def measures(self, examples: "Examples") -> dict[str, object]:
        """What the run's manifest says of the training examples."""
        return {}

    @abstractmethod
    def terms(self, output: "LanguageModelOutput", batch: "Mapping[str, Tensor]") -> tuple[Term, ...]:
        """The terms of the loss of a micro-batch, one for each number of `counted`.

        `output` is what the model returns for `batch`, which lies on its device.
        """

    def held_out_terms(self, output: "LanguageModelOutput", batch: "Mapping[str, Tensor]") -> "HeldOutTerms":
        """What a micro-batch of held-out text adds to its loss, which is the likelihood of its labels alone."""
        return HeldOutTerms(output.loss_sum)

    @abstractmethod
    def target_counts(self, shards: "TokenShards") -> "np.ndarray":
        """How often each type of the vocabulary can be a target in a split: int64 [V].

        Targets are counted as the loss sees them: ends where they are predicted, starts and padding never
        (docs/papers/natural-bias.md, "The bias" and "Other objectives"). Raises TrainingError for text that is not what
        the objective learns from, and where there is none.
        """

    def for_comparison(self, common: "Objective") -> "Objective":
        """What a finished model is asked of held-out text where all are to be asked the same: hidden tokens, as
        `common` hides them, or what comes nearest to it."""
        return common

    def pass_shape(self, part: "dict[str, Tensor]", labelled_per_sequence: float) -> PassShape:
        """The forward pass of a micro-batch, whose operations are counted."""
        rows, length = part["input_ids"].shape
        return PassShape(rows, length, labelled_per_sequence * rows, pairs="pair_labels" in part)
