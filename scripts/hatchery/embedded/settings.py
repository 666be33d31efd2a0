"""How much of the generated miniature language there is."""

from dataclasses import dataclass
from typing import Annotated

from hatchery.settings.base import Natural, Range, Settings


@dataclass(frozen=True, kw_only=True)
class EmbeddedSettings(Settings):
    """The generated miniature language that the demo runs on."""

    seed: Natural = 0
    """Seed of all that is generated."""
    documents: Annotated[int, Range(ge=40)] = 4000
    """Number of generated documents of bnc and babylm together, about 95 words each."""
    pairs_per_paradigm: Annotated[int, Range(ge=2)] = 100
    """Sentence pairs of each paradigm."""
    examples_per_task: Annotated[int, Range(ge=4)] = 600
    """Training rows of acceptability and entailment."""
    examples_per_suite_task: Annotated[int, Range(ge=12)] = 60
    """Training rows of every other task."""
