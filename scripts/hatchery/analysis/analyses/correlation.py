"""Spearman's correlation between perplexity and scores after fine-tuning, with the number of models n and the p value.

The analysis answers two questions. Do models with a lower perplexity have higher scores? Do compute-optimal models have
higher scores than other models of equal size? Source: "Honey, I Shrunk the Language" (the reduced-vocabulary study),
Section 5.3 and Figure 4.

If `paper` is set, three further results are shown. The first result is the correlations printed in the paper. The
second result is the p values that follow from these correlations and the printed number of models. The third result is
the correlation over the models in the paper's Table 3. The printed p values do not fit the printed number of models
(docs/papers/reduced-vocabulary.md, "Correlation"). Therefore n and p are always shown together.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from hatchery.analysis.analyses.analysis import (
    Analysis,
    Findings,
    FrontierSettings,
    Numbers,
    PartsOfStudy,
    Study,
    paper_files,
)
from hatchery.analysis.analyses.needs import tables
from hatchery.analysis.comparability import not_compared
from hatchery.analysis.flops_counts import COUNT_NAMES
from hatchery.analysis.rank_correlation import LEAST_PAIRS, Correlation, p_value_of, spearman
from hatchery.analysis.settings import models_in_order
from hatchery.errors import ConfigError
from hatchery.evaluation.basis import differing
from hatchery.rendering.table import Column, Group, Table
from hatchery.settings.base import require
from hatchery.settings.fields import Names
from hatchery.settings.problems import nearest
from hatchery.units import power

if TYPE_CHECKING:
    from hatchery.analysis.compute_optimal import Comparison

SMALL_P = 1e-3
TABLE = "3"
"""Number of the reduced-vocabulary paper's table of fine-tuned models."""
OURS, TABULATED, PRINTED = "ours", "published Table 3", "printed"
STATED_PAIRS = 32
"""Number of models in the printed correlation, as stated in the reduced-vocabulary study, Section 5.3."""


@dataclass(frozen=True, kw_only=True)
class CorrelationSettings(FrontierSettings):
    """Settings of the analysis: the models and scores whose correlation is computed."""

    experiments: PartsOfStudy = ()
    """Experiments of the study whose models are pooled; an empty list means all."""
    suites: tuple[str, ...] = ()
    """Suites of tasks whose averages are correlated; an empty list means all suites that have an average."""
    split: str = "test"
    """Split of the perplexity. If any model has no perplexity of this split, the last development perplexity of each
    model's training is used for all models.
    """
    frontier: PartsOfStudy = ()
    """Experiments of the study whose evaluations are divided into bins of FLOPs. In each bin, the evaluation with the
    lowest loss determines the compute-optimal model. An empty list means the experiments of the key `experiments`.
    """
    models: Names = ()
    """Names of the models to include; `*` matches any characters. An empty list means all models."""
    tabulated: bool = False
    """Include only models that replicate a row of Table 3 of the paper `paper`, and the models in `models`. The table
    then also shows the p value that the printed rho would have for this number of models, next to our p value.
    """
    paper: str = ""
    """Name of the paper whose published values (tables in config/published/) are shown next to our values. If empty, no
    published values are shown.
    """

    def __post_init__(self) -> None:
        require(not self.tabulated or bool(self.paper), "tabulated", self.tabulated, "false without a `paper`")


def check(settings: CorrelationSettings, study: Study) -> None:
    """Raise ConfigError for a pattern that matches no model of the study."""
    models = models_in_order(study.runs)
    for pattern in settings.models:
        if not any(_fits(model, pattern) for model in models):
            raise ConfigError(
                f"models: got {pattern!r}, expected the name of a model of this study{nearest(pattern, models)}"
            )


def _fits(model: str, pattern: str) -> bool:
    return fnmatchcase(model.rpartition("/")[2], pattern)


def counting(settings: CorrelationSettings, study: Study) -> Callable[[str], bool]:
    """Return a function that returns True if the correlation includes the model with the given name."""
    from hatchery.analysis.published_values import read_numbers

    if not settings.models and not settings.tabulated:
        return lambda model: True
    numbers = read_numbers(study.files[f"values/{settings.paper}"]) if settings.tabulated else []
    rows = {number.row for number in numbers if number.table == TABLE}
    repeating = {
        model
        for choice in study.published
        if choice.paper == settings.paper
        for model, row in choice.rows.items()
        if row in rows
    }
    return lambda model: model in repeating or any(_fits(model, pattern) for pattern in settings.models)


@dataclass(frozen=True)
class Pair:
    """A trained model with its perplexity and its average score on a suite.

    `optimal` is None for published models, for which compute-optimality is unknown.
    """

    source: str
    model: str
    suite: str
    perplexity: float
    score: float
    parameters: float | None
    flops: float | None
    optimal: bool | None = None
    basis: str = ""
    """Comparison basis of the perplexity (`evaluation.basis`)."""
    score_basis: str = ""


def analyse(settings: CorrelationSettings, study: Study) -> Findings:
    """Return findings with the perplexity and score of each model and suite, and with the correlation over models for
    each suite. Raises ManifestError for an altered file, and EvaluationError for an invalid file.
    """
    from hatchery.analysis.compute_optimal import compared

    ours = [*_our_pairs(settings, study)]
    apart = {"perplexity": differing(pair.basis for pair in ours)}
    for suite in dict.fromkeys(pair.suite for pair in ours):
        apart[suite] = differing(pair.score_basis for pair in ours if pair.suite == suite)
    ours = [pair for pair in ours if not (apart["perplexity"] or apart[pair.suite])]
    published = _published_pairs(settings, study) if settings.paper else []
    pairs = [*ours, *published]
    by_suite: dict[tuple[str, str], list[Pair]] = {}
    for pair in pairs:
        by_suite.setdefault((pair.source, pair.suite), []).append(pair)
    found = {
        key: spearman([pair.perplexity for pair in each], [pair.score for pair in each])
        for key, each in by_suite.items()
        if len(each) >= LEAST_PAIRS
    }
    comparisons = {
        suite: each
        for (source, suite), kinds in by_suite.items()
        if source == OURS
        and (each := compared((pair.parameters, bool(pair.optimal), pair.score) for pair in kinds)) is not None
    }
    rows = [_pair_row(pair) for pair in pairs] + [_row(source, suite, each) for (source, suite), each in found.items()]
    rows += [_comparison_row(suite, each) for suite, each in comparisons.items()]
    tables = _tables(found, _printed(settings, study), settings.tabulated)
    notes = _notes(settings, bool(tables), by_suite)
    notes += not_compared({f"{name} of ours": different for name, different in apart.items()})
    return Findings(rows, tables + _optimal_tables(comparisons), notes)


def _our_pairs(settings: CorrelationSettings, study: Study) -> Iterable[Pair]:
    """Yield a pair (perplexity, average score on a suite) for each included model and each suite. Both values are means
    over seeds.

    Models that were trained from the weights of another model, and models without a perplexity or without a score, have
    no pair.
    """
    from hatchery.analysis.compute_optimal import distinct_runs, optimal_models, points_of_runs
    from hatchery.analysis.flops_counts import training_flops
    from hatchery.analysis.summary_rows import read_summary

    rows = distinct_runs(study.tables["runs"], settings.experiments)
    counts = counting(settings, study)
    trained = {run["model"]: run for run in rows if run["steps"] and not run["initial"] and counts(run["model"])}
    measured = settings.frontier or settings.experiments
    tables = (study.tables["runs"], study.tables["curves"])
    points = points_of_runs(*tables, settings.flops, measured, settings.most_parameters)
    seeds = [run for run in rows if run["model"] in trained]
    optimal = optimal_models(seeds, points, settings.flops, settings.bins, settings.number_of_bins)
    perplexities: dict[str, dict[str, tuple[float, str]]] = {}
    averages: dict[str, dict[str, tuple[float, str]]] = {}
    for row in read_summary(study.tables["summary"]):
        if row.model not in trained or row.mean is None:
            continue
        if row.metric == "perplexity" and row.task in (settings.split, "development"):
            perplexities.setdefault(row.model, {})[row.task] = row.mean, row.basis
        wanted = row.suite in settings.suites or not settings.suites
        if wanted and row.metric == "score_percent" and row.task.startswith("average"):
            # A suite may have several averages over its tasks. The first average is the suite's score; the others only
            # replicate tables of papers.
            averages.setdefault(row.suite, {}).setdefault(row.model, (row.mean, row.basis))
    held_out = all(settings.split in perplexities.get(model, {}) for model in trained)
    split = settings.split if held_out else "development"
    for suite, scores in averages.items():
        for model, (score, score_basis) in scores.items():
            if (found := perplexities.get(model, {}).get(split)) is not None:
                perplexity, basis = found
                run = trained[model]
                flops = training_flops(run, settings.flops)
                sizes = run["parameters"], flops
                yield Pair(OURS, model, suite, perplexity, score, *sizes, model in optimal, basis, score_basis)


def _published_pairs(settings: CorrelationSettings, study: Study) -> Iterable[Pair]:
    """Return the pairs of perplexity and score in Table 3 of the reduced-vocabulary study. The models' numbers of
    parameters come from the published training curves, and their FLOPs are computed.
    """
    from hatchery.analysis.published_curves import DEFAULT_RATE, read_published_curves, shape_of
    from hatchery.analysis.published_values import read_numbers
    from hatchery.modeling.flops import STUDY_SEQUENCES, reduced_vocabulary_flops

    numbers = [n for n in read_numbers(study.files[f"values/{settings.paper}"]) if n.table == TABLE]
    perplexities = {n.row: n.value for n in numbers if n.metric == "perplexity"}
    logged = read_published_curves(study.files[f"curves/{settings.paper}"])
    parameters = {run.sizes: run.parameters for run in logged if run.peak_learning_rate == DEFAULT_RATE}
    for number in numbers:
        if number.metric == "score_percent" and number.row in perplexities:
            size = parameters.get(shape_of(number.row))
            flops = STUDY_SEQUENCES * reduced_vocabulary_flops(*shape_of(number.row))
            perplexity = perplexities[number.row]
            yield Pair(TABULATED, number.row, number.suite, perplexity, number.value, size, flops)


def _printed(settings: CorrelationSettings, study: Study) -> dict[str, tuple[float, float]]:
    """Return Spearman's rho and its p value as printed in the text of the reduced-vocabulary study, by suite. Suites
    are named as in the table of the study's published values (`config/published/values/`).
    """
    from hatchery.analysis.published_values import read_numbers

    if not settings.paper:
        return {}
    numbers = read_numbers(study.files[f"values/{settings.paper}"])
    values = {(n.task, n.metric): n.value for n in numbers if n.suite == "correlation"}
    suites = {"perplexity_and_filtered_glue": "rv_glue_filtered", "perplexity_and_unfiltered_glue": "rv_glue"}
    return {
        suite: (values[task, "spearman"], values[task, "p_value"])
        for task, suite in suites.items()
        if (task, "spearman") in values
    }


_EMPTY: Numbers = dict.fromkeys(
    (
        "kind",
        "source",
        "model",
        "suite",
        "perplexity",
        "score",
        "parameters",
        "flops",
        "pairs",
        "rho",
        "p_value",
        "exact",
        *("optimal", "optimal_models", "optimal_mean", "other_models", "other_mean", "sizes", "ahead"),
    )
)


def _pair_row(pair: Pair) -> Numbers:
    flops = None if pair.flops is None else float(f"{pair.flops:.6e}")
    return _EMPTY | {
        **{"kind": "model", "source": pair.source, "model": pair.model, "suite": pair.suite},
        **{"perplexity": round(pair.perplexity, 4), "score": round(pair.score, 4)},
        **{"parameters": pair.parameters, "flops": flops},
        "optimal": None if pair.optimal is None else int(pair.optimal),
    }


def _comparison_row(suite: str, found: "Comparison") -> Numbers:
    return _EMPTY | {
        **{"kind": "optimality", "source": OURS, "suite": suite, "sizes": found.sizes, "ahead": found.ahead},
        **{"optimal_models": found.optimal, "optimal_mean": round(found.optimal_mean, 4)},
        **{"other_models": found.others, "other_mean": round(found.others_mean, 4)},
    }


def _row(source: str, suite: str, found: "Correlation") -> Numbers:
    return _EMPTY | {
        **{"kind": "correlation", "source": source, "suite": suite, "pairs": found.pairs, "exact": int(found.exact)},
        "rho": None if found.rho is None else round(found.rho, 4),
        "p_value": None if found.p_value is None else float(f"{found.p_value:.3g}"),
    }


def _tables(
    found: Mapping[tuple[str, str], "Correlation"], printed: Mapping[str, tuple[float, float]], tabulated: bool
) -> list[Table]:
    rows = [
        [suite, source, str(each.pairs), *_texts(each), "all orders" if each.exact else "t distribution"]
        for (source, suite), each in found.items()
    ]
    for suite, (rho, p_value) in printed.items():
        rows.append([suite, PRINTED, f"{STATED_PAIRS} stated", f"{rho:.2f}", p_value_text(p_value), "-"])
        ours = {each.pairs for (source, name), each in found.items() if source == OURS and tabulated}
        for what, pairs in (("the stated n", STATED_PAIRS), *(("our n", pairs) for pairs in sorted(ours))):
            fitting = p_value_text(p_value_of(rho, pairs))
            rows.append([suite, f"printed rho, p for {what}", str(pairs), f"{rho:.2f}", fitting, "t distribution"])
    if not rows:
        return []
    columns = [
        Column("suite average", words=True),
        Column("source", words=True),
        Column("n"),
        Column("rho"),
        Column("p"),
    ]
    groups = [Group(rows)]
    return [
        Table(
            [*columns, Column("p computed from", words=True)], groups, "Spearman's correlation of perplexity and scores"
        )
    ]


def _optimal_tables(found: Mapping[str, "Comparison"]) -> list[Table]:
    rows = [
        [
            *(suite, str(each.optimal), f"{each.optimal_mean:.1f}", str(each.others), f"{each.others_mean:.1f}"),
            f"{each.ahead} of {each.sizes}",
        ]
        for suite, each in found.items()
    ]
    if not rows:
        return []
    headings = (
        "number of compute-optimal models",
        "their mean score",
        "number of other models",
        "their mean score",
        "sizes at which compute-optimal models have the higher mean",
    )
    columns = [Column("suite average", words=True), *(Column(text) for text in headings)]
    return [Table(columns, [Group(rows)], "Scores of compute-optimal models and of other models")]


def _texts(found: "Correlation") -> list[str]:
    if found.rho is None or found.p_value is None:
        return ["-", "-"]
    return [f"{found.rho:.2f}", p_value_text(found.p_value)]


def p_value_text(value: float) -> str:
    """Format a p value with two significant digits, in scientific notation if it is small."""
    return f"{value:.2g}" if value >= SMALL_P else power(value)


def _notes(settings: CorrelationSettings, shown: bool, by_suite: Mapping[tuple[str, str], Any]) -> list[str]:
    if not shown:
        return [
            "No correlation was computed, because fewer than three trained models have both a perplexity and an "
            "average of a suite."
        ]
    notes = [
        "n is the number of trained models, each with its mean over seeds. Models that were not pretrained "
        "are left out. A negative rho means that models with a lower perplexity have higher scores. p is "
        "two-sided: twice the smaller tail.",
    ]
    if any(source == OURS for source, _ in by_suite):
        notes.append(f"Method of counting the FLOPs in the figure: {COUNT_NAMES[settings.flops]}.")
        notes.append(
            "A model is compute-optimal if its last evaluation has the lowest development loss in its bin of "
            "FLOPs. The study found that compute-optimal models do not necessarily score higher than other "
            "models of the same size. The last column counts the sizes (numbers of parameters) at which the "
            "compute-optimal models have a higher mean than the other models. Only sizes with models of both "
            "kinds are counted."
        )
    if settings.paper:
        notes.append(
            "The printed p values do not fit the printed number of models. The paper tabulates only some of "
            "the plotted points."
        )
    return notes


ANALYSIS = Analysis(
    title="Perplexity and scores",
    version=1,
    settings=CorrelationSettings,
    run=analyse,
    check=check,
    needs=(tables("runs", "curves", "summary"),),
    published=lambda settings: paper_files(settings.paper),
)
