"""Comparison of initialisations ("starts"): scores of all models, and differences from a reference initialisation.

Source: "A Natural Bias for Language Generation Models", Figures 2, 3, 5 to 8, 10, 13 and 14. As in these figures,
scores are means over seeds, with the standard error: the sample standard deviation, divided by the square root of the
number of seeds.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hatchery.analysis.aggregates import mean_and_error
from hatchery.analysis.analyses.analysis import Analysis, AnalysisSettings, Findings, Numbers, Study
from hatchery.analysis.analyses.needs import tables
from hatchery.analysis.comparability import not_compared
from hatchery.analysis.settings import labels_of, models_in_order
from hatchery.errors import ConfigError
from hatchery.evaluation.basis import differing
from hatchery.rendering.table import Cell, Column, Group, Table
from hatchery.settings.problems import alternatives

Key = tuple[str, str, str, str]
"""Model, suite, task and metric of a score."""


@dataclass(frozen=True, kw_only=True)
class StartsSettings(AnalysisSettings):
    """Settings of the analysis: the reference initialisation."""

    against: str = "zero"
    """Run with which all other runs of the same experiment are compared. Experiments without this run show no
    differences."""


def check(settings: StartsSettings, study: Study) -> None:
    """Raise ConfigError if no experiment has the run `against`."""
    runs = sorted({model.partition("/")[2] for model in models_in_order(study.runs)})
    if settings.against not in runs:
        raise ConfigError(
            f"against: got {settings.against!r}, expected a run of this study{alternatives(settings.against, runs)}"
        )


def compare(settings: StartsSettings, study: Study) -> Findings:
    """Return a row for each BLEU and chrF score of each translation model.

    If the score is comparable with the score of the reference initialisation (the setting `against`), the row also
    contains the difference between the two scores, and the standard error of this difference.
    """
    import polars as pl

    from hatchery.analysis.tidy_tables import MEASUREMENTS, read_frame
    from hatchery.evaluation.translation_settings import TRANSLATION_SUITE

    frame = read_frame(study.tables["measurements"], MEASUREMENTS)
    points = pl.col("metric").str.contains("bleu|chrf") & pl.col("value").is_not_null()
    values: dict[Key, list[float]] = {}
    bases: dict[Key, list[str]] = {}
    for model, suite, task, metric, value, basis in (
        frame.filter(points).select("model", "suite", "task", "metric", "value", "basis").iter_rows()
    ):
        values.setdefault((model, suite, task, metric), []).append(value)
        bases.setdefault((model, suite, task, metric), []).append(basis or "")
    # Leave out models without a score on translated test sets. Such models are only the first part of a training that
    # another run continues.
    translating = {model for model, suite, _, _ in values if suite == TRANSLATION_SUITE}
    models = [model for model in models_in_order(study.runs) if model in translating]
    different = {
        key: differing([*own, *bases.get(_reference(key, settings.against), ())]) for key, own in bases.items()
    }
    rows = list(_rows(values, settings.against, models, different))
    columns = [Column("score", words=True), Column("mean"), Column("difference"), Column("seeds")]
    groups, labels = [], labels_of(study.runs)
    for model in dict.fromkeys(row["model"] for row in rows):
        lines = [_line(row) for row in rows if row["model"] == model]
        groups.append(Group(lines, labels[model]))
    notes = [
        "Values are means over seeds in points, ± standard error. `alc` is the area under the curve of the "
        "development score over the first steps, divided by the number of these steps, which the row states. "
        f"A difference is the value minus the value of `{settings.against}` of the same experiment. The "
        "standard error of a difference is the square root of the sum of both squared standard errors. The "
        "paper prints no numbers for comparison."
    ]
    shown = {f"{labels[key[0]]}, {key[2]}, {key[3]}": different[key] for key in sorted(different) if key[0] in models}
    notes += not_compared(shown)
    return Findings(rows, [Table(columns, groups, "Initialisations of the output bias")] if groups else [], notes)


def _reference(key: Key, against: str) -> Key:
    """Return the key of the reference score for the score with the key `key`. The reference score has the same suite,
    task and metric, and is the score of the run `against` in the same experiment.
    """
    model, suite, task, metric = key
    return f"{model.partition('/')[0]}/{against}", suite, task, metric


def _rows(
    values: Mapping[Key, list[float]], against: str, models: Sequence[str], different: Mapping[Key, object]
) -> Iterator[Numbers]:
    """Yield a row for each model and score, with the difference from the reference initialisation.

    `different` lists, for each score, the aspects of measurement, such as the tokenizer, in which the score differs
    from the reference score. If any aspect differs, the row contains no difference.
    """
    for model in models:
        for key, found in sorted(values.items()):
            of, suite, task, metric = key
            if of != model:
                continue
            mean, error = mean_and_error(found)
            reference = _reference(key, against)
            others = values.get(reference)
            difference = spread = None
            if others and reference != key and not different[key]:
                base, base_error = mean_and_error(others)
                difference = round(mean - base, 4) + 0.0
                if error is not None and base_error is not None:
                    spread = round((error**2 + base_error**2) ** 0.5, 4)
            yield {
                "model": model,
                "suite": suite,
                "task": task,
                "metric": metric,
                "mean": round(mean, 4),
                "standard_error": None if error is None else round(error, 4),
                "seeds": len(found),
                "difference": difference,
                "difference_error": spread,
            }


def _line(row: Numbers) -> list[Any]:
    def cell(value: float | None, error: float | None, sign: str = "") -> Cell | str:
        if value is None:
            return ""
        return Cell(f"{value:{sign}.2f}", "" if error is None else f"{error:.2f}")

    name = f"{row['task']}, {row['metric']}"
    return [
        name,
        cell(row["mean"], row["standard_error"]),
        cell(row["difference"], row["difference_error"], "+"),
        str(row["seeds"]),
    ]


ANALYSIS = Analysis(
    title="Starts of training",
    version=1,
    settings=StartsSettings,
    run=compare,
    needs=(tables("measurements"),),
    check=check,
    of_translations=True,
)
