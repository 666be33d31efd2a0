"""Effects of changed settings: differences from a baseline, compared with the baseline's noise over seeds.

For each score, runs of a model and of the baseline are paired by pretraining seed. The analysis computes the mean
difference over the pairs, and its 95 % interval (t distribution). If the baseline has at least `least_seeds` seeds
(default 3), the analysis also states if the difference exceeds `deviations` (default 2) standard deviations of the
baseline.

For losses, the analysis also computes a data factor. A curve is fitted to the losses of the baseline and of models that
differ from the baseline only in their amount of text. The model's mean difference from the baseline is added to the
curve's loss at the baseline's amount of text. The equivalent amount is the amount of text at which the curve reaches
this sum. The data factor is the equivalent amount, divided by the model's own amount of text.

The factor per second also takes the training time into account: (equivalent amount / baseline's amount of text) /
(model's training time / baseline's training time).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from hatchery.analysis.aggregates import mean_and_deviation
from hatchery.analysis.analyses.analysis import Analysis, AnalysisSettings, Findings, Numbers, Study
from hatchery.analysis.analyses.needs import tables
from hatchery.analysis.comparability import not_compared
from hatchery.analysis.settings import labels_of, models_in_order, runs_by_name
from hatchery.errors import ConfigError, EvaluationError
from hatchery.evaluation.basis import differing
from hatchery.rendering.table import Cell, Column, Content, Group, Table
from hatchery.settings.base import Count, Positive
from hatchery.settings.fields import Names
from hatchery.settings.problems import alternatives

if TYPE_CHECKING:
    import polars as pl

    from hatchery.analysis.data_factors import DataCurve

Key = tuple[str, str, str]
"""Suite, task and metric of a score."""
LOSS = "loss_nats"
LEVELS = ("split", "suite", "average")
SIZES = (
    "parameters",
    "layers",
    "embedding_size",
    "hidden_size",
    "intermediate_size",
    "attention_heads",
    "vocabulary_rows",
    "tied",
    "sequence_length",
)
"""Columns of runs.parquet in which every model of the data curve must equal the baseline."""


@dataclass(frozen=True, kw_only=True)
class NoiseFloorSettings(AnalysisSettings):
    """Settings of the analysis: the baseline, and the models that show the effect of the amount of text."""

    baseline: str
    """Model with which all other models are compared, as `experiment/model`."""
    curve: Names = ()
    """Models that differ from the baseline only in their amount of text. The data curve, loss as a function of the
    amount of text, is fitted to the losses of these models and of the baseline. Models whose
    architecture has other sizes are left out, with a note.
    """
    least_seeds: Count = 3
    """Minimum number of seeds of the baseline. With fewer seeds, the noise is unknown."""
    deviations: Positive = 2.0
    """Number of the baseline's standard deviations over seeds that a mean difference must exceed to count as larger
    than noise.
    """


def check(settings: NoiseFloorSettings, study: Study) -> None:
    """Raise ConfigError if a key of the settings names a model that the study does not contain."""
    models = models_in_order(study.runs)
    for key, names in (("baseline", (settings.baseline,)), ("curve", settings.curve)):
        for name in names:
            if name not in models:
                raise ConfigError(f"{key}: got {name!r}, expected a model of this study{alternatives(name, models)}")


@dataclass(frozen=True)
class SeededValues:
    """The values of one score (suite, task and metric) by model and seed. `bases` describes, by model, how the score
    was measured; only scores with equal descriptions are comparable.
    """

    values: Mapping[str, Mapping[int, float]]
    bases: Mapping[str, set[str]]


def compare(settings: NoiseFloorSettings, study: Study) -> Findings:
    """Return a row for each score of each model, except for the baseline and the models that the setting `curve` names.
    A score has no row if the baseline lacks this score, or if the two scores are not comparable.

    Raises ManifestError for an altered table.
    """
    from hatchery.analysis.tidy_tables import MEASUREMENTS, RUNS, read_frame

    # The table `runs` also contains rows of milestones. Read only the rows of finished runs.
    names = runs_by_name(study.runs)
    runs = read_frame(study.tables["runs"], RUNS, run=names)
    amounts, seconds = _by_model(runs, "words"), _by_model(runs, "seconds")
    labels, models = labels_of(study.runs), models_in_order(study.runs)
    switches = [model for model in models if model not in (settings.baseline, *settings.curve)]
    rows: list[Numbers] = []
    apart: dict[str, Any] = {}
    resized = _resized(runs, settings)
    settings = replace(settings, curve=tuple(model for model in settings.curve if model not in resized))
    notes = [
        f"Differences from {labels[settings.baseline]} with the same pretraining seed: mean and 95 % "
        "interval. Noise is the standard deviation of the baseline's scores over at least "
        f"{settings.least_seeds} seeds.",
        *(
            f"{labels[model]} is not part of the curve, because it differs from the baseline in {', '.join(columns)}."
            for model, columns in resized.items()
        ),
    ]
    for key, found in _values(read_frame(study.tables["measurements"], MEASUREMENTS, run=names)).items():
        if settings.baseline not in found.values:
            continue
        curve = _curve(settings, found, amounts, key, notes) if key[2] == LOSS else None
        for model in settings.curve:
            if different := differing([*found.bases[settings.baseline], *found.bases.get(model, ())]):
                apart[f"{labels[model]}, {' '.join(key)}"] = different
        for model in switches:
            if model not in found.values:
                continue
            different = differing([*found.bases[settings.baseline], *found.bases[model]])
            if different:
                apart[f"{labels[model]}, {' '.join(key)}"] = different
                continue
            rows.append(_row(settings, model, key, found, curve, amounts, seconds))
    if any(row["data_factor"] is not None for row in rows):
        notes.append(
            "Text: the amount of text with which the baseline would reach the model's loss, divided by the "
            "model's amount of text. Per second: the same amount, divided by the baseline's amount of text and "
            "by the ratio of the model's training time to the baseline's training time."
        )
    columns = [
        Column("number", words=True),
        Column("difference"),
        Column("95 % interval"),
        Column("noise"),
        Column("beyond noise"),
        Column("text"),
        Column("per second"),
    ]
    groups = [
        Group([_line(row) for row in rows if row["model"] == model], labels[model])
        for model in switches
        if any(row["model"] == model for row in rows)
    ]
    notes += not_compared(apart)
    return Findings(rows, [Table(columns, groups, "Effect of each variant")] if groups else [], notes)


def _values(frame: "pl.DataFrame") -> dict[Key, SeededValues]:
    """Return the scores of pretrained models without fine-tuning, by (suite, task, metric): the scores on whole splits,
    the scores on whole suites, and the average scores within each suite.
    """
    import polars as pl

    chosen = frame.filter(
        pl.col("level").is_in(LEVELS)
        & pl.col("finetuning_seed").is_null()
        & pl.col("seed").is_not_null()
        & pl.col("value").is_not_null()
    )
    values: dict[Key, dict[str, dict[int, float]]] = {}
    bases: dict[Key, dict[str, set[str]]] = {}
    for model, seed, suite, task, metric, value, basis in chosen.select(
        "model", "seed", "suite", "task", "metric", "value", "basis"
    ).iter_rows():
        values.setdefault((suite, task, metric), {}).setdefault(model, {})[seed] = value
        bases.setdefault((suite, task, metric), {}).setdefault(model, set()).add(basis or "")
    return {key: SeededValues(of, bases[key]) for key, of in values.items()}


def _resized(runs: "pl.DataFrame", settings: NoiseFloorSettings) -> dict[str, list[str]]:
    """Return, for each model of the setting `curve`, the columns in which this model must equal the baseline (SIZES)
    but differs. Models without differences are omitted.
    """
    sizes = {row["model"]: row for row in runs.select("model", *SIZES).iter_rows(named=True)}
    own = sizes.get(settings.baseline)
    if own is None:
        return {}
    found = {name: [key for key in SIZES if sizes[name][key] != own[key]] for name in settings.curve if name in sizes}
    return {name: columns for name, columns in found.items() if columns}


def _by_model(runs: "pl.DataFrame", column: str) -> dict[str, dict[int, float]]:
    found: dict[str, dict[int, float]] = {}
    for model, seed, value in runs.select("model", "seed", column).iter_rows():
        if seed is not None and value is not None:
            found.setdefault(model, {})[seed] = float(value)
    return found


def _curve(
    settings: NoiseFloorSettings,
    found: SeededValues,
    amounts: Mapping[str, Mapping[int, float]],
    key: Key,
    notes: list[str],
) -> "DataCurve | None":
    """Fit the loss of the baseline and of the models of the setting `curve` as a function of the amount of text, append
    a note on the fit to `notes`, and return the curve.

    Return None if there is only one amount of text, if the setting `curve` names no models, or if the fit fails. Models
    whose loss is not comparable with the baseline's loss are left out.
    """
    from hatchery.analysis.data_factors import different_amounts, fit_data_curve

    points = [
        (amounts[model][seed], value)
        for model in (settings.baseline, *settings.curve)
        if not differing([*found.bases[settings.baseline], *found.bases.get(model, ())])
        for seed, value in found.values.get(model, {}).items()
        if seed in amounts.get(model, {})
    ]
    if not settings.curve or different_amounts([amount for amount, _ in points]) < 2:
        return None
    try:
        curve = fit_data_curve(*zip(*points, strict=True))
    except EvaluationError as error:
        notes.append(f"No data factors of {' '.join(key)}: {error}.")
        return None
    notes.append(
        f"Curve of {' '.join(key)}: {curve.limit:.4f} + {curve.coefficient:.4f} (words / "
        f"{curve.scale:.4g})^-{curve.exponent:.4f}, from {curve.least:.4g} to {curve.most:.4g} words, residual "
        f"{curve.deviation:.4f}. Amounts outside this range are extrapolated."
    )
    return curve


def _row(
    settings: NoiseFloorSettings,
    model: str,
    key: Key,
    found: SeededValues,
    curve: "DataCurve | None",
    amounts: Mapping[str, Mapping[int, float]],
    seconds: Mapping[str, Mapping[int, float]],
) -> Numbers:
    baseline, own = found.values[settings.baseline], found.values[model]
    common = sorted(baseline.keys() & own.keys())
    mean, half_width = paired_difference([own[seed] - baseline[seed] for seed in common])
    enough = len(baseline) >= settings.least_seeds
    noise = mean_and_deviation(list(baseline.values()))[1] if enough else None
    beyond = None if noise is None or mean is None else abs(mean) > settings.deviations * noise
    worth = factor = of_baseline = extrapolated = None
    shown = [amounts[model][seed] for seed in common if seed in amounts.get(model, {})]
    if curve is not None and shown and mean is not None:
        # The curve is a fit, so its loss at the baseline's amount of text differs slightly from the measured loss. Add
        # the difference to the curve's loss: then a difference of 0 yields exactly the baseline's amount of text.
        text = [amounts[settings.baseline][seed] for seed in common if seed in amounts.get(settings.baseline, {})]
        worth = curve.amount(curve.loss(sum(text) / len(text)) + mean) if text else None
        of_baseline = None if worth is None else worth * len(text) / sum(text)
        factor = None if worth is None else worth / (sum(shown) / len(shown))
        extrapolated = None if worth is None else not curve.least <= worth <= curve.most
    times = [
        seconds[model][seed] / seconds[settings.baseline][seed]
        for seed in common
        if seed in seconds.get(model, {}) and seconds.get(settings.baseline, {}).get(seed)
    ]
    ratio = sum(times) / len(times) if times else None
    per_second = None if of_baseline is None or not ratio else of_baseline / ratio
    return {
        "model": model,
        **dict(zip(("suite", "task", "metric"), key, strict=True)),
        "pairs": len(common),
        "difference": _rounded(mean),
        "half_width": _rounded(half_width),
        "baseline_seeds": len(baseline),
        "noise": _rounded(noise),
        "beyond_noise": beyond,
        "worth_words": None if worth is None else round(worth),
        "data_factor": _rounded(factor),
        "extrapolated": extrapolated,
        "seconds_ratio": _rounded(ratio),
        "factor_per_second": _rounded(per_second),
    }


def paired_difference(differences: list[float]) -> tuple[float | None, float | None]:
    """Return the mean difference and half the width of its 95 % interval. The half width is None for fewer than two
    differences. Without differences, both are None.
    """
    from scipy import stats

    if not differences:
        return None, None
    mean, deviation = mean_and_deviation(differences)
    if deviation is None:
        return mean, None
    return mean, float(stats.t.ppf(0.975, len(differences) - 1)) * deviation / len(differences) ** 0.5


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6) + 0.0


def _line(row: Numbers) -> list[Content]:
    def shown(value: float | None, text: str) -> str:
        return "-" if value is None else text.format(value)

    mean, half = row["difference"], row["half_width"]
    interval = "-" if mean is None or half is None else f"{mean - half:+.4f} to {mean + half:+.4f}"
    beyond = {None: "not known", True: "yes", False: "no"}[row["beyond_noise"]]
    factor = shown(row["data_factor"], "{:.2f} times")
    return [
        f"{row['suite']}: {row['task']}, {row['metric']}",
        shown(mean, "{:+.4f}"),
        interval,
        shown(row["noise"], "{:.4f}"),
        beyond,
        Cell(factor, remark="extrapolated") if row["extrapolated"] else factor,
        shown(row["factor_per_second"], "{:.2f} times"),
    ]


ANALYSIS = Analysis(
    title="Noise floor and data factor",
    version=5,
    settings=NoiseFloorSettings,
    run=compare,
    needs=(tables("measurements", "runs"),),
    check=check,
)
