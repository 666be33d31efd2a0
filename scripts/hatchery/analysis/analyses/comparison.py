"""Suite averages and perplexities of several experiments' models side by side, and their differences."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hatchery.analysis.analyses.analysis import Analysis, AnalysisSettings, Findings, Numbers, Study
from hatchery.analysis.analyses.needs import tables
from hatchery.analysis.comparability import BETWEEN_TWO, ONE_SEED, not_compared
from hatchery.analysis.settings import labels_of, models_in_order
from hatchery.errors import ConfigError
from hatchery.evaluation.basis import differing
from hatchery.rendering.table import Cell, Column, Content, Group, Table
from hatchery.settings.base import conflict
from hatchery.settings.problems import alternatives

if TYPE_CHECKING:
    from hatchery.analysis.scores import Measure, Scores


@dataclass(frozen=True, kw_only=True)
class ComparisonSettings(AnalysisSettings):
    """Settings of the analysis: the pairs of models to compare."""

    against: str | None = None
    """Model with which all other models are compared, as `experiment/model`. If `null`, each model is compared with its
    `variant` if that key is set, and otherwise with the model of the same name in the first experiment.
    """
    variant: str = ""
    """Name of a variant of a grid, such as untrained: a model `x` is compared with the model `x_untrained`. If empty,
    models are not compared with variants.
    """

    def __post_init__(self) -> None:
        if self.variant and self.against is not None:
            raise conflict(
                "variant", self.variant, "`against`", "each of these keys determines the models to compare with"
            )


NO_REFERENCE = (
    "No models were compared: no model of another experiment has the same name as a model of the first experiment. "
    "Set `against` to the model with which all other models are compared."
)
NO_AVERAGE = "No models were compared: no model has an average that the reference model also has."


def check(settings: ComparisonSettings, study: Study) -> None:
    """Raise ConfigError if `against` is not the name of a model of the study, or if `variant` is set and no two models
    of the study have the names `x` and `x_<variant>`.
    """
    models = models_in_order(study.runs)
    if settings.against is not None and settings.against not in models:
        raise ConfigError(
            f"against: got {settings.against!r}, expected a model of this study{alternatives(settings.against, models)}"
        )
    if settings.variant and not any(pairs(settings, models)):
        raise ConfigError(
            f"variant: got {settings.variant!r}, expected the suffix of a run whose name without the suffix is also "
            "the name of a run"
        )


def compare(settings: ComparisonSettings, study: Study) -> Findings:
    """Return findings whose table has a group of rows for each model that is compared with a reference model. Raises
    ManifestError for an altered summary.
    """
    from hatchery.analysis.scores import read_scores

    labels = labels_of(study.runs)
    scores = read_scores(study.tables["summary"], labels)
    references = dict(pairs(settings, models_in_order(study.runs)))
    rows, groups = [], []
    for model, reference in references.items():
        compared = [row for measure in scores.headline() if (row := _row(scores, model, reference, measure))]
        rows += compared
        if compared:
            lines: list[list[Content]] = [[str(row["measure"]), *_cells(row)] for row in compared]
            groups.append(Group(lines, f"{labels[model]} against {labels[reference]}"))
    columns = [Column("measure", words=True), Column("this"), Column("the other"), Column("difference")]
    notes = [
        "Mean ± standard deviation over runs. The deviation of a difference is the square root of the sum of "
        "both squared deviations."
    ]
    single = [row["seeds"] < 2 or row["against_seeds"] < 2 for row in rows]
    title = f"Differences of averages, {BETWEEN_TWO}" if single and all(single) else "Differences of averages"
    notes += [ONE_SEED] if any(single) else []
    notes += not_compared({str(row["measure"]): different for row in rows if (different := differing(_bases(row)))})
    if not groups:
        notes = [NO_AVERAGE if references else NO_REFERENCE]
    return Findings(rows, [Table(columns, groups, title)] if groups else [], notes)


def pairs(settings: ComparisonSettings, models: list[str]) -> Iterator[tuple[str, str]]:
    """Yield pairs (model, reference model) for all models with a reference model; names are `experiment/model`."""
    if settings.against is not None:
        yield from ((model, settings.against) for model in models if model != settings.against)
        return
    if settings.variant:
        variants = {model: f"{model}_{settings.variant}" for model in models}
        yield from ((model, variant) for model, variant in variants.items() if variant in models)
        return
    first = models[0].partition("/")[0]
    for model in models:
        experiment, _, name = model.partition("/")
        if experiment != first and f"{first}/{name}" in models:
            yield model, f"{first}/{name}"


def _bases(row: Numbers) -> tuple[str, str]:
    return row["basis"], row["against_basis"]


def _row(scores: "Scores", model: str, reference: str, measure: "Measure") -> Numbers | None:
    from hatchery.analysis.published_values import combined_deviation

    ours, other = scores.row_for(measure, model), scores.row_for(measure, reference)
    if ours is None or other is None or ours.mean is None or other.mean is None:
        return None
    compare = not differing((ours.basis, other.basis))
    deviation = None if ours.std is None or other.std is None else combined_deviation(ours.std, other.std, None)
    return {
        "model": model,
        "against": reference,
        **{column: getattr(measure, column) for column in ("suite", "task", "metric")},
        "measure": measure.label,
        "mean": ours.mean,
        "std": ours.std,
        "against_mean": other.mean,
        "against_std": other.std,
        "difference": round(ours.mean - other.mean, 4) + 0.0 if compare else None,
        "deviation": round(deviation, 4) if compare and deviation is not None else None,
        "seeds": ours.seeds,
        "against_seeds": other.seeds,
        "basis": ours.basis,
        "against_basis": other.basis,
    }


def _cells(row: Numbers) -> list[Cell]:
    from hatchery.analysis.summary_rows import decimals_of

    digits = decimals_of(str(row["metric"]))
    pairs_of = (("mean", "std", ""), ("against_mean", "against_std", ""), ("difference", "deviation", "+"))
    return [
        Cell("-" if row[value] is None else f"{row[value]:{sign}.{digits}f}", _spread(row[spread], digits))
        for value, spread, sign in pairs_of
    ]


def _spread(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"


ANALYSIS = Analysis(
    title="Side by side",
    version=1,
    settings=ComparisonSettings,
    run=compare,
    needs=(tables("summary"),),
    check=check,
)
