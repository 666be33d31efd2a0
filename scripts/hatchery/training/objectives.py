"""The objectives that a model can be trained for, by the task of their settings."""

from typing import Any

from hatchery.modeling.language_model import LanguageModelOutput
from hatchery.training.measures import Term
from hatchery.training.objective import Objective
from hatchery.training.translation import TranslationObjective


class MaskedObjective(Objective):
    """Hidden tokens and, where the settings ask for them, pairs of texts (LTG-BERT, Section 5)."""

    columns = (("loss", "masked_accuracy"), ("pair_loss", "pair_accuracy"))

    def terms(self, output: LanguageModelOutput) -> tuple[Term, ...]:
        """Tokens, and pairs."""
        tokens = Term(output.loss_sum, (output.n_correct,))
        if output.pair_loss_sum is None or output.n_pairs_correct is None:
            return (tokens,)
        return tokens, Term(output.pair_loss_sum, (output.n_pairs_correct,))


class CausalObjective(Objective):
    """The next token, everywhere in a document and at its end."""

    columns = (("loss", "next_token_accuracy"),)

    def terms(self, output: LanguageModelOutput) -> tuple[Term, ...]:
        """Tokens."""
        return (Term(output.loss_sum, (output.n_correct,)),)


OBJECTIVES: dict[str, type[Objective]] = {
    "masked": MaskedObjective,
    "causal": CausalObjective,
    "translation": TranslationObjective,
}


def objective_of(settings: Any) -> Objective:
    """The objective that settings of one of the classes of `hatchery.objectives.settings` describe."""
    return OBJECTIVES[settings.task](settings)
