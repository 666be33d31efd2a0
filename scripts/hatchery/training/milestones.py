"""Paths of intermediate checkpoints, and what they have seen, for planning without PyTorch."""

from collections.abc import Mapping
from typing import Any

MILESTONES_FOLDER = "milestones"
"""Beside the exported model; `milestones`, `checkpoints_at` or `compute.milestones` ask for what is in it."""
MILESTONE_NAME = "(?:step_[0-9]{8}|chck_[0-9]+[KM]?)"
"""A pattern of what the folders there are called: after steps, or after words."""
BABYLM_MARKS = tuple(
    step * unit for unit, most in ((1_000_000, 9), (10_000_000, 9), (100_000_000, 10)) for step in range(1, most + 1)
)
"""Words after which the BabyLM challenge wants a checkpoint: 19 up to 100 million, 28 up to 1,000 million."""


def step_name(step: int) -> str:
    """What a folder of a run is called after so many finished steps."""
    return f"step_{step:08d}"


def mark_name(words: int) -> str:
    """What the model after so many words is called, as the BabyLM challenge calls it: `chck_1M`, `chck_1000M`."""
    for unit, size in (("M", 1_000_000), ("K", 1_000)):
        if words % size == 0:
            return f"chck_{words // size}{unit}"
    return f"chck_{words}"


def words_of_mark(name: str) -> int:
    """Return the number of words of which `mark_name` is the name."""
    digits = name.removeprefix("chck_")
    return int(digits.rstrip("KM")) * {"M": 1_000_000, "K": 1_000}.get(digits[-1], 1)


def milestone_place(name: str) -> str:
    """The folder of a model of inside a training, relative to that of the finished one."""
    return f"{MILESTONES_FOLDER}/{name}"


def words_seen(measures: Mapping[str, Any]) -> int | None:
    """Words that the model of a manifest has seen, with those of all models that it was started from.

    `measures` are those of the manifest; None if nobody has counted.
    """
    found = measures.get("words_seen", None if "initial_model" in measures else measures.get("words"))
    return None if found is None else int(found)
