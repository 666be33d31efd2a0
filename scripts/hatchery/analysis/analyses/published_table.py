"""A table of a paper, with our models below the rows that they replicate.

Cells are model sizes, FLOPs, perplexities, averages, or changes between models. This analysis is for tables whose
columns come from several evaluations (such as Tables 3, 4 and 7 of the reduced-vocabulary paper) or whose rows come
from several experiments (such as Table 2 of GPT-BERT). Each experiment names the row that a model replicates
(`published.rows`).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

from hatchery.analysis.analyses.analysis import Analysis, AnalysisSettings, Findings, Numbers, Study
from hatchery.analysis.analyses.needs import tables
from hatchery.analysis.flops_counts import COUNT_NAMES, FlopsCount
from hatchery.rendering.table import Column, Group, Table
from hatchery.settings.base import Range, Settings

if TYPE_CHECKING:
    from hatchery.analysis.published_values import PublishedNumber

CHANGE = "_relative_change_percent"
SIZE, COST = ("size", "parameters", "million"), ("pretraining", "cost", "flops_1e15")
"""Columns whose values are read from `runs.parquet`, and not from `summary.csv`."""
SIZES_FILE = "models/parameters"
PRINTED = "printed"
CellKey = tuple[str, str, str]
"""Key of a cell: suite, task and metric."""


@dataclass(frozen=True, kw_only=True)
class ColumnSettings(Settings):
    """A column of the published table, which shows one score per model. Suite, task and metric are named as in
    `summary.csv` and in the table of published values.
    """

    heading: str
    """Heading of the column."""
    suite: str
    """Suite of the score; `size` for numbers of parameters, `pretraining` for costs."""
    task: str
    """Task of the score."""
    metric: str
    """Metric of the score; `million` for numbers of parameters, `flops_1e15` for costs."""
    variant: str = ""
    """Suffix, such as `_untrained`, that is added to the row's name. The column then shows this variant of the row's
    model.
    """
    decimals: Annotated[int, Range(ge=0, le=6)] = 2
    """Number of decimals of our scores; printed scores keep their decimals."""


@dataclass(frozen=True, kw_only=True)
class PublishedTableSettings(AnalysisSettings):
    """Settings of the analysis: the published table, and its columns."""

    paper: str
    """Name of the paper, as in the file names in config/published/."""
    table: str
    """Number of the table in the paper, such as 3."""
    columns: tuple[ColumnSettings, ...]
    """Columns of the table, from left to right."""
    change_from: str = ""
    """Suffix of row names, such as `_unconstrained`. Rows with this suffix show changes from the row without the
    suffix. If empty, no changes are shown.
    """
    minus: str = ""
    """Name of the row that is subtracted from all other rows: the printed row from the other printed rows, and our
    model of this row from our other models. If empty, no differences are shown.
    """
    suites: dict[str, str] = field(default_factory=dict)
    """Suites whose names differ between the paper and this study: the name in the paper, and the name in this study."""
    flops: FlopsCount = "code"
    """Method of counting the FLOPs of our models."""
    caption: str = ""
    """Caption above the table. If empty, the caption is the number of the paper's table."""
    remark: str = ""
    """Note below the table."""


def analyse(settings: PublishedTableSettings, study: Study) -> Findings:
    """Return the rows of the published table that `settings` names, each followed by the rows of our models that
    replicate it. Raises ManifestError for an altered file, and EvaluationError for an invalid file.
    """
    from hatchery.analysis.published_values import read_numbers

    numbers = [n for n in read_numbers(study.files[f"values/{settings.paper}"]) if n.table == settings.table]
    variants = tuple(column.variant for column in settings.columns if column.variant)
    names = [name for name in dict.fromkeys(n.row for n in numbers) if not name.endswith(variants or "\0")]
    printed = {(n.row, n.suite, n.task, n.metric): n for n in numbers}
    sizes = _printed_sizes(settings, study, names)
    values, repeated = _ours(settings, study), _repeated(study)
    rows, lines = [], []
    for name in names:
        shape = _called(settings, name)
        found = [
            printed.get((name + column.variant, *_printed_place(settings, column, name))) for column in settings.columns
        ]
        texts = [_printed_text(number, _is_change(settings, name)) for number in found]
        texts = [sizes.get(name, "-") if _place(c) == SIZE else t for c, t in zip(settings.columns, texts, strict=True)]
        lines.append([shape, PRINTED, *texts])
        numbers_in_print = [None if text == "-" else float(text) for text in texts]
        rows += [_row(PRINTED, name, *pair) for pair in zip(settings.columns, numbers_in_print, strict=True)]
        for experiment in repeated:
            ours = [_value(settings, column, name, experiment, repeated, values) for column in settings.columns]
            if any(value is not None for value in ours):
                signed = _is_change(settings, name)
                shown = [_text(column, value, signed) for column, value in zip(settings.columns, ours, strict=True)]
                lines.append([shape, experiment, *shown])
                rows += [_row(experiment, name, *pair) for pair in zip(settings.columns, ours, strict=True)]
    columns = [Column("model" if settings.minus else "model (E, H, I, L, A)", words=True), Column("source", words=True)]
    columns += [Column(column.heading) for column in settings.columns]
    caption = settings.caption or f"Table {settings.table} of the paper"
    return Findings(rows, [Table(columns, [Group(lines)], caption)], _notes(settings))


def _called(settings: PublishedTableSettings, name: str) -> str:
    """Return a row's label: its readable name if the setting `minus` is set, otherwise the model's sizes in the
    notation of the reduced-vocabulary study.
    """
    from hatchery.analysis.published_curves import shape_of, shape_text
    from hatchery.rendering.escaping import readable

    return readable(name) if settings.minus else shape_text(shape_of(name))


def _is_change(settings: PublishedTableSettings, name: str) -> bool:
    """Return True if the row `name` shows differences from another row."""
    return settings.minus not in ("", name)


def _printed_place(settings: PublishedTableSettings, column: ColumnSettings, name: str) -> CellKey:
    """Return the key (suite, task, metric) of the published number in the row `name` and the column `column`."""
    from hatchery.analysis.published_values import MINUS

    suite, task, metric = _place(column)
    return suite, task, f"{metric}{MINUS}{settings.minus}" if _is_change(settings, name) else metric


def _place(column: ColumnSettings) -> CellKey:
    return column.suite, column.task, column.metric


def _row(of: str, name: str, column: ColumnSettings, value: float | None) -> Numbers:
    place = dict(zip(("suite", "task", "metric"), _place(column), strict=True))
    return {"of": of, "row": name + column.variant, **place, "value": None if value is None else round(value, 6)}


def _printed_text(number: "PublishedNumber | None", signed: bool = False) -> str:
    """Format a published number with the number of decimals that its paper printed, inferred from the rounding of the
    number.
    """
    if number is None:
        return "-"
    decimals = max(0, round(-math.log10(2 * number.rounding)))
    return f"{number.value:{'+' if signed else ''}.{decimals}f}"


def _text(column: ColumnSettings, value: float | None, signed: bool = False) -> str:
    return "-" if value is None else f"{value:{'+' if signed else ''}.{column.decimals}f}"


def _printed_sizes(settings: PublishedTableSettings, study: Study, names: Sequence[str]) -> dict[str, str]:
    """Return the numbers of parameters, in millions, that the paper `settings.paper` prints for the rows `names` of its
    table.

    The paper's numbers are in the order of `names`. If there are more or fewer numbers than `names`, the result is
    empty.
    """
    from hatchery.analysis.published_values import PAPERS
    from hatchery.artifacts.records import read_rows

    columns = ("paper", "source", "unit", "value")
    wanted = (PAPERS[settings.paper], f"Table {settings.table}", "million")
    texts = [row for _, row in read_rows(study.files[SIZES_FILE], columns)]
    sizes = [row["value"] for row in texts if tuple(row[column] for column in columns[:3]) == wanted]
    return dict(zip(names, sizes, strict=True)) if len(sizes) == len(names) else {}


def _repeated(study: Study) -> dict[str, dict[str, str]]:
    """Return the models that replicate published rows, by experiment and row. If several models replicate a row, the
    first model is used.
    """
    found: dict[str, dict[str, str]] = {}
    for choice in study.published:
        for model, row in choice.rows.items():
            found.setdefault(model.partition("/")[0], {}).setdefault(row, model)
    return found


def _ours(settings: PublishedTableSettings, study: Study) -> dict[tuple[str, CellKey], float]:
    """Return the scores, numbers of parameters (millions) and training costs (10^15 FLOPs) of our models by (model,
    (suite, task, metric)). Suites are named as in the table of published values. Numbers of parameters and costs are
    read from the run with the first seed.
    """
    from hatchery.analysis.flops_counts import training_flops
    from hatchery.analysis.summary_rows import read_summary
    from hatchery.analysis.tidy_tables import RUNS, read_frame

    papers = {ours: theirs for theirs, ours in settings.suites.items()}
    found: dict[tuple[str, CellKey], float] = {}
    for row in read_summary(study.tables["summary"]):
        if row.mean is not None:
            found[row.model, (papers.get(row.suite, row.suite), row.task, row.metric)] = row.mean
    for run in read_frame(study.tables["runs"], RUNS).drop_nulls("steps").to_dicts():
        found.setdefault((run["model"], SIZE), run["parameters"] / 1e6)
        flops = training_flops(run, settings.flops)
        if flops is not None:
            found.setdefault((run["model"], COST), flops / 1e15)
    return found


def _value(
    settings: PublishedTableSettings,
    column: ColumnSettings,
    name: str,
    experiment: str,
    repeated: Mapping[str, Mapping[str, str]],
    values: Mapping[tuple[str, CellKey], float],
) -> float | None:
    """Return the value of our model for a row and a column; None if the study has no value for this cell.

    If the setting `minus` is set, return our model's value minus the value of another model: the first model that
    replicates the row `minus`. If the setting `change_from` is set, return the change from another experiment's model
    to our model. The other experiment's model is the first that replicates the row named `name` without the suffix
    `change_from`.
    """
    model, place = repeated[experiment].get(name + column.variant), _place(column)
    if model is None:
        return None
    if _is_change(settings, name):
        start = next((rows[settings.minus] for rows in repeated.values() if settings.minus in rows), None)
        ours, theirs = values.get((model, place)), None if start is None else values.get((start, place))
        return None if ours is None or theirs is None else ours - theirs
    if not settings.change_from:
        return values.get((model, place))
    base = name.removesuffix(settings.change_from)
    others = (rows[base] for other, rows in repeated.items() if other != experiment and base in rows)
    other = next(others, None)
    measure = _measure(place)
    ours, theirs = values.get((model, measure)), None if other is None else values.get((other, measure))
    if ours is None or theirs is None:
        return None
    return 100 * (ours / theirs - 1) if place[2].endswith(CHANGE) else ours - theirs


def _measure(place: CellKey) -> CellKey:
    """Return the key of the number from which the column with the key `place` computes a change between two models. If
    the column shows no change, return `place`. A key is (suite, task, metric).
    """
    suite, task, metric = place
    if not metric.endswith(CHANGE):
        return place
    name = metric.removesuffix(CHANGE)
    return COST if name == "flops" else (suite, task, "score_percent" if name == "score" else name)


def _notes(settings: PublishedTableSettings) -> list[str]:
    costs = any(_measure(_place(column)) == COST for column in settings.columns)
    flops = f" Our FLOPs (1e15): {COUNT_NAMES[settings.flops]}." if costs else ""
    notes = [
        "Printed rows are from the paper. Below each printed row are our models that replicate this row, as means "
        f"over seeds.{flops} A dash marks a number that is not printed or not measured.",
    ]
    if settings.minus:
        notes.append(f"The row {settings.minus!r} shows scores; all other rows show differences from this row.")
    if settings.change_from:
        notes.append(
            "Changes of scores are in percent of the score of the same model with the reduced vocabulary. "
            "Changes of sizes are absolute differences."
        )
    if settings.remark:
        notes.append(settings.remark)
    return notes


ANALYSIS = Analysis(
    title="Our models next to a table of the paper",
    version=1,
    settings=PublishedTableSettings,
    run=analyse,
    needs=(tables("runs", "summary"),),
    published=lambda settings: [f"values/{settings.paper}", SIZES_FILE],
)
