"""Which models are compute-optimal, and whether they score higher than others of their size.

Source: the reduced-vocabulary study, Section 5.1 (the lowest loss in each bin of FLOPs) and Section 5.3 with Figure 4
(compute-optimal and other checkpoints of a size, after fine-tuning).
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hatchery.analysis.flops_counts import FlopsCount, training_flops
from hatchery.analysis.scaling.frontier import EDGES, Bins, frontier
from hatchery.analysis.scaling_points import ScalingPoint

SAME = 1e-6
"""Up to so much, relatively, numbers of one model are the same: a milestone is found in the curve of its training."""


def optimal_models(
    runs: Iterable[Mapping[str, Any]], points: Sequence[ScalingPoint], count: FlopsCount, bins: Bins, number: int
) -> set[str]:
    """The models, of rows of `runs.parquet`, whose last evaluation is one of the compute-optimal `points`."""
    flops, losses = [point.flops for point in points], [point.loss for point in points]
    best = [points[place] for place in frontier(flops, losses, EDGES[bins](flops, number))] if points else []
    by_model: dict[str, list[tuple[float, float, float]]] = {}
    for run in runs:
        total, loss = training_flops(run, count), run["development_loss"]
        if total is not None and loss is not None:
            by_model.setdefault(run["model"], []).append((run["parameters"], total, loss))
    ends = {
        model: [math.fsum(values) / len(rows) for values in zip(*rows, strict=True)] for model, rows in by_model.items()
    }
    return {
        model
        for model, end in ends.items()
        if any(_same(end, (point.parameters, point.flops, point.loss)) for point in best)
    }


def _same(first: Sequence[float], second: Sequence[float]) -> bool:
    return all(math.isclose(one, other, rel_tol=SAME) for one, other in zip(first, second, strict=True))


@dataclass(frozen=True)
class Comparison:
    """Scores of compute-optimal models and of the others; `sizes` have both kinds, and in `ahead` the first are higher.

    A size is a number of parameters; its kinds are compared by their means.
    """

    optimal: int
    optimal_mean: float
    others: int
    others_mean: float
    sizes: int
    ahead: int


def compared(models: Iterable[tuple[float | None, bool, float]]) -> Comparison | None:
    """The comparison of models given as (parameters, compute-optimal, score); None where one kind is missing."""
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
