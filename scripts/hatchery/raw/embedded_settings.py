"""How much there is of the generated miniature language, which the package `demo` writes; planning asks this, too."""

from dataclasses import dataclass
from pathlib import PurePath
from typing import Annotated

from hatchery.settings.base import Natural, Range, Settings

# Tasks with as many rows as `examples_per_task` says, the two from which a model can really learn.
LONG_TASKS = ("acceptability", "entailment")


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
    translation_pairs: Annotated[int, Range(ge=20)] = 3000
    """Pairs of sentences to train translation on."""

    def training_rows(self, file: str) -> int:
        """About how many rows the generated training file of a task has."""
        task = PurePath(file).name.partition(".")[0]
        return self.examples_per_task if task in LONG_TASKS else self.examples_per_suite_task
