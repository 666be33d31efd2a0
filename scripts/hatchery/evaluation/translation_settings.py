"""Settings for the translation of test sets: the test sets, the beam size, and the runs that translate."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Annotated

from annotated_types import MinLen

from hatchery.corpora.settings import SplitName
from hatchery.settings.base import Count, RefusedError, Settings
from hatchery.settings.fields import BlockName, CorpusName, Names, Unique

TRANSLATED_LINES, REFERENCE_LINES = ".txt", ".reference.txt"
"""File suffixes: the translations of a test set by the model, and the reference translations."""
TRANSLATION_SUITE = "translation"
"""Suite name of all translation test sets in tables."""
BEAM = "beam"
"""Key of the chosen beam size among the measures in manifests."""
ALC_STEPS = 20_000
"""Number of updates over which "A Natural Bias for Language Generation Models", Section 4.2, computes the area under
a learning curve."""


@dataclass(frozen=True, kw_only=True)
class HeldOutPairs(Settings):
    """A test set: sentence pairs of a corpus. The model translates the source sentences, and the translations are
    compared with the target sentences.
    """

    corpus: CorpusName
    """Parallel corpus of the model's two languages; the model's own tokenizer segments its texts."""
    split: SplitName = "test"
    """Split of the corpus to translate."""


@dataclass(frozen=True, kw_only=True)
class BeamChoice(Settings):
    """Choice of the beam size that has the highest BLEU on validation text."""

    test: BlockName
    """Name of the test set whose BLEU is compared between beam sizes. This test set should be validation text."""
    sizes: Annotated[tuple[Count, ...], MinLen(1), Unique()]
    """Beam sizes to compare. If several sizes have the highest BLEU, the smallest of these sizes is used."""


@dataclass(frozen=True, kw_only=True)
class TranslationChoice(Settings):
    """Translation of test sets in an experiment."""

    tests: dict[BlockName, HeldOutPairs] = field(default_factory=dict)
    """Test sets by name, as shown in the tables; with an empty mapping, nothing is translated."""
    leave_out: Names = ()
    """Runs that translate no test sets, for example runs from which another run continues; `*` matches any text."""
    beams: BeamChoice | None = None
    """Choice of the beam size for each model; `null` uses `search.beam` of the objective."""
    alc_steps: Count = ALC_STEPS
    """Number of steps, from the start of training, over which the area under the learning curve of development text is
    computed (`alc_bleu`, `alc_chrf`). No area is computed for a training with fewer steps.
    """

    def __post_init__(self) -> None:
        require_test(self.beams, self.tests)


def require_test(beams: BeamChoice | None, tests: Mapping[str, HeldOutPairs]) -> None:
    """If a beam size is chosen, raise RefusedError unless `tests` contains the test set on which it is chosen.

    If a beam size is chosen, also raise RefusedError for a test set with the name BEAM. This name is the manifest's key
    for the chosen beam size.
    """
    if beams is not None and beams.test not in tests:
        there = ", ".join(tests) or "none"
        raise RefusedError("beams.test", f"got {beams.test!r}, expected one of `tests`: {there}")
    if beams is not None and BEAM in tests:
        raise RefusedError(
            f"tests.{BEAM}",
            f"got the name {BEAM!r}, expected another name, because {BEAM!r} is the manifest's key for the beam size",
        )


def translated_runs(chosen: TranslationChoice, runs: Iterable[str]) -> list[str]:
    """Return the runs of an experiment that translate the experiment's test sets, in the order of `runs`."""
    translating = runs if chosen.tests else ()
    return [run for run in translating if not any(fnmatchcase(run, pattern) for pattern in chosen.leave_out)]


@dataclass(frozen=True, kw_only=True)
class TranslationTests(Settings):
    """Settings of the stage `translate_tests`."""

    tests: Annotated[dict[BlockName, HeldOutPairs], MinLen(1)]
    """Test sets by the names that the tables show."""
    beams: BeamChoice | None = None
    """Choice of the beam size; `null` uses `search.beam` of the model's objective."""

    def __post_init__(self) -> None:
        require_test(self.beams, self.tests)
