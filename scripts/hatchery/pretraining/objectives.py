"""The objectives that a model can be trained for, by the task of their settings."""

from typing import Any

import numpy as np

from hatchery.modeling.language_model import LanguageModelOutput
from hatchery.objectives.label_counts import corpus_counts, next_token_counts
from hatchery.objectives.special_ids import SpecialIds
from hatchery.pretraining.measures import Term
from hatchery.pretraining.objective import Objective
from hatchery.pretraining.translation import TranslationObjective
from hatchery.tokenization.token_reader import TokenShards


def maskable_tokens(shards: TokenShards) -> np.ndarray:
    """The tokens of a split that masking can choose: int64 [V]."""
    return corpus_counts(shards, SpecialIds.of(shards.special), shards.vocabulary_size)


class MaskedObjective(Objective):
    """Hidden tokens and, where the settings ask for them, pairs of texts (LTG-BERT section 3)."""

    columns = (("loss", "masked_accuracy"), ("pair_loss", "pair_accuracy"))

    def terms(self, output: LanguageModelOutput) -> tuple[Term, ...]:
        """Tokens, and pairs."""
        tokens = Term(output.loss_sum, (output.n_correct,))
        if output.pair_loss_sum is None or output.n_pairs_correct is None:
            return (tokens,)
        return tokens, Term(output.pair_loss_sum, (output.n_pairs_correct,))

    def target_counts(self, shards: TokenShards) -> np.ndarray:
        """Tokens that masking can choose."""
        return maskable_tokens(shards)


class CausalObjective(Objective):
    """The next token, everywhere in a document and at its end."""

    columns = (("loss", "next_token_accuracy"),)

    def terms(self, output: LanguageModelOutput) -> tuple[Term, ...]:
        """Tokens."""
        return (Term(output.loss_sum, (output.n_correct,)),)

    def target_counts(self, shards: TokenShards) -> np.ndarray:
        """All tokens, and the end of every document; its start is none."""
        special = SpecialIds.of(shards.special)
        documents = (document.ids for document in shards if len(document.ids))
        return next_token_counts(documents, special.sep, special.cls, shards.vocabulary_size)


OBJECTIVES: dict[str, type[Objective]] = {
    "masked": MaskedObjective,
    "causal": CausalObjective,
    "translation": TranslationObjective,
}


def objective_of(settings: Any) -> Objective:
    """The objective that settings of one of the classes of `hatchery.objectives.settings` describe."""
    return OBJECTIVES[settings.task](settings)
