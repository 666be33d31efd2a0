"""Development loss against training cost, for our runs and published runs, and the compute-optimal models.

A study's settings select the method that counts FLOPs. The method `products` counts the FLOPs of matrix products up to
each step; learning curves contain these FLOPs. All other methods count only the FLOPs of a complete training, which are
distributed over the steps in proportion to the FLOPs of matrix products. This distribution is exact if all sequences
have equal lengths.

In each bin of cost (lower < cost <= upper), the compute-optimal point is the evaluation with the lowest loss. The study
"Honey, I Shrunk the Language" mentions "over 30 bins" of FLOPs. A notebook of January 2023 in the history of the
study's repository defines these bins; an earlier notebook used quantiles (docs/papers/reduced-vocabulary.md,
"Compute-optimal frontier"). Section 5.3 and Figure 4 of this study ask if compute-optimal models score higher than
other models of equal size.
"""

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hatchery.analysis.comparability import not_compared
from hatchery.analysis.flops_counts import FlopsCount, training_flops
from hatchery.analysis.published_curves import PublishedRun
from hatchery.analysis.tidy_tables import CURVES, RUNS, read_frame
from hatchery.evaluation.basis import differing
from hatchery.evaluation.evaluation import TidyRow
from hatchery.modeling.flops import STUDY_BATCH_SIZE


@dataclass(frozen=True)
class ScalingPoint:
    """One evaluation of a model during training. `loss` is in nats; `tokens` and `flops` are sums over all steps up to
    `step`.
    """

    model: str
    step: int
    flops: float
    tokens: float
    parameters: float
    loss: float

    def along(self, axis: str) -> float:
        """Return the value of the point on an axis: `flops`, `tokens` or `parameters`."""
        return float(getattr(self, axis))


def distinct_runs(path: Path, experiments: Collection[str] = (), within: Sequence[str] = ()) -> list[TidyRow]:
    """Return the rows of `runs.parquet` for the trained models of `experiments` and for their milestones (weights after
    a given number of steps or words), without repeated models. If `experiments` is empty, return the rows of all
    experiments.

    Several experiments may contain the same model, which is trained only once. If `within` names columns, two rows
    count as repeated only if they also agree in these columns. Raises ManifestError for an altered table.
    """
    rows = read_frame(path, RUNS, experiment=experiments or None).drop_nulls("steps")
    return rows.unique(["manifest", *within], keep="first", maintain_order=True).to_dicts()


def points_of_runs(
    runs: Path, curves: Path, count: FlopsCount, experiments: Collection[str] = (), most_parameters: int | None = None
) -> list[ScalingPoint]:
    """Return the points (cost and loss) of the trained models of `experiments`, in the order of the tables. If
    `experiments` is empty, return the points of all experiments.

    A point is the mean over a model's seeds at a step at which all seeds were evaluated; the lowest loss over seeds
    would bias the fitted laws. Two kinds of models are left out: models whose FLOPs cannot be counted by the method
    `count`, and models with more than `most_parameters` parameters. The result is empty if the development losses are
    not comparable (`why_no_points`). Raises ManifestError for an altered table.
    """
    if why_no_points(runs, experiments):
        return []
    totals = {
        run["run"]: (run["model"], run["parameters"], total, run["training_flops"])
        for run in distinct_runs(runs, experiments)
        if run["training_flops"] and (most_parameters is None or run["parameters"] <= most_parameters)
        if (total := training_flops(run, count)) is not None
    }
    columns = ("run", "step", "flops", "tokens", "development_loss")
    seeds, measured = Counter(model for model, *_ in totals.values()), dict[tuple[str, int], list[ScalingPoint]]()
    for run, step, flops, tokens, loss in (
        read_frame(curves, CURVES, experiment=experiments or None).select(columns).iter_rows()
    ):
        if loss is not None and run in totals and step > 0:
            model, parameters, total, products = totals[run]
            point = ScalingPoint(model, step, total * flops / products, tokens, parameters, loss)
            measured.setdefault((model, step), []).append(point)
    return [_mean_point(points) for (model, _), points in measured.items() if len(points) == seeds[model]]


def why_no_points(runs: Path, experiments: Collection[str] = ()) -> list[str]:
    """Return a note if the development losses of trained models are not comparable, otherwise an empty list."""
    rows = distinct_runs(runs, experiments)
    bases = [row["development_basis"] or "" for row in rows if row["development_loss"] is not None]
    return not_compared({"development loss": differing(bases)})


def _mean_point(points: Sequence[ScalingPoint]) -> ScalingPoint:
    flops, tokens, loss = (
        _mean(values) for values in zip(*((point.flops, point.tokens, point.loss) for point in points), strict=True)
    )
    return replace(points[0], flops=flops, tokens=tokens, loss=loss)


def published_points(logged: Iterable[PublishedRun]) -> list[ScalingPoint]:
    """Return the points of published curves. As in the study "Honey, I Shrunk the Language", FLOPs are computed with
    the formula of its code, and tokens include padding.
    """
    return [
        ScalingPoint(
            *(run.name, updates),
            flops=updates * STUDY_BATCH_SIZE * run.flops_per_sequence("code"),
            tokens=run.tokens(updates),
            parameters=run.parameters,
            loss=loss,
        )
        for run in logged
        for updates, loss in run.curve
    ]


Floats = NDArray[np.float64]
Bins = Literal["january_2023", "quantiles"]


def january_edges(costs: Sequence[float]) -> Floats:
    """Return the bin edges of the notebook of January 2023 from the study "Honey, I Shrunk the Language": the
    percentiles 0, 5, ..., 100 of the costs, with subdivided first bins.

    The range from 0 to the smallest cost is divided into ten bins, the first 5 % of the costs into ten bins, and the
    second 5 % into five bins. Of the ten bins up to the smallest cost, only the last contains points: the points with
    the smallest cost. The other nine bins exist only because the notebook has these bins.
    """
    percentiles = np.percentile(np.asarray(costs, dtype=float), range(0, 101, 5))
    least, first, second, *rest = percentiles
    cut = (np.linspace(0, least, 11), np.linspace(least, first, 11)[1:], np.linspace(first, second, 6)[1:])
    return np.concatenate([*cut, rest])


def quantile_edges(costs: Sequence[float], bins: int) -> Floats:
    """Return the edges of `bins` bins that contain about equal numbers of the costs; the first bin begins at 0."""
    edges = np.percentile(np.asarray(costs, dtype=float), np.linspace(0, 100, bins + 1))
    return np.concatenate([[0.0], edges[1:]])


EDGES: dict[Bins, Callable[[Sequence[float], int], Floats]] = {
    "january_2023": lambda costs, bins: january_edges(costs),
    "quantiles": quantile_edges,
}
"""Functions that return the edges of cost bins, by name. Their arguments are the costs and the number of bins;
`january_2023` ignores the number of bins."""


def frontier(costs: Sequence[float], losses: Sequence[float], edges: Sequence[float] | Floats) -> list[int]:
    """Return the index of the evaluation with the lowest loss in each non-empty bin of costs, in the order of the bins.

    Among evaluations with equal losses, the evaluation with the lowest cost is used, and then the first evaluation.
    Costs are positive. Evaluations outside of all bins are ignored.
    """
    lowest: dict[int, int] = {}
    bins = np.searchsorted(np.asarray(edges, dtype=float), np.asarray(costs, dtype=float), side="left")
    for place, found in enumerate(bins.tolist()):
        if 0 < found < len(edges):
            best = lowest.setdefault(found, place)
            if (losses[place], costs[place]) < (losses[best], costs[best]):
                lowest[found] = place
    return [lowest[found] for found in sorted(lowest)]


LEAST_IN_A_ROW = 3
"""Minimum number of consecutive compute-optimal points of one model that form a region. The paper "Honey, I Shrunk the
Language" states no number.
"""


def regions_of_one_model(models: Sequence[str]) -> list[range]:
    """Return the regions in which one model is compute-optimal at several consecutive points, as ranges of indices.
    `models` contains the model of each compute-optimal point, in the order of cost.

    Figures 2 and 3 of "Honey, I Shrunk the Language" show these regions in grey.
    """
    ends = [place for place in range(1, len(models)) if models[place] != models[place - 1]]
    return [range(first, last) for first, last in pairwise([0, *ends, len(models)]) if last - first >= LEAST_IN_A_ROW]


SAME = 1e-6
"""Relative tolerance for comparing the size, cost and last loss of a model with the points of learning curves."""


def optimal_models(
    runs: Iterable[Mapping[str, Any]], points: Sequence[ScalingPoint], count: FlopsCount, bins: Bins, number: int
) -> set[str]:
    """Return the models whose last evaluation is a compute-optimal point among `points`.

    `runs` are rows of `runs.parquet`. `bins` is the method that divides costs into bins (`EDGES`), and `number` is the
    number of bins.
    """
    flops, losses = [point.flops for point in points], [point.loss for point in points]
    best = [points[place] for place in frontier(flops, losses, EDGES[bins](flops, number))] if points else []
    by_model: dict[str, list[tuple[float, float, float]]] = {}
    for run in runs:
        total, loss = training_flops(run, count), run["development_loss"]
        if total is not None and loss is not None:
            by_model.setdefault(run["model"], []).append((run["parameters"], total, loss))
    ends = {model: [_mean(values) for values in zip(*rows, strict=True)] for model, rows in by_model.items()}
    return {
        model
        for model, end in ends.items()
        if any(_same(end, (point.parameters, point.flops, point.loss)) for point in best)
    }


def _same(first: Sequence[float], second: Sequence[float]) -> bool:
    return all(math.isclose(one, other, rel_tol=SAME) for one, other in zip(first, second, strict=True))


@dataclass(frozen=True)
class Comparison:
    """Number and mean score of compute-optimal models, and of all other models.

    `sizes` is the number of model sizes with models of both groups. `ahead` counts the sizes among them at which the
    compute-optimal models have the higher mean score.
    """

    optimal: int
    optimal_mean: float
    others: int
    others_mean: float
    sizes: int
    ahead: int


def compared(models: Iterable[tuple[float | None, bool, float]]) -> Comparison | None:
    """Return the comparison of the scores of compute-optimal models and of other models. Each model is a tuple (number
    of parameters, is compute-optimal, score).

    Return None if one of the two groups is empty.
    """
    by_size: dict[float | None, tuple[list[float], list[float]]] = {}
    for parameters, optimal, score in models:
        by_size.setdefault(parameters, ([], []))[not optimal].append(score)
    best, others = ([score for kinds in by_size.values() for score in kinds[kind]] for kind in (0, 1))
    if not best or not others:
        return None
    both = [(_mean(first), _mean(second)) for first, second in by_size.values() if first and second]
    ahead = sum(first > second for first, second in both)
    return Comparison(len(best), _mean(best), len(others), _mean(others), len(both), ahead)


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
