"""The interface between the training engine and an objective; the engine knows no objective itself.

An objective is a file of `objectives/`, with a class of settings (`ObjectiveKeys`) and a class that makes examples and
batches from the encoded text, computes and divides the loss of a batch, measures further values, and names the uses of
a finished model. The base classes' defaults suit monolingual running text. An objective may also define its own data
order (`data_order.OrdersItself`) and development scores (`development.JudgesItself`). Planning reads the settings, so
slow imports are inside the methods.
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
"""Uses of a model: predict hidden tokens, continue a text, translate."""


class ObjectiveKeys(Settings):
    """The interface of every objective's settings."""

    if TYPE_CHECKING:
        task: str

    kinds: ClassVar[tuple[ModelKind, ...]]
    """Uses of a finished model; the first is the default."""

    perplexity_per: ClassVar[str]
    """The unit to which a model's perplexity refers, for readers: perplexity per ..."""
    asked_for: ClassVar[str]
    """Description, for readers, of the tokens of held-out text that are predicted."""

    predicted_before: ClassVar[int] = 0
    """Distance from the position of a prediction to its hidden token."""

    @property
    def appends_end_token(self) -> bool:
        """True if training texts end with a separator, so that a finished model's input also ends with a separator."""
        # Sequences made by GPT-BERT's packing (`segments: blocks`) have a start token and no end token.
        return getattr(self, "segments", "") != "blocks"

    @property
    def asked_as(self) -> str:
        """The task that defines the predictions on held-out text; held-out scores of models with equal tasks are
        comparable."""
        return self.task

    @property
    def causal(self) -> bool:
        """True if a finished model attends only to earlier tokens by default."""
        return self.kinds[0] == "causal"

    def mask_rate(self, progress: float) -> float | None:
        """Return the share of masked tokens after the share `progress` (0 to 1) of the steps; None for an objective
        without masks."""
        return None

    def labelled_share_at(self, mask_rate: float | None) -> float:
        """Return the share of positions with a label, if the share `mask_rate` of the tokens is masked."""
        return 1.0

    def sequences_of_kinds(self, batch_size: int) -> tuple[int, ...]:
        """Return the number of sequences of each kind (masked, causal) in a batch; most objectives have one kind.

        Each kind reads the text at its own pace.
        """
        return (batch_size,)

    @property
    def learned(self) -> tuple[ModelKind, ...]:
        """The trained uses among `kinds`; the first is the default use of a finished model."""
        return self.kinds

    @property
    def predicts_text_alone(self) -> bool:
        """True if every label represents text, and no text is only read: otherwise bits per byte are not defined."""
        return "translation" not in self.kinds

    @property
    def model_values(self) -> dict[str, object]:
        """Return the keys of the model's configuration, with their values, that the objective determines."""
        return {"sentence_pair_head": False}

    def sequences_of_step(self, batch_size: int, sequence_length: int) -> float:
        """Return the number of sequences of `sequence_length` in a step: `batch_size`, unless the objective's batch
        size counts tokens."""
        return batch_size

    @property
    def texts_of_sequence(self) -> int:
        """Return the number of texts in a sequence: 1, or 2 for a source sentence and its translation."""
        return 1

    def early_evaluations_at(self, interval: int) -> tuple[int, ...]:
        """Return steps after which development text is scored in addition to every `interval` steps; 0 is before the
        first step."""
        return ()


def unable_teacher(student: ObjectiveKeys, teacher: ObjectiveKeys) -> str:
    """Return the reason why a model with one objective cannot predict the labels of another; empty if it can."""
    missing = [kind for kind in student.learned if kind not in teacher.learned]
    if missing:
        return f"is no {missing[0]} model, expected one that learned as this run does: {' and '.join(student.learned)}"
    if "masked" in student.learned and teacher.predicted_before != student.predicted_before:
        return (
            f"predicts a hidden token {_place(teacher)}, this run {_place(student)}; expected the same `objective.task`"
        )
    return ""


def _place(objective: ObjectiveKeys) -> str:
    return "at the position before it" if objective.predicted_before else "at its position"


class Term(NamedTuple):
    """One term of the loss of a micro-batch, such as tokens or sentence pairs, as scalar sums over its predictions."""

    loss_sum: "Tensor"
    """Summed loss in nats, with the gradient."""
    sums: "tuple[Tensor, ...]" = ()
    """Sums of further measures, such as the number of correct predictions."""
    weight: float = 1.0
    """Weight of this term's mean loss in the loss of the step."""
    penalty: "Tensor | None" = None
    """A sum over the positions of `loss_sum` that is added to the minimised loss and not reported."""
    mixed: "Tensor | None" = None
    """The sum to minimise instead of `loss_sum` and `penalty`, with the gradient; None minimises these."""

    @property
    def minimised(self) -> "Tensor":
        """The sum to minimise."""
        if self.mixed is not None:
            return self.mixed
        return self.loss_sum if self.penalty is None else self.loss_sum + self.penalty


class HeldOutTerms(NamedTuple):
    """Scalar sums over a micro-batch of held-out text."""

    loss_sum: "Tensor"
    """Negative log-likelihood of the labels, in nats."""
    pairs_correct: "Tensor | None" = None
    """Number of correctly judged text pairs; None if the objective judges no pairs."""
    counted: "Tensor | None" = None
    """The divisor of `loss_sum`; None for the number of labels."""


Columns = tuple[tuple[str, ...], ...]
"""Names of the measures of an objective's terms: each term's loss, then the means of its further sums."""


class Criterion(NamedTuple):
    """The criterion by which the evaluations during a training are compared."""

    column: str
    """A column of the development scores."""
    name: str
    """Name of the criterion, for messages."""
    higher_is_better: bool = False


LOWEST_LOSS = Criterion("development_loss", "development loss")


class Objective(ABC):
    """The objective of a run."""

    columns: Columns
    """Names of the measures of every step, term by term: the loss, then the means of `Term.sums`."""

    criterion: Criterion = LOWEST_LOSS
    """The development score that ends a run early."""

    def __init__(self, settings: Any) -> None:
        """`settings` are the objective's settings, an `ObjectiveKeys`."""
        self.settings = settings

    def open(self, tokens: Path, split: str) -> "TokenShards":
        """Return the encoded text of a split; `tokens` is the manifest of the token shards."""
        from hatchery.tokenization.token_shards import TokenShards

        return TokenShards.open(tokens, split)

    @abstractmethod
    def examples(self, shards: "TokenShards", sequence_length: int) -> "Examples":
        """Return the examples of a split in sequences of at most `sequence_length` tokens, special tokens included.

        Special tokens have the ids with which the shards were encoded. Raises TrainingError if the sequences are too
        short for text, or if the vocabulary has no ordinary token.
        """

    def smallest_batch(self, examples: "Examples", batch_size: int) -> int:
        """Return the number of sequences of the smallest batch of the training examples."""
        return batch_size

    def measures(self, examples: "Examples") -> dict[str, object]:
        """Return the run manifest's entries on the training examples."""
        return {}

    @abstractmethod
    def terms(self, output: "LanguageModelOutput", batch: "Mapping[str, Tensor]") -> tuple[Term, ...]:
        """Return the terms of the loss of a micro-batch, one for each divisor in `Examples.counted`.

        `output` is the model's output for `batch`, which is on its device.
        """

    def label_weights(self, output: "LanguageModelOutput", batch: "Mapping[str, Tensor]") -> "tuple[Tensor, ...]":
        """Return the factor of each label in the loss sum of each term: [M] per term."""
        return (output.targets.new_ones(output.targets.shape),)

    def held_out_terms(self, output: "LanguageModelOutput", batch: "Mapping[str, Tensor]") -> "HeldOutTerms":
        """Return the terms of a micro-batch of held-out text: the loss is the negative log-likelihood of its labels,
        without further penalties."""
        return HeldOutTerms(output.loss_sum)

    @abstractmethod
    def target_counts(self, shards: "TokenShards") -> "np.ndarray":
        """Return how often each type of the vocabulary can be a target in a split: int64 [V].

        Targets are counted as the loss sees them: end tokens if they are predicted, start tokens and padding never
        (docs/papers/natural-bias.md, "The bias" and "Other objectives"). Raises TrainingError for text that the
        objective cannot learn from, and for a split without text.
        """

    def for_comparison(self, common: "Objective") -> "Objective":
        """Return the objective that measures a finished model on held-out text when models are compared: the masks
        of `common`, or the nearest equivalent."""
        return common

    def pass_shape(self, part: "dict[str, Tensor]", labelled_per_sequence: float) -> PassShape:
        """Return the shape of a micro-batch's forward pass, from which its FLOPs are computed."""
        rows, length = part["input_ids"].shape
        return PassShape(rows, length, labelled_per_sequence * rows, pairs="pair_labels" in part)
