"""Which test sets a model translates; how it searches is said by the objective that it was trained with."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Annotated

from annotated_types import MinLen

from hatchery.corpora.settings import SplitName
from hatchery.settings.base import Count, DeviceName, RefusedError, Settings
from hatchery.settings.fields import BlockName, CorpusName, Names, Unique

TRANSLATED_LINES, REFERENCE_LINES = ".txt", ".reference.txt"
"""Endings of the files with the translations of a test set, and with what they are compared with."""
ALC_STEPS = 20_000
"""Updates over which "A Natural Bias for Language Generation Models", Section 4.2, takes the area under a learning
curve."""


@dataclass(frozen=True, kw_only=True)
class HeldOutPairs(Settings):
    """Pairs that are translated and compared with their references."""

    corpus: CorpusName
    """A parallel corpus of the same two languages; the model segments it with its own tokenizer."""
    split: SplitName = "test"
    """The split that is translated."""


@dataclass(frozen=True, kw_only=True)
class BeamChoice(Settings):
    """How many translations the search follows at once: so many that BLEU of validation text is highest."""

    test: BlockName
    """The test set that decides, of validation text."""
    sizes: Annotated[tuple[Count, ...], MinLen(1), Unique()]
    """Sizes that are tried; of equally good ones the smallest is taken."""


@dataclass(frozen=True, kw_only=True)
class TranslationChoice(Settings):
    """The test sets of an experiment."""

    tests: dict[BlockName, HeldOutPairs] = field(default_factory=dict)
    """Test sets by the names that the tables show; none measures no translation."""
    leave_out: Names = ()
    """Runs that translate no test sets, such as those that another run goes on from; `*` stands for any text."""
    beams: BeamChoice | None = None
    """Choose the size of the beam for each model; null takes that of the objective (`search.beam`)."""
    alc_steps: Count = ALC_STEPS
    """The area under the learning curve of development text (alc_bleu, alc_chrf) is that of the first so many steps;
    models that did not train so long have none."""

    def __post_init__(self) -> None:
        require_test(self.beams, self.tests)


def require_test(beams: BeamChoice | None, tests: Mapping[str, HeldOutPairs]) -> None:
    """Raise RefusedError unless the test set that decides on the beam is one of `tests`."""
    if beams is not None and beams.test not in tests:
        there = ", ".join(tests) or "none"
        raise RefusedError("beams.test", f"got {beams.test!r}, expected one of `tests`: {there}")


def translated_runs(chosen: TranslationChoice, runs: Iterable[str]) -> list[str]:
    """Those of the runs of an experiment that translate its test sets, in their order."""
    translating = runs if chosen.tests else ()
    return [run for run in translating if not any(fnmatchcase(run, pattern) for pattern in chosen.leave_out)]


@dataclass(frozen=True, kw_only=True)
class TranslationTests(Settings):
    """The settings of the stage."""

    tests: Annotated[dict[BlockName, HeldOutPairs], MinLen(1)]
    """Test sets by the names that the tables show."""
    beams: BeamChoice | None = None
    """Sizes of the beam to choose from; null takes that of the model's objective."""

    def __post_init__(self) -> None:
        require_test(self.beams, self.tests)


@dataclass(frozen=True)
class TranslationRuntime(Settings):
    """How it is carried out; not part of the result's identity."""

    tokens_per_batch: Count | None = None
    """Tokens of the sources of a batch, padding included; null is a number that fits."""
    device: DeviceName = "auto"
    """Where the model computes."""
    threads: Count | None = None
    """CPU threads of PyTorch; null leaves its choice."""
