"""Settings and inputs of the page of an experiment or a study."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hatchery.experiment.seeded_run import SeededRun
from hatchery.rendering.style import Style
from hatchery.settings.base import Settings


@dataclass(frozen=True)
class Part(Settings):
    """Description and corpus of one experiment in a study, for the study's page."""

    description: str
    corpus: str


@dataclass(frozen=True)
class PageSettings(Settings):
    """Settings of a page: its description, and the order and colours of its models.

    `runs` lists the runs model by model. `parts` maps the names of a study's experiments to descriptions and corpora.
    `style` is the style of the figures; the page shows each model in the colour that it has in the figures.
    """

    experiment: str
    description: str
    runs: tuple[SeededRun, ...] = ()
    parts: dict[str, Part] = field(default_factory=dict)
    # Grid set of each model; empty if there are few models.
    sets: dict[str, str] = field(default_factory=dict)
    style: Style = field(default_factory=Style)


@dataclass(frozen=True)
class PageInputs:
    """Input files of a page: figures in the order of the page, corpus cards by corpus, and manifests of runs
    by name.
    """

    summary: Path
    # The summary as text, to which the page links.
    markdown: Path
    # The notes on the numbers, as JSON.
    notes: Path
    # The provenance page, to which scores link.
    provenance: Path
    # JSON file with the digests of the manifests that the provenance page lists.
    places: Path | None = None
    figures: Sequence[Path] = ()
    cards: Mapping[str, Path] = field(default_factory=dict)
    runs: Path | None = None
    curves: Path | None = None
    pretraining: Mapping[str, Path] = field(default_factory=dict)
    # The tables of a paper, if the experiment replicates a paper.
    tables: Path | None = None
    # Manifests of the sentences that the models filled in, by run.
    filled: Mapping[str, Path] = field(default_factory=dict)
    costs: Sequence[Path] = ()
    # The table of all surprisals, if the experiment has texts under `surprisal`.
    surprisals: Sequence[Path] = ()
    # The pages of the experiments of a study, and the analyses of the experiment or study.
    parts: Mapping[str, Path] = field(default_factory=dict)
    analyses: Mapping[str, Path] = field(default_factory=dict)
