"""What an analysis is: a record in its own file (`ANALYSIS`), which says what it needs, its settings, and how it runs.

Its settings are checked while Snakemake plans, so the file imports nothing heavy at its top; what computes is imported
by the function that runs.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from hatchery.analysis.flops_counts import FlopsCount
from hatchery.analysis.settings import PublishedChoice
from hatchery.experiment.seeded_run import SeededRun
from hatchery.rendering.table import Table
from hatchery.settings.base import Count, Settings
from hatchery.settings.fields import Reference, Unique

TIDY_TABLES, SUMMARY, CORPORA = ("measurements", "runs", "curves", "layers"), "summary", "corpora"
TRANSLATIONS = "translations"
MINIMAL_PAIRS = "minimal_pairs"
TABLES = (*TIDY_TABLES, SUMMARY, CORPORA, TRANSLATIONS, MINIMAL_PAIRS)
"""What an analysis may need: the tidy tables of a study, its summary, what its models were trained on, the test
sets that they translated, and the minimal pairs that they judged."""
CORPUS, TOKENS, SWEEP, TRANSLATION = "corpus", "tokens", "tokenizer_sweep", "translation"
"""Manifests among the tables of a study: `corpus/<experiment>`, `tokens/<experiment>`, `tokenizer_sweep/<sweep>`,
`translation/<experiment>/<run>`, `minimal_pairs/<experiment>/<run>:<suite>`; those of a single experiment leave its
name out."""


PartsOfStudy = Annotated[tuple[Annotated[str, Reference("experiment")], ...], Unique()]
"""Some of the experiments of a study."""


@dataclass(frozen=True, kw_only=True)
class AnalysisSettings(Settings):
    """What every entry under `analyses` may say."""

    analysis: str = ""
    """Which analysis it is, a file of scripts/hatchery/analysis/analyses/; empty: the one called like the entry."""
    title: str = ""
    """Its heading on the page; empty: that of the analysis."""


@dataclass(frozen=True, kw_only=True)
class FrontierSettings(AnalysisSettings):
    """Which evaluations are compute-optimal: in each bin of FLOPs, the one with the lowest loss."""

    most_parameters: Count | None = None
    """Larger models do not count; null leaves out none."""
    flops: FlopsCount = "products"
    """How our FLOPs are counted: matrix products, a formula of the reduced-vocabulary study (code, printed, ...), or
    6 N D."""
    bins: Literal["january_2023", "quantiles"] = "quantiles"
    """The bins of FLOPs, of which each gives its lowest loss: with equal numbers of points, or those of the study's
    notebook of January 2023."""
    number_of_bins: Count = 30
    """Bins by quantiles; January's procedure knows its own number."""


def paper_files(paper: str) -> list[str]:
    """The published values and learning curves of a paper, below `config/published/`; none where none is named."""
    return [f"values/{paper}", f"curves/{paper}", f"curves/{paper}_runs"] if paper else []


@dataclass(frozen=True)
class Study:
    """What an analysis is given.

    `runs` are all pretrained models in the order of the configuration, `sets` the set of a model that a grid made,
    `published` the rows that they repeat. `tables` are those that the analysis needs, by name, with the manifests of
    corpora and sweeps among them, `files` the published ones, by path below `config/published/`.
    """

    name: str
    runs: tuple[SeededRun, ...] = ()
    sets: Mapping[str, str] = field(default_factory=dict)
    published: tuple[PublishedChoice, ...] = ()
    tables: Mapping[str, Path] = field(default_factory=dict)
    files: Mapping[str, Path] = field(default_factory=dict)

    def manifests(self, kind: str) -> dict[str, Path]:
        """The manifests of a kind, by the name of their experiment or sweep."""
        return {name.partition("/")[2]: path for name, path in self.tables.items() if name.startswith(f"{kind}/")}


Numbers = dict[str, Any]
"""A row of what an analysis found: numbers, names and gaps (None) by the columns of `numbers.csv`."""


@dataclass(frozen=True)
class Findings:
    """What an analysis found: `rows` of numbers for programs, all with the same keys; `tables` and `notes` for people.

    Numbers are written as they are, so an analysis rounds what differs from machine to machine in its last digits.
    In notes, `this` is code.
    """

    rows: Sequence[Mapping[str, Any]] = ()
    tables: Sequence[Table] = ()
    notes: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class Analysis:
    """An analysis; its name is that of its file.

    `needs` are names of `TABLES`. `published` gives, of settings, the tables below `config/published/` that it reads,
    without their ending, and `sweeps` the tokenizer sweeps whose results it reads. `check` raises ConfigError, before
    anything is planned, for settings that do not fit the runs of the study, of which it is given no tables. Raise
    `version` when the code finds something else. `of_translations` says that it finds nothing where no test set is
    translated.
    """

    title: str
    version: int
    settings: type[AnalysisSettings]
    run: Callable[[Any, Study], Findings]
    needs: tuple[str, ...] = ("measurements",)
    published: Callable[[Any], Iterable[str]] = lambda settings: ()
    sweeps: Callable[[Any], Iterable[str]] = lambda settings: ()
    check: Callable[[Any, Study], None] = lambda settings, study: None
    of_translations: bool = False
