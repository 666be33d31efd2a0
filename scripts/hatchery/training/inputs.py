"""The manifests that a run reads."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

TEACHER = "teacher"
"""Name of the first teacher among the inputs of a manifest; further names have a number."""
MEMBER = "member"
"""Name of the first member of an ensemble among the inputs of a manifest; further names have a number."""


@dataclass(frozen=True)
class Inputs:
    """The manifests that a run reads."""

    tokens: Path
    tokenizer: Path
    # The model that training starts from; None for random weights.
    initial: Path | None = None
    # Token shards of the corpus in which the output bias is counted; None for the run's own corpus.
    counts: Path | None = None
    # The finished models that the run learns from.
    teachers: Sequence[Path] = ()
    # The finished models whose mean probabilities the run predicts.
    members: Sequence[Path] = ()
    # The finished model or the word list that determines the difficulty by which sequences are ordered.
    order_model: Path | None = None
    order_words: Path | None = None

    @property
    def by_name(self) -> dict[str, Path]:
        """Return the manifests by their input names in the exported model's manifest."""
        named = {"tokens": self.tokens, "tokenizer": self.tokenizer}
        more = {
            "initial_model": self.initial,
            "counts": self.counts,
            "order_model": self.order_model,
            "order_words": self.order_words,
        }
        several = {TEACHER: self.teachers, MEMBER: self.members}
        numbered = {
            name if number == 1 else f"{name}_{number}": path
            for name, paths in several.items()
            for number, path in enumerate(paths, 1)
        }
        return named | {name: path for name, path in more.items() if path is not None} | numbered
