"""From token shards to examples of one sequence length: the seam between the stage and `objectives`.

The training split is cut anew for each phase's sequence length. The development split is optional, because a corpus
may be split without one; a run then has no development columns.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from hatchery.artifacts.manifests import read_manifest
from hatchery.tokenization.shards import DEVELOPMENT_SPLIT, TOKEN_SHARDS, shards_by_split
from hatchery.tokenization.token_reader import TokenShards
from hatchery.training.batches import Examples
from hatchery.training.objectives import objective_of
from hatchery.training.settings import PretrainSettings


def examples_maker(shards: TokenShards, settings: Any) -> Callable[[int], Examples]:
    """A function that makes the examples of `shards` for a sequence length (special tokens included).

    `settings` are those of an objective.
    """
    return partial(objective_of(settings).examples, shards)


def development_examples(tokens: Path, settings: PretrainSettings) -> Examples | None:
    """The development examples in the short phase's length, so that a curve is comparable over the whole run.

    None when the corpus has no development split, when it is empty, or when the settings ask for no sequence.
    """
    has_split = DEVELOPMENT_SPLIT in shards_by_split(read_manifest(tokens), TOKEN_SHARDS)
    if not has_split or settings.evaluation_sequences == 0:
        return None
    objective = objective_of(settings.objective)
    examples = objective.examples(objective.open(tokens, DEVELOPMENT_SPLIT), settings.sequence_length)
    return examples if len(examples) else None
