"""Declaration of an analysis: its input files, its settings class, and its function.

Each analysis is one file with the analysis's name, and the file defines `ANALYSIS`. Planning imports this file to check
the settings, so large libraries are imported only inside the function.
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
"""Type of a setting that lists a study's experiments by name, each at most once."""


@dataclass(frozen=True, kw_only=True)
class AnalysisSettings(Settings):
    """Keys that every entry under `analyses` may have."""

    analysis: str = ""
    """Name of the analysis: a file in scripts/hatchery/analysis/analyses/. If empty, the name of the entry is used."""
    title: str = ""
    """Heading on the page. If empty, the analysis's own heading is used."""


@dataclass(frozen=True, kw_only=True)
class FrontierSettings(AnalysisSettings):
    """Settings of analyses of compute-optimal models. An evaluation during training is a point (training FLOPs, loss).
    In each bin of FLOPs, the point with the lowest loss is compute-optimal.
    """

    most_parameters: Count | None = None
    """Maximum number of parameters of a model; larger models are excluded. `null` includes all models."""
    flops: FlopsCount = "products"
    """Method of counting the FLOPs of our models: matrix products (`products`), 6 N D (`six_n_d`), or a formula of the
    reduced-vocabulary study (`code`, `printed`, ...).
    """
    bins: Literal["january_2023", "quantiles"] = "quantiles"
    """Bins of FLOPs. `quantiles`: bins with equal numbers of points; `january_2023`: the bins of the study's notebook
    of January 2023.
    """
    number_of_bins: Count = 30
    """Number of bins with `bins: quantiles`. The key has no effect with `bins: january_2023`."""


def paper_files(paper: str) -> list[str]:
    """Return the names of the tables with a paper's published values and learning curves, relative to
    `config/published/`; empty if `paper` is empty.
    """
    return [f"values/{paper}", f"curves/{paper}", f"curves/{paper}_runs"] if paper else []


@dataclass(frozen=True)
class Study:
    """The input of an analysis.

    `runs` are all pretrained models, in the order of the configuration. `sets` maps a model to the name of its grid
    set: the entry of `sets`, in the grid of the model's experiment, that contains the model. `published` names the
    papers that the models replicate, and the replicated rows of the papers' tables. `tables` are the paths of the
    tables and manifests that the analysis reads, with the keys from `Analysis.needs`. `files` are the paths of the
    tables of published values, by their names relative to `config/published/`.
    """

    name: str
    runs: tuple[SeededRun, ...] = ()
    sets: Mapping[str, str] = field(default_factory=dict)
    published: tuple[PublishedChoice, ...] = ()
    tables: Mapping[str, Path] = field(default_factory=dict)
    files: Mapping[str, Path] = field(default_factory=dict)

    def manifests(self, kind: str) -> dict[str, Path]:
        """Return the manifests in `tables` whose keys are `<kind>/<name>`, by `<name>`, which is the name of an
        experiment, a sweep or a run.
        """
        return {name.partition("/")[2]: path for name, path in self.tables.items() if name.startswith(f"{kind}/")}


Numbers = dict[str, Any]
"""A row of `numbers.csv`: values by column name. Missing values are None."""


@dataclass(frozen=True)
class Findings:
    """The result of an analysis: `rows` of numbers, all with the same keys, and texts and tables for the page of a
    study or experiment.

    `answer` contains sentences, generated from the rows, that the page shows before the tables. `notes` explain how the
    numbers were computed; text in backquotes is shown as code. Numbers are written unrounded. If the last digits of a
    number differ between machines, the analysis must round this number.
    """

    rows: Sequence[Mapping[str, Any]] = ()
    tables: Sequence[Table] = ()
    notes: Sequence[str] = ()
    answer: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class Analysis:
    """Declaration of an analysis, whose name is the name of its file.

    `needs` are functions that return the paths of input files (`needs.py`). `published` returns, for given settings,
    the names of the tables that the analysis reads, relative to `config/published/` and without file suffix. `check`
    raises ConfigError at planning time if the settings do not fit the runs of the study. Increase `version` if a change
    of the code changes the findings. `of_translations` is true if the analysis needs translated test sets.

    Some experiments have this analysis without a study. For such an experiment, `own` returns the settings of the
    analysis. For other experiments, `own` returns None. `place` is the position of an analysis without a study on the
    experiment's page.
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
    """Return the names of all analyses in this folder, without importing their files."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return tuple(path.stem for path in files if _BEGINNING in path.read_text(encoding="utf-8"))


def analysis_called(name: str) -> Analysis:
    """Return the analysis `name`, one of `analysis_names()`."""
    found: Analysis = import_module(f"hatchery.analysis.analyses.{name}").ANALYSIS
    return found


def kind_of(name: str, entry: Mapping[str, Any], where: str) -> str:
    """Return the name of the analysis that the entry `name` under `analyses` selects.

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
    """Return the settings of an entry under `analyses` as an object of the settings class of the analysis `kind`.
    Raises ConfigError for invalid settings."""
    return build(analysis_called(kind).settings, entry)


NUMBERS_FILE, FINDINGS_FILE, TABLE = "numbers.csv", "findings.json", "table_"


@dataclass(frozen=True)
class ShownFindings:
    """The findings of an analysis, as its page shows them: tables, notes and answer, and the paths of numbers.csv and
    of the table files.
    """

    title: str
    tables: tuple[Table, ...]
    notes: tuple[str, ...]
    answer: tuple[str, ...]
    numbers: Path
    files: tuple[Path, ...] = ()


def numbers_csv(found: Findings, analysis: str) -> str:
    """Return the rows of the findings as CSV text, with unrounded numbers. An empty field represents None.

    Raises EvaluationError if a row has other keys than the first row.
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
    """Return the texts of the Markdown and LaTeX files that contain the tables with their notes, by file name; empty if
    there are no tables.
    """
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
    """Return the text of findings.json, which contains the title, tables, notes and answer."""
    tables = [as_json(table) for table in found.tables]
    value = {"title": title, "tables": tables, "notes": list(found.notes), "answer": list(found.answer)}
    return json.dumps(value, ensure_ascii=False, indent=1) + "\n"


def read_findings(manifest: Path) -> ShownFindings:
    """Read the tables, notes and answer of an analysis.

    Raises ManifestError for a missing or altered manifest, EvaluationError for findings in another format.
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

    Raises ManifestError for a missing or altered manifest. The content of numbers.csv is not verified.
    """
    with read_manifest(manifest).file(NUMBERS_FILE).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
