"""How much is generated; planning asks this, too, so it imports nothing of the language."""

from dataclasses import dataclass
from pathlib import PurePath

from hatchery.errors import ConfigError

# Tasks with as many rows as `examples_per_task` says, the two from which a model can really learn.
LONG_TASKS = ("acceptability", "entailment")
_LEAST = {"documents": 40, "pairs_per_paradigm": 2, "examples_per_task": 4, "examples_per_suite_task": 12}


@dataclass(frozen=True)
class EmbeddedSettings:
    """What is generated. `documents` counts those of bnc and babylm together, about 95 words each."""

    seed: int
    documents: int
    pairs_per_paradigm: int
    examples_per_task: int
    # Training rows of each task of the suites (BabyLM archive, SuperGLUE, HANS, MSGS, edge probing).
    examples_per_suite_task: int = 60

    def check(self) -> None:
        """Raise ConfigError for a count below what a source needs."""
        for key, least in _LEAST.items():
            if getattr(self, key) < least:
                raise ConfigError(f"{key}: got {getattr(self, key)}, at least {least} are needed")

    def training_rows(self, file: str) -> int:
        """About how many rows the generated training file of a task has."""
        task = PurePath(file).name.partition(".")[0]
        return self.examples_per_task if task in LONG_TASKS else self.examples_per_suite_task
