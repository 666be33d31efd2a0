"""The declaration of an analysis (`ANALYSIS` in its file): the needed files, the settings class, and the function to
run.

An analysis has the name of its file, which is imported when a study names the analysis. Settings are checked while
Snakemake plans, so the file imports no large libraries at its top; the function that runs the analysis imports them.
"""

import csv
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from hatchery.analysis.flops_counts import FlopsCount
from hatchery.analysis.settings import PublishedChoice
from hatchery.artifacts.manifests import read_manifest
from hatchery.errors import ConfigError, EvaluationError
from hatchery.experiment.seeded_run import SeededRun
from hatchery.rendering.escaping import markdown_text
from hatchery.rendering.table import Table, as_json, from_json, latex_of_files
from hatchery.sanitize import csv_text
from hatchery.settings.base import Count, Settings, shortened
from hatchery.settings.fields import Reference, Unique
from hatchery.settings.problems import alternatives
from hatchery.typed import build

if TYPE_CHECKING:
    from hatchery.experiment.experiment_file import Experiment

TIDY_TABLES = ("measurements", "runs", "curves", "layers")

PartsOfStudy = Annotated[tuple[Annotated[str, Reference("experiment")], ...], Unique()]
"""Some of the experiments of a study."""


@dataclass(frozen=True, kw_only=True)
class AnalysisSettings(Settings):
    """Keys of every entry under `analyses`."""

    analysis: str = ""
    """Name of the analysis, a file of scripts/hatchery/analysis/analyses/; empty uses the name of the entry."""
    title: str = ""
    """Heading on the page; empty uses the analysis's own heading."""


@dataclass(frozen=True, kw_only=True)
class FrontierSettings(AnalysisSettings):
    """Settings of analyses of compute-optimal evaluations: in each bin of FLOPs, the evaluation with the lowest
    loss.
    """

    most_parameters: Count | None = None
    """Maximum number of parameters of a model; larger models are excluded. null excludes no models."""
    flops: FlopsCount = "products"
    """Method of counting our FLOPs: matrix products, a formula of the reduced-vocabulary study (code, printed, ...), or
    6 N D."""
    bins: Literal["january_2023", "quantiles"] = "quantiles"
    """Bins of FLOPs, from each of which the lowest loss is used. quantiles: equal numbers of points; january_2023: bins
    of the study's notebook of January 2023."""
    number_of_bins: Count = 30
    """Number of bins, for quantiles only; january_2023 has its own number."""


def paper_files(paper: str) -> list[str]:
    """Return the published values and learning curves of a paper, below `config/published/`; empty without a paper."""
    return [f"values/{paper}", f"curves/{paper}", f"curves/{paper}_runs"] if paper else []


@dataclass(frozen=True)
class Study:
    """The input of an analysis.

    `runs` are all pretrained models in the order of the configuration. `sets` maps models of a grid to the names of
    their sets. `published` are the papers' rows that the models replicate. `tables` are the tables and manifests that
    the analysis needs, by the names from `Analysis.needs`. `files` are the tables of published values, by path below
    `config/published/`.
    """

    name: str
    runs: tuple[SeededRun, ...] = ()
    sets: Mapping[str, str] = field(default_factory=dict)
    published: tuple[PublishedChoice, ...] = ()
    tables: Mapping[str, Path] = field(default_factory=dict)
    files: Mapping[str, Path] = field(default_factory=dict)

    def manifests(self, kind: str) -> dict[str, Path]:
        """Return the manifests of a kind, by the name of their experiment or sweep."""
        return {name.partition("/")[2]: path for name, path in self.tables.items() if name.startswith(f"{kind}/")}


Numbers = dict[str, Any]
"""A row of `numbers.csv`: numbers, names and missing values (None) by column."""


@dataclass(frozen=True)
class Findings:
    """The result of an analysis: `rows` of numbers for programs, all with the same keys; all other fields are for
    readers.

    `answer` contains the sentences that a page shows before all tables; they are generated from the rows. `notes` say
    how the numbers were computed; text in backquotes is code. Numbers are written unrounded, so an analysis rounds
    numbers whose last digits differ between machines.
    """

    rows: Sequence[Mapping[str, Any]] = ()
    tables: Sequence[Table] = ()
    notes: Sequence[str] = ()
    answer: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class Analysis:
    """An analysis; its name is the name of its file.

    `needs` are functions that return the paths of the files that the analysis reads (`needs.py`). `published` maps the
    settings to the names, without suffix, of the tables below `config/published/` that the analysis reads. `check`
    raises ConfigError at planning time, before there are tables, for settings that do not fit the runs of the study.
    Increase `version` when a change of the code changes the findings. `of_translations` is true of an analysis that
    needs translated test sets.

    A single experiment has the analysis, without a study, if `own` returns settings for the experiment. `place` is the
    position of the analysis on the page of the experiment.
    """

    title: str
    version: int
    settings: type[AnalysisSettings]
    run: Callable[[Any, Study], Findings]
    needs: "tuple[Callable[..., Mapping[str, str]], ...]"
    published: Callable[[Any], Iterable[str]] = lambda settings: ()
    check: Callable[[Any, Study], None] = lambda settings, study: None
    of_translations: bool = False
    own: "Callable[[Experiment], Mapping[str, Any] | None]" = lambda experiment: None
    place: int = 0


_BEGINNING = "\nANALYSIS = Analysis("


@cache
def analysis_names() -> tuple[str, ...]:
    """Return the names of the files in this folder that define an analysis, without importing the files."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return tuple(path.stem for path in files if _BEGINNING in path.read_text(encoding="utf-8"))


def analysis_called(name: str) -> Analysis:
    """Return the analysis called `name`, which must be one of `analysis_names()`."""
    found: Analysis = import_module(f"hatchery.analysis.analyses.{name}").ANALYSIS
    return found


def kind_of(name: str, entry: Mapping[str, Any], where: str) -> str:
    """Return the name of the analysis of the entry `name` under `analyses`.

    Raises ConfigError with the nearest name if there is no such analysis.
    """
    kind, names = entry.get("analysis") or name, analysis_names()
    if kind in names:
        return str(kind)
    there = alternatives(str(kind), names)
    if "analysis" in entry:
        raise ConfigError(f"{where}.analysis: got {shortened(kind)}, expected the name of an analysis{there}")
    raise ConfigError(
        f"{where}: no analysis is called {kind!r}; expected the key `analysis` with the name of an analysis{there}"
    )


def settings_of(kind: str, entry: Mapping[str, Any]) -> AnalysisSettings:
    """Build the settings of an entry with the class of its analysis. Raises ConfigError."""
    return build(analysis_called(kind).settings, entry)


NUMBERS_FILE, FINDINGS_FILE, TABLE = "numbers.csv", "findings.json", "table_"


@dataclass(frozen=True)
class ShownFindings:
    """The findings that a page shows: tables, notes and answer, the path of the numbers, and the paths of the tables as
    files."""

    title: str
    tables: tuple[Table, ...]
    notes: tuple[str, ...]
    answer: tuple[str, ...]
    numbers: Path
    files: tuple[Path, ...] = ()


def numbers_csv(found: Findings, analysis: str) -> str:
    """Return the rows as CSV: unrounded numbers, empty for None.

    Raises EvaluationError if rows differ in their keys.
    """
    header = list(found.rows[0]) if found.rows else []
    for row in found.rows:
        if list(row) != header:
            raise EvaluationError(
                f"{analysis}: got a row with the keys {', '.join(row)}, expected the keys of the first row: "
                f"{', '.join(header)}"
            )
    return csv_text(header, (list(row.values()) for row in found.rows))


def tables_as_files(found: Findings, title: str, entry: str, experiment: str) -> dict[str, str]:
    """Return the tables with their notes as Markdown and as LaTeX, by file name; empty without tables."""
    if not found.tables:
        return {}
    names = [f"{TABLE}{number:02}" for number in range(1, len(found.tables) + 1)]
    source = f"{experiment}, {entry}"
    texts = {
        f"{name}.tex": replace(table, notes=found.notes).latex_or_reason(
            source, f"{experiment}-{entry}-{name}".replace("_", "-"), wrap=True
        )
        for name, table in zip(names, found.tables, strict=True)
    }
    remarks = "\n".join(f"- {note}" for note in found.notes)
    blocks = [f"# {markdown_text(title)}", *(table.captioned_markdown() for table in found.tables), remarks]
    texts["tables.md"] = "\n\n".join(filter(None, blocks)) + "\n"
    return texts | {"tables.tex": latex_of_files((name, number) for number, name in enumerate(names, start=1))}


def findings_json(title: str, found: Findings) -> str:
    """Return the text of findings.json."""
    tables = [as_json(table) for table in found.tables]
    value = {"title": title, "tables": tables, "notes": list(found.notes), "answer": list(found.answer)}
    return json.dumps(value, ensure_ascii=False, indent=1) + "\n"


def read_findings(manifest: Path) -> ShownFindings:
    """Read the tables, notes and answer of an analysis.

    Raises ManifestError for an altered file, EvaluationError for a file in another format.
    """
    made = read_manifest(manifest)
    path = made.file(FINDINGS_FILE)
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
        tables = tuple(from_json(table) for table in value["tables"])
        files = (*made.files(suffix=".md"), *made.files(suffix=".tex"))
        notes, answer = (tuple(value[key]) for key in ("notes", "answer"))
        return ShownFindings(value["title"], tables, notes, answer, made.file(NUMBERS_FILE), files)
    except (ValueError, KeyError, TypeError) as error:
        raise EvaluationError(f"{path}: not the findings of an analysis: {error}") from error


def read_numbers(manifest: Path) -> list[dict[str, str]]:
    """Read the rows of numbers.csv as strings; missing values are empty strings.

    Raises ManifestError for an altered file.
    """
    with read_manifest(manifest).file(NUMBERS_FILE).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
