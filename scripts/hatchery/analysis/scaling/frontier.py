"""The compute-optimal frontier: of all measured points, the one with the lowest loss in each bin of cost.

The paper speaks of "over 30 bins" of FLOPs. The notebook of January 2023 in the history of its repository says which;
an earlier one used quantiles (docs/papers/reduced-vocabulary.md, "Compute-optimal frontier"). A cost belongs to a bin
where lower < cost <= upper.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bins = Literal["january_2023", "quantiles"]


def january_edges(costs: Sequence[float]) -> Floats:
    """The edges of January 2023: the percentiles 0, 5, ..., 100, with the first bins cut into smaller ones.

    What is below the smallest cost and the first twentieth are cut into ten equal parts each, the second twentieth into
    five. The parts below the smallest cost hold that cost alone; they are kept because the study had them.
    """
    percentiles = np.percentile(np.asarray(costs, dtype=float), range(0, 101, 5))
    least, first, second, *rest = percentiles
    cut = (np.linspace(0, least, 11), np.linspace(least, first, 11)[1:], np.linspace(first, second, 6)[1:])
    return np.concatenate([*cut, rest])


def quantile_edges(costs: Sequence[float], bins: int) -> Floats:
    """Edges of `bins` bins with about the same number of points each; the first is open below."""
    edges = np.percentile(np.asarray(costs, dtype=float), np.linspace(0, 100, bins + 1))
    return np.concatenate([[0.0], edges[1:]])


EDGES: dict[Bins, Callable[[Sequence[float], int], Floats]] = {
    "january_2023": lambda costs, bins: january_edges(costs),
    "quantiles": quantile_edges,
}
"""The edges of bins of costs, by the name of the procedure; January's knows its own number of bins."""


def frontier(costs: Sequence[float], losses: Sequence[float], edges: Sequence[float] | Floats) -> list[int]:
    """The places of the points with the lowest loss in each bin that has any, in the order of the bins.

    Of equal losses the cheapest counts, of those the first. Costs are positive; what lies outside the edges is ignored.
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
"""Compute-optimal points of one model, one behind the other, that make a region; the paper states no number."""


def regions_of_one_model(models: Sequence[str]) -> list[range]:
    """Where one model stays compute-optimal: the places of its points, of the `models` of a frontier by rising cost.

    The grey regions of Figures 2 and 3 of the reduced-vocabulary study.
    """
    ends = [place for place in range(1, len(models)) if models[place] != models[place - 1]]
    return [range(first, last) for first, last in pairwise([0, *ends, len(models)]) if last - first >= LEAST_IN_A_ROW]
