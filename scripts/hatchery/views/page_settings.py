"""Settings and inputs of the page of an experiment or a study."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hatchery.experiment.seeded_run import SeededRun
from hatchery.rendering.style import Style
from hatchery.settings.base import Settings


@dataclass(frozen=True)
class Part(Settings):
    """Facts on one experiment of a study for the study's page."""

    description: str
    corpus: str


@dataclass(frozen=True)
class PageSettings(Settings):
    """Texts and order of a page; `runs` are in the order of the models, `parts` are the experiments of a study.

    `style` is that of the figures, in whose colours the page shows the models.
    """

    experiment: str
    description: str
    runs: tuple[SeededRun, ...] = ()
    parts: dict[str, Part] = field(default_factory=dict)
    # If there are many models, the set of each model of a grid, for people.
    sets: dict[str, str] = field(default_factory=dict)
    style: Style = field(default_factory=Style)


@dataclass(frozen=True)
class PageInputs:
    """Inputs of a page; figures in their order, corpus cards by corpus, manifests of runs by name."""

    summary: Path
    # The summary as text, to which the page links.
    markdown: Path
    # The notes on the numbers.
    notes: Path
    # The page to which every number links.
    provenance: Path
    # The manifests on that page, by digest.
    places: Path | None = None
    figures: Sequence[Path] = ()
    cards: Mapping[str, Path] = field(default_factory=dict)
    runs: Path | None = None
    curves: Path | None = None
    pretraining: Mapping[str, Path] = field(default_factory=dict)
    # The tables of a paper, if the experiment repeats one.
    tables: Path | None = None
    # Sentences that the models wrote.
    filled: Mapping[str, Path] = field(default_factory=dict)
    costs: Sequence[Path] = ()
    # The table of all surprisals, if the experiment has texts under `surprisal`.
    surprisals: Sequence[Path] = ()
    # The pages of the experiments of a study, and its findings.
    parts: Mapping[str, Path] = field(default_factory=dict)
    analyses: Mapping[str, Path] = field(default_factory=dict)
