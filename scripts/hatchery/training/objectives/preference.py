"""The preference objective: the chosen text of a pair becomes more probable than its rejected text.

Sources: for SimPO, Meng et al. 2024, Equation 6 (arXiv:2405.14734); for SimPER, Xiao et al. 2025 (arXiv:2502.00883).
The mean log-probability of the tokens of a text y after a prompt x is m(y) = log p(y | x) / |y|. The losses of a pair
with the chosen text w and the rejected text l are

    SimPO:  -log sigmoid(beta * m(w) - beta * m(l) - gamma)
    SimPER: -exp(m(w)) + exp(m(l))

Neither loss needs a reference model. The defaults of SimPO and of the language-model term are those of the interaction
baseline of BabyLM 2025 (beta 2, gamma 1, weight 0.2), which trains two epochs with the learning rate 5e-5.

The step's loss is the mean over pairs, plus `language_weight` times the mean negative log-likelihood of a token of the
chosen texts. Masked models are not supported, because m(y) of a masked model needs one forward pass per token.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from hatchery.modeling.flops import PassShape
from hatchery.settings.base import NonNegative, Positive, conflict
from hatchery.tokenization.special_tokens import UNLABELLED
from hatchery.training.objective import Columns, Criterion, ModelKind, Objective, ObjectiveKeys, Term

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy as np
    from torch import Tensor

    from hatchery.modeling.language_model import LanguageModelOutput
    from hatchery.objectives.preference_pairs import PreferencePairs
    from hatchery.tokenization.token_shards import TokenShards
    from hatchery.tokenization.tokenizer_file import Tokenizer
    from hatchery.training.development import DevelopmentSet
    from hatchery.training.topology import Topology


@dataclass(frozen=True)
class PreferenceSettings(ObjectiveKeys):
    """Preference training on pairs of a chosen and a rejected text. `batch_size` is the number of pairs in a step;
    `sequence_length` is the maximum number of tokens in a sequence, which consists of the prompt, one of the two texts,
    and special tokens. Pairs with a longer sequence are left out and counted.
    """

    perplexity_per: ClassVar[str] = "per token"
    asked_for: ClassVar[str] = (
        "Preference models predict every token of a text from the tokens before it. Accuracy is in percent of these "
        "predictions."
    )

    task: Literal["preference"] = "preference"
    """Objective: `preference` makes the chosen text of a pair more probable than its rejected text."""
    loss: Literal["simpo", "simper"] = "simpo"
    """Loss of a pair, computed from the mean log-probability per token of each of its two texts. `simpo`: -log
    sigmoid(beta * difference - gamma). `simper`: difference of the inverse perplexities, without hyperparameters.
    """
    beta: Positive = 2.0
    """With `loss: simpo`: factor of the difference between the mean log-probabilities."""
    gamma: NonNegative = 1.0
    """With `loss: simpo`: margin that the scaled difference should exceed."""
    language_weight: NonNegative | None = None
    """Weight, in the loss, of the mean negative log-likelihood per token of the chosen texts. `null` means 0.2 with
    `simpo`, as in BabyLM's interaction baseline of 2025, and 0 with `simper`.
    """
    initial_task: Literal["causal", "hybrid"] = "causal"
    """Objective of the initial model: `causal`, or `hybrid` as in GPT-BERT. Texts are always read causally."""
    end_token: bool = True
    """Predict the end token after each text; false for an initial model that was trained without end tokens
    (`segments: blocks`)."""

    def __post_init__(self) -> None:
        for key in ("beta", "gamma") if self.loss == "simper" else ():
            if getattr(self, key) != getattr(type(self), key):
                raise conflict(key, getattr(self, key), "`loss: simper`", "the loss of simper has no hyperparameters")

    @property
    def kinds(self) -> tuple[ModelKind, ...]:  # type: ignore[override]
        """Uses of a finished model (masked prediction, causal prediction); these are the uses of the initial model."""
        return ("causal",) if self.initial_task == "causal" else ("masked", "causal")

    @property
    def predicted_before(self) -> int:  # type: ignore[override]
        """Number of positions by which a prediction precedes the masked token, if the initial model is a hybrid model;
        else 0.
        """
        return 0 if self.initial_task == "causal" else 1

    @property
    def weight(self) -> float:
        """Weight of the language-model term."""
        if self.language_weight is None:
            return 0.2 if self.loss == "simpo" else 0.0
        return self.language_weight

    @property
    def appends_end_token(self) -> bool:
        """True if texts end with the end token."""
        return self.end_token

    @property
    def predicts_text_alone(self) -> bool:
        """False, because rejected texts are not in the held-out loss, so bits per byte are undefined."""
        return False

    @property
    def texts_of_sequence(self) -> int:
        """Number of texts in a pair."""
        return 2

    @property
    def rows_of_sequence(self) -> int:
        """Number of model inputs for a pair."""
        return 2


class PreferenceObjective(Objective):
    """Make chosen texts more probable than rejected texts."""

    columns: Columns = (
        ("loss", "next_token_accuracy"),
        ("preference_loss", "preference_accuracy", "preference_margin"),
    )
    criterion = Criterion("development_preference_loss", "development preference loss")
    settings: PreferenceSettings

    def examples(self, shards: "TokenShards", sequence_length: int) -> "PreferencePairs":
        """Return the pairs of a split that fit into `sequence_length`."""
        from hatchery.objectives.preference_pairs import pairs_of
        from hatchery.tokenization.documents import TRAINING_SPLIT

        return pairs_of(shards, sequence_length, self.settings.end_token, required=shards.split == TRAINING_SPLIT)

    def terms(self, output: "LanguageModelOutput", batch: "Mapping[str, Tensor]") -> tuple[Term, ...]:
        """Return the loss term of the chosen texts' tokens and the loss term of the pairs.

        The pairs' term also contains two reported sums: the number of pairs whose chosen text has the higher mean
        log-probability, and the sum over pairs of the difference between the mean log-probabilities (nats per token).
        """
        import torch.nn.functional as F

        rows, length = batch["labels"].shape
        log_probabilities = -F.cross_entropy(output.logits, output.targets, reduction="none")
        # Write the log-probabilities to a table, and then sum them: on a GPU, an addition by index (`index_add`) would
        # add in a random order.
        table = log_probabilities.new_zeros(rows * length).index_put((output.positions,), log_probabilities)
        sums = table.view(rows, length).sum(dim=1)
        means = sums / (batch["labels"] != UNLABELLED).sum(dim=1)
        chosen, rejected = means[::2], means[1::2]
        margins = chosen - rejected
        if self.settings.loss == "simpo":
            losses = -F.logsigmoid(self.settings.beta * margins - self.settings.gamma)
        else:
            losses = rejected.exp() - chosen.exp()
        is_chosen = (output.positions // length) % 2 == 0
        right = (output.logits.detach().argmax(dim=-1) == output.targets) & is_chosen
        return (
            Term(-sums[::2].sum(), (right.sum(),), self.settings.weight),
            Term(losses.sum(), ((margins > 0).sum(), margins.sum())),
        )

    def development(
        self,
        examples: "PreferencePairs",
        sequences: int,
        share: int,
        topology: "Topology",
        tokenizer: "Callable[[], Tokenizer] | None" = None,
    ) -> "DevelopmentSet":
        """Return the development pairs to score. The scores are the same measures as in the training metrics."""
        from hatchery.training.development_columns import DevelopmentColumns

        return DevelopmentColumns(self, examples, sequences, share, topology)

    def target_counts(self, shards: "TokenShards") -> "np.ndarray":
        """Return the number of times that each token id is a target in the chosen texts of a split: int64 [vocabulary
        size].
        """
        from hatchery.objectives.label_counts import next_token_counts
        from hatchery.objectives.preference_pairs import WHOLE, PairTexts

        texts = PairTexts(shards, shards.special, WHOLE, self.settings.end_token)
        targets = (texts.targets(index) for index in range(0, len(texts), 2))
        special = texts.special
        counts = next_token_counts(targets, special.sep, special.cls, shards.vocabulary_size)
        if not self.settings.end_token:
            counts[special.sep] = 0
        return counts

    def measures(self, examples: "PreferencePairs") -> dict[str, object]:  # type: ignore[override]
        """Return the number of training pairs, and the number of pairs that were left out of training."""
        return {"pairs": len(examples), "left_out": examples.left_out}

    def for_comparison(self, common: Objective) -> Objective:
        """Return the objective by which a finished model is scored on plain text, without pairs. This is the objective
        of the model from which preference training starts: causal, or hybrid with the masking settings of `common`, the
        objective of a comparison between models.
        """
        from hatchery.training.objectives import objective_of, objective_settings

        values: dict[str, Any] = {"task": self.settings.initial_task}
        values |= {} if self.settings.end_token else {"segments": "blocks"}
        return objective_of(objective_settings(values, "objective")).for_comparison(common)

    def pass_shape(self, part: "dict[str, Tensor]", labelled_per_sequence: float) -> PassShape:
        """Return the sizes of a micro-batch's forward pass. The FLOPs of the pass are computed from these sizes.

        The labels of both texts of a pair are counted, and `labelled_per_sequence` is not used.
        """
        rows, length = part["input_ids"].shape
        return PassShape(rows, length, int((part["labels"] != UNLABELLED).sum()))


OBJECTIVE = PreferenceSettings, PreferenceObjective
