"""The manifests that a run reads."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Inputs:
    """The manifests that a run reads."""

    tokens: Path
    tokenizer: Path
    # The model that training starts from, if not from random weights.
    initial: Path | None = None
    # Token shards of the corpus in which the bias of the output layer is counted, if not in the run's own.
    counts: Path | None = None

    @property
    def by_name(self) -> dict[str, Path]:
        """The manifests by the names that the exported model's manifest gives them."""
        named = {"tokens": self.tokens, "tokenizer": self.tokenizer}
        more = {"initial_model": self.initial, "counts": self.counts}
        return named | {name: path for name, path in more.items() if path is not None}
