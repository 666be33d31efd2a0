"""The interface between the training engine and the objectives.

An objective is a module of `objectives/` with two classes: `ObjectiveKeys`, its settings, and `Objective`. Planning
also loads the settings class and must be fast, so slow imports are inside the methods. The `Objective` makes examples
and batches from encoded text, and computes the terms of a batch's loss. The defaults of the base classes suit
monolingual text. An objective may also define its data order (`data_order.OrdersItself`) and its development scores
(`development.JudgesItself`).
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
"""Use of a model: masked predicts masked tokens, causal continues a text, translation translates."""


class ObjectiveKeys(Settings):
    """Base class of every objective's settings."""

    if TYPE_CHECKING:
        task: str

    kinds: ClassVar[tuple[ModelKind, ...]]
    """Uses of a finished model; the first use is the default."""

    perplexity_per: ClassVar[str]
    """Unit of the perplexity in printed tables, such as "per masked token"."""
    asked_for: ClassVar[str]
    """Description of the held-out tokens that the model predicts, as shown in `summary.md`."""

    predicted_before: ClassVar[int] = 0
    """Number of positions from a prediction to the masked token that it predicts."""

    @property
    def appends_end_token(self) -> bool:
        """True if training texts end with a separator token; inputs of a finished model then also end with this
        token."""
        # The packing of GPT-BERT (`segments: blocks`) adds a start token and no end token.
        return getattr(self, "segments", "") != "blocks"

    @property
    def asked_as(self) -> str:
        """Name of the task by which this objective predicts held-out text, such as `masked`. Held-out scores are
        comparable only between models with the same task.
        """
        return self.task

    @property
    def causal(self) -> bool:
        """True if a finished model attends only to earlier tokens by default."""
        return self.kinds[0] == "causal"

    def mask_rate(self, progress: float) -> float | None:
        """Return the share of masked tokens at `progress`, the share (0 to 1) of finished steps. Return None if the
        objective masks no tokens.
        """
        return None

    def labelled_share_at(self, mask_rate: float | None) -> float:
        """Return the share of positions that have a label if the share of masked tokens is `mask_rate`."""
        return 1.0

    def sequences_of_kinds(self, batch_size: int) -> tuple[int, ...]:
        """Return the number of sequences of each kind (masked, causal) in a batch; most objectives have one kind.

        The kinds read the text independently: each kind has its own position in the text.
        """
        return (batch_size,)

    @property
    def learned(self) -> tuple[ModelKind, ...]:
        """Uses of a model (masked prediction, causal prediction or translation) for which this objective trains the
        model. A finished model has the first use by default.
        """
        return self.kinds

    @property
    def predicts_text_alone(self) -> bool:
        """True if bits per byte are defined. For this, all text must be predicted, and every label must represent text;
        padding, for example, does not.
        """
        return "translation" not in self.kinds

    @property
    def model_values(self) -> dict[str, object]:
        """Return the keys that the objective determines in the model configuration, with their values."""
        return {"sentence_pair_head": False}

    def sequences_of_step(self, batch_size: int, sequence_length: int) -> float:
        """Return the number of sequences of a step: `batch_size`, unless the objective's batch size counts tokens."""
        return batch_size

    @property
    def texts_of_sequence(self) -> int:
        """Number of texts in a sequence, each with up to `sequence_length` tokens: 2 for a source sentence and its
        translation, 2 for a preference pair, and 1 for all other objectives.
        """
        return 1

    @property
    def rows_of_sequence(self) -> int:
        """Number of model inputs (rows of a batch) for a sequence: 1, or 2 for a preference pair."""
        return 1

    def early_evaluations_at(self, interval: int) -> tuple[int, ...]:
        """Return additional steps after which development text is scored; 0 is before training. Regular scoring takes
        place every `interval` steps, so all additional steps are below `interval`.
        """
        return ()


def unable_teacher(student: ObjectiveKeys, teacher: ObjectiveKeys) -> str:
    """Return the reason why a teacher's objective does not fit the student's labels; empty if the objective fits."""
    missing = [kind for kind in student.learned if kind not in teacher.learned]
    if missing:
        learned = " and ".join(student.learned)
        return f"is not a {missing[0]} model, expected a model that was trained, like this run, as a {learned} model"
    if "masked" in student.learned and teacher.predicted_before != student.predicted_before:
        return (
            f"predicts a masked token {_place(teacher)}, but this run predicts a masked token {_place(student)}; "
            "expected the same `objective.task`"
        )
    return ""


def _place(objective: ObjectiveKeys) -> str:
    return "at the position before the token" if objective.predicted_before else "at the token's position"


class Term(NamedTuple):
    """One term of a micro-batch's loss, for example for tokens or for sentence pairs. All tensors are sums over the
    micro-batch, as scalars.
    """

    loss_sum: "Tensor"
    """Sum of the losses in nats, with gradient."""
    sums: "tuple[Tensor, ...]" = ()
    """Sums of other measures, such as the number of correct predictions."""
    weight: float = 1.0
    """Weight of this term's mean loss in the step's loss."""
    penalty: "Tensor | None" = None
    """A sum that is minimised together with `loss_sum` but not reported."""
    mixed: "Tensor | None" = None
    """The sum to minimise, with gradient, instead of `loss_sum` + `penalty`; None minimises `loss_sum` + `penalty`."""

    @property
    def minimised(self) -> "Tensor":
        """The sum that the optimiser minimises."""
        if self.mixed is not None:
            return self.mixed
        return self.loss_sum if self.penalty is None else self.loss_sum + self.penalty


class HeldOutTerms(NamedTuple):
    """Sums over a micro-batch of held-out text, from which development scores are computed; all tensors are scalars."""

    loss_sum: "Tensor"
    """Negative log-likelihood of the labels, in nats."""
    pairs_correct: "Tensor | None" = None
    """Number of text pairs whose label is predicted correctly; None if the objective has no text pairs."""
    counted: "Tensor | None" = None
    """Divisor of `loss_sum`; None uses the number of labels."""


Columns = tuple[tuple[str, ...], ...]
"""Column names of the training metrics, by loss term: the name of the loss, then a name for the mean of each of
`Term.sums`."""


class Criterion(NamedTuple):
    """The score by which early stopping compares evaluations."""

    column: str
    """Name of the score's column in the development scores."""
    name: str
    """Name of the score in messages."""
    higher_is_better: bool = False


LOWEST_LOSS = Criterion("development_loss", "development loss")


class Objective(ABC):
    """The objective of a run."""

    columns: Columns
    """Names of the objective's columns in the training metrics."""

    criterion: Criterion = LOWEST_LOSS
    """The development score that early stopping uses."""

    def __init__(self, settings: Any) -> None:
        """`settings` are the objective's settings, an `ObjectiveKeys`."""
        self.settings = settings

    def open(self, tokens: Path, split: str) -> "TokenShards":
        """Return the encoded text of a split; `tokens` is the manifest of token shards."""
        from hatchery.tokenization.token_shards import TokenShards

        return TokenShards.open(tokens, split)

    @abstractmethod
    def examples(self, shards: "TokenShards", sequence_length: int) -> "Examples":
        """Return the examples of a split, as sequences of at most `sequence_length` tokens including special tokens.

        Special tokens have the ids of the shards' tokenizer. Raises TrainingError if the sequences are too short for
        any text, or if the vocabulary has only special tokens.
        """

    def smallest_batch(self, examples: "Examples", batch_size: int) -> int:
        """Return the number of sequences in the smallest batch of a run. `batch_size` is the smallest batch size of the
        step plan.
        """
        return batch_size

    def measures(self, examples: "Examples") -> dict[str, object]:
        """Return the run manifest's entries about the training examples."""
        return {}

    @abstractmethod
    def terms(self, output: "LanguageModelOutput", batch: "Mapping[str, Tensor]") -> tuple[Term, ...]:
        """Return the loss terms of a micro-batch, in the order of the divisors that `Examples.counted` returns.

        `output` is the model's output for `batch`; `output` and `batch` are on the same device.
        """

    def label_weights(self, output: "LanguageModelOutput", batch: "Mapping[str, Tensor]") -> "tuple[Tensor, ...]":
        """Return for each loss term a vector with the weight of each label in the term's summed loss."""
        return (output.targets.new_ones(output.targets.shape),)

    def held_out_terms(self, output: "LanguageModelOutput", batch: "Mapping[str, Tensor]") -> "HeldOutTerms":
        """Return the summed negative log-likelihood of the labels of a held-out micro-batch, without penalties.
        Objectives may add other sums.
        """
        return HeldOutTerms(output.loss_sum)

    @abstractmethod
    def target_counts(self, shards: "TokenShards") -> "np.ndarray":
        """Return the number of times that each token id can be a target in a split: int64 [vocabulary size].

        End tokens count if the objective predicts them; start tokens and padding never count
        (docs/papers/natural-bias.md, "The bias" and "Other objectives"). Raises TrainingError for a split without text,
        and for text that the objective cannot read.
        """

    def for_comparison(self, common: "Objective") -> "Objective":
        """Return the objective with which a finished model of this objective is scored, when models of several
        objectives are compared on the same text.

        `common` is the objective of the comparison. The returned objective masks the same tokens as `common`, or has
        the nearest equivalent.
        """
        return common

    def pass_shape(self, part: "dict[str, Tensor]", labelled_per_sequence: float) -> PassShape:
        """Return the sizes of the forward pass of the micro-batch `part`. The FLOPs of the pass are computed from these
        sizes.

        `labelled_per_sequence` is the first result of `Examples.counted` for the step's batch, divided by the batch's
        number of sequences. By default, the first result is the number of labels. Objectives whose first result is
        another number override this method.
        """
        rows, length = part["input_ids"].shape
        return PassShape(rows, length, labelled_per_sequence * rows, pairs="pair_labels" in part)
