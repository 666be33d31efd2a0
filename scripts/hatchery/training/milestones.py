"""Paths of intermediate checkpoints, and the number of words that a model has seen. Planning uses this module, so it
does not import PyTorch.
"""

from collections.abc import Mapping
from typing import Any

MILESTONES_FOLDER = "milestones"
"""Folder of intermediate checkpoints, next to the exported model. The settings `milestones`, `checkpoints_at` or
`compute.milestones` determine the checkpoints.
"""
MILESTONE_NAME = "(?:step_[0-9]{8}|chck_[0-9]+[KM]?)"
"""Pattern for the folder names of intermediate checkpoints, which contain a number of steps or of words."""
BABYLM_MARKS = tuple(
    step * unit for unit, most in ((1_000_000, 9), (10_000_000, 9), (100_000_000, 10)) for step in range(1, most + 1)
)
"""Numbers of words after which the BabyLM challenge requires a checkpoint: 19 checkpoints up to 100 million words, and
28 checkpoints up to 1,000 million words.
"""


def step_name(step: int) -> str:
    """Return the folder name of the checkpoint after `step` finished steps."""
    return f"step_{step:08d}"


def mark_name(words: int) -> str:
    """Return the name of the checkpoint that a run saves after it has read `words` words, as in the BabyLM challenge:
    `chck_1M`, `chck_1000M`.
    """
    for unit, size in (("M", 1_000_000), ("K", 1_000)):
        if words % size == 0:
            return f"chck_{words // size}{unit}"
    return f"chck_{words}"


def words_of_mark(name: str) -> int:
    """Return the number of words of the word milestone called `name` (see `mark_name`)."""
    digits = name.removeprefix("chck_")
    return int(digits.rstrip("KM")) * {"M": 1_000_000, "K": 1_000}.get(digits[-1], 1)


def milestone_place(name: str) -> str:
    """Return the folder of an intermediate checkpoint, relative to the folder of the finished model."""
    return f"{MILESTONES_FOLDER}/{name}"


def words_seen(measures: Mapping[str, Any]) -> int | None:
    """Return the number of words seen by a model and by the models from which it was initialised; None if unknown.

    `measures` is the mapping under the key `measures` of the model's manifest.
    """
    words = measures.get("words_seen", None if "initial_model" in measures else measures.get("words"))
    return None if words is None else int(words)
