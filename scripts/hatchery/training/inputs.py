"""The input manifests of a run."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

TEACHER = "teacher"
"""Input name, in a manifest, of the first teacher; further teachers are `teacher_2`, `teacher_3` and so on."""
MEMBER = "member"
"""Input name, in a manifest, of an ensemble's first member; further members are `member_2` and so on."""


@dataclass(frozen=True)
class Inputs:
    """The input manifests of a run."""

    tokens: Path
    tokenizer: Path
    # Initial model; None starts from random weights.
    initial: Path | None = None
    # Token shards of the corpus in which labels are counted for the output bias; None uses the run's own corpus.
    counts: Path | None = None
    # Finished models that teach the run's model (distillation).
    teachers: Sequence[Path] = ()
    # Member models, if the run's model is an ensemble.
    members: Sequence[Path] = ()
    # Input from which the curriculum computes difficulties: a finished model, a word list, or a corpus with a numeric
    # column for its documents.
    order_model: Path | None = None
    order_words: Path | None = None
    order_corpus: Path | None = None

    @property
    def by_name(self) -> dict[str, Path]:
        """Return the manifests by name of the input. These names are also used in the exported model's manifest."""
        named = {"tokens": self.tokens, "tokenizer": self.tokenizer}
        more = {
            "initial_model": self.initial,
            "counts": self.counts,
            "order_model": self.order_model,
            "order_words": self.order_words,
            "order_corpus": self.order_corpus,
        }
        several = {TEACHER: self.teachers, MEMBER: self.members}
        numbered = {
            name if number == 1 else f"{name}_{number}": path
            for name, paths in several.items()
            for number, path in enumerate(paths, 1)
        }
        return named | {name: path for name, path in more.items() if path is not None} | numbered
