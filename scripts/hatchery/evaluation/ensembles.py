"""An ensemble of Hatchery models, which predicts the mean of the members' probabilities.

All members have the same tokenizer and the same uses (masked, causal, or both). Their architectures may differ. The
ensemble's logits are the logarithms of the mean probabilities. The softmax of these logits is the mean probability
again, so every evaluation that reads logits accepts an ensemble.

The members run one after the other, so time and memory are the sums over the members. An ensemble has no hidden states,
so it is neither fine-tuned nor probed.
"""

from collections.abc import Sequence

from torch import Tensor, nn

from hatchery.errors import ConfigError
from hatchery.evaluation.basis import asked_of
from hatchery.evaluation.pretrained import ModelOfUser, OurModel, Pretrained
from hatchery.modeling.language_model import LanguageModel, LanguageModelOutput, labelled_positions
from hatchery.modeling.mean_probabilities import mean_probabilities
from hatchery.training.own_model import OwnModel


class Ensemble(OwnModel):
    """Hatchery models that all read the same batch and whose probabilities are averaged."""

    module: nn.ModuleList

    def __init__(self, members: Sequence[LanguageModel]) -> None:
        super().__init__(nn.ModuleList(members), members[0].config.vocab_size)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None,
        labels: Tensor,
        labelled: Tensor | None = None,
        causal: Tensor | None = None,
    ) -> LanguageModelOutput:
        """Return the predictions at the labels int64 [B, T]; see `LanguageModel.forward`."""
        labelled = labelled_positions(labels) if labelled is None else labelled
        outputs = [
            member(input_ids, attention_mask, labels, labelled=labelled, causal=causal).logits for member in self.module
        ]
        return LanguageModelOutput(mean_probabilities(outputs), labels.flatten()[labelled], labelled)


def ensemble_of(members: Sequence[Pretrained]) -> ModelOfUser:
    """Return the ensemble of Hatchery models.

    Raises ConfigError for fewer than two members, for an external model, a user's module, an ensemble or a translation
    model as a member, and for members with different vocabularies or different uses (masked, causal).
    """
    if len(members) < 2:
        raise ConfigError(f"model: got an ensemble of {len(members)}, expected at least two models")
    ours = []
    for member in members:
        if not isinstance(member, OurModel) or member.translates:
            raise ConfigError(
                f"{member.where}: got an external model or a translation model, expected members that are masked, "
                "causal or hybrid models trained with Hatchery"
            )
        ours.append(member)
    first = ours[0]
    for other in ours[1:]:
        if other.tokenizer.backend.get_vocab() != first.tokenizer.backend.get_vocab():
            raise ConfigError(
                f"{other.where}: the tokenizer differs from the tokenizer of {first.where}, expected equal tokenizers"
            )
        if other.use != first.use:
            raise ConfigError(
                f"{other.where}: the objective differs from the objective of {first.where}, expected one objective "
                "for all members"
            )
    asked = {asked_of(member.objective) for member in ours if member.objective is not None}
    # The ensemble has an objective only if all members have known objectives with equal masking settings. The
    # perplexity of an ensemble without an objective can be measured only with `masking: common`.
    objective = first.objective if len(asked) == 1 and all(member.objective for member in ours) else None
    where = " + ".join(member.where for member in ours)
    return ModelOfUser(Ensemble([member.network for member in ours]), first.tokenizer, first.use, where, objective)
