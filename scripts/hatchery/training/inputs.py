"""The manifests that a run reads."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Inputs:
    """The manifests that a run reads."""

    tokens: Path
    tokenizer: Path
    # The model that training starts from; None for random weights.
    initial: Path | None = None
    # Token shards of the corpus in which the output bias is counted; None for the run's own corpus.
    counts: Path | None = None

    @property
    def by_name(self) -> dict[str, Path]:
        """Return the manifests by their names in the exported model's manifest."""
        named = {"tokens": self.tokens, "tokenizer": self.tokenizer}
        more = {"initial_model": self.initial, "counts": self.counts}
        return named | {name: path for name, path in more.items() if path is not None}
