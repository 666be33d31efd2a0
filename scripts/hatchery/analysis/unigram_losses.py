"""The loss of the unigram distribution: a blind guess on held-out text.

It gives every token the share of its type among the targets of the training text, one added to each count
(`count_distributions.smoothed_distribution`): what a model learns long before any grammar ("A Natural Bias for Language
Generation Models", Section 1).
"""

from pathlib import Path

import numpy as np

from hatchery.artifacts.manifests import Manifest, read_manifest
from hatchery.modeling.count_distributions import smoothed_distribution
from hatchery.tokenization.shards import TRAINING_SPLIT
from hatchery.tokenization.token_reader import TokenShards
from hatchery.training.objective import ObjectiveKeys
from hatchery.training.objectives import objective_of


class UnigramLosses:
    """The losses of the unigram distribution of a corpus, each computed once."""

    def __init__(self, tokens: Path | None) -> None:
        """`tokens` is the manifest of the token shards of the corpus; without it nothing is known."""
        self._tokens = None if tokens is None else read_manifest(tokens)
        self._counts: dict[tuple[str, str, str], np.ndarray] = {}

    def loss(self, made: Manifest, objective: ObjectiveKeys, split: str) -> float | None:
        """Nats per token of a split that a model of an objective can be asked for.

        None where `made`, a training or an evaluation, read other shards. Raises what `Objective.target_counts`
        raises.
        """
        if self._tokens is None or made.inputs.get("tokens") != self._tokens.digest:
            return None
        training, held_out = (self._counted(one, objective) for one in (TRAINING_SPLIT, split))
        return float(-(held_out @ np.log(smoothed_distribution(training))) / held_out.sum())

    def _counted(self, split: str, objective: ObjectiveKeys) -> np.ndarray:
        assert self._tokens is not None
        # Models that hide other shares of the tokens are asked for the same ones in the mean.
        key = (split, objective.task, getattr(objective, "direction", ""))
        if key not in self._counts:
            self._counts[key] = objective_of(objective).target_counts(TokenShards.open(self._tokens.path, split))
        return self._counts[key]
