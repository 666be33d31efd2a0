"""What a model is asked for: the types of a vocabulary, by how often the text of a split makes them a target.

Source: docs/papers/natural-bias.md, "The bias" and "Other objectives". Targets are counted as
the loss of an objective sees them: ends where they are predicted, starts and padding never.
"""

from collections.abc import Iterator

import numpy as np

from hatchery.objectives.label_counts import corpus_counts, next_token_counts
from hatchery.objectives.settings import AnyObjective, CausalSettings, TranslationSettings
from hatchery.objectives.special_ids import SpecialIds
from hatchery.objectives.translation_pairs import WHOLE, pairs_of, target_ids
from hatchery.tokenization.token_reader import TokenShards


def target_counts(shards: TokenShards, settings: AnyObjective) -> np.ndarray:
    """How often each type of the vocabulary can be a target of the objective in a split: int64 [V].

    Raises TrainingError for text that is not what the objective learns from, and where there is none.
    """
    special = SpecialIds.of(shards.special)
    targets: Iterator[np.ndarray]
    if isinstance(settings, TranslationSettings):
        targets = target_ids(pairs_of(shards, WHOLE, settings, filtered=False))
    elif isinstance(settings, CausalSettings):
        targets = (document.ids for document in shards if len(document.ids))
    else:
        return maskable_tokens(shards)
    return next_token_counts(targets, special.sep, special.cls, shards.vocabulary_size)


def maskable_tokens(shards: TokenShards) -> np.ndarray:
    """The tokens of a split that masking can choose: int64 [V]."""
    return corpus_counts(shards, SpecialIds.of(shards.special), shards.vocabulary_size)
