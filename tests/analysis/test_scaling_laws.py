"""Frontiers, power laws, breaks, intervals and correlations of invented points, and counts of FLOPs of runs."""

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from hatchery.analysis.analyses.cost_effectiveness import Option, steps
from hatchery.analysis.compute_optimal import EDGES, ScalingPoint, frontier, january_edges, quantile_edges
from hatchery.analysis.flops_counts import COUNT_NAMES, flops_per_sequence, training_flops
from hatchery.analysis.rank_correlation import p_value_of, spearman
from hatchery.analysis.scaling_laws import (
    Laws,
    bootstrap_interval,
    find_break,
    fit_power_law,
    scaling_laws,
)
from hatchery.analysis.scaling_settings import PowerLawsSettings, RegionSettings
from hatchery.errors import EvaluationError
from hatchery.modeling.flops import STUDY_SEQUENCES, StudyFormula, reduced_vocabulary_flops


def test_a_bin_gives_its_lowest_loss_the_cheapest_of_equal_ones_and_holds_its_upper_edge() -> None:
    assert frontier([1, 2, 2.5, 3, 9], [5, 4, 1, 3, 0], [0, 2, 3]) == [1, 2]
    assert frontier([3, 2, 2], [1, 1, 1], [0, 5]) == [1]


@given(
    st.lists(st.tuples(st.floats(1e3, 1e18), st.floats(0.1, 10)), min_size=1, max_size=60),
    st.sampled_from(sorted(EDGES)),
    st.integers(1, 40),
)
def test_every_bin_has_one_point_and_none_of_it_is_better(points: list[tuple[float, float]], bins: str, n: int) -> None:
    costs, losses = zip(*points, strict=True)
    edges = EDGES[bins](costs, n)  # type: ignore[index]
    chosen = frontier(costs, losses, edges)
    found = np.searchsorted(edges, [costs[place] for place in chosen], side="left").tolist()
    assert found == sorted(set(found))
    for cost, loss in points:
        here = int(np.searchsorted(edges, cost, side="left"))
        # Rounding may leave the largest cost above the last edge.
        assert here == len(edges) or losses[chosen[found.index(here)]] <= loss


def test_quantile_bins_hold_about_equal_numbers() -> None:
    edges = quantile_edges(range(1, 101), 10)
    assert np.histogram(range(1, 101), edges)[0].tolist() == pytest.approx([10] * 10, abs=1)
    assert len(january_edges(range(1, 101))) == 44


@given(st.floats(1e-2, 1e4), st.floats(-2, 0.5), st.integers(0, 18))
def test_a_power_law_is_found_again_at_any_scale(coefficient: float, exponent: float, scale: int) -> None:
    xs = [10.0**scale * 1.7**place for place in range(12)]
    found = fit_power_law(xs, [coefficient * x**exponent for x in xs])
    assert found.exponent == pytest.approx(exponent, abs=1e-6)
    assert found.coefficient * xs[3] ** found.exponent == pytest.approx(coefficient * xs[3] ** exponent, rel=1e-6)


def test_the_coefficient_of_determination_is_of_the_loss_about_its_mean() -> None:
    # The means, 4 at 1 and 2 at 4, are on 4 / sqrt(x). Points are 1 from this curve; from the mean 3, 0, 2, 2 and 0.
    found = fit_power_law([1.0, 1.0, 4.0, 4.0], [3.0, 5.0, 1.0, 3.0])
    assert (found.coefficient, found.exponent, found.points) == (pytest.approx(4), pytest.approx(-0.5), 4)
    assert (found.residual, found.r_squared) == (pytest.approx(4), pytest.approx(1 - 4 / 8))


def test_a_fit_minimises_the_residuals_of_the_loss_and_not_of_its_logarithm() -> None:
    generator = np.random.default_rng(3)
    xs = np.geomspace(1e9, 1e12, 20)
    ys = 5 * (xs / 1e9) ** -0.2 + generator.normal(0, 0.05, 20)
    found = fit_power_law(xs.tolist(), ys.tolist())
    exponent, constant = np.polyfit(np.log(xs), np.log(ys), 1)
    assert found.residual < ((ys - np.exp(constant) * xs**exponent) ** 2).sum()
    assert found.r_squared > 0.9


@pytest.mark.parametrize(("xs", "ys"), [([1.0, 2.0], [1.0, 2.0]), ([3.0, 3.0, 3.0], [1.0, 2.0, 3.0])])
def test_a_law_needs_three_points_and_two_places(xs: list[float], ys: list[float]) -> None:
    with pytest.raises(EvaluationError, match="expected at least 3 points, with at least 2 different values of x"):
        fit_power_law(xs, ys)


def noisy(ys: np.ndarray) -> list[float]:
    return list((ys * np.exp(np.random.default_rng(0).normal(0, 0.004, len(ys)))).tolist())


def test_a_break_is_found_and_one_law_has_none() -> None:
    xs = np.geomspace(1, 1e4, 30)
    broken = np.where(xs < 90, 4 * xs**-0.02, 3 * xs**-0.15)
    found = find_break(xs.tolist(), noisy(broken))
    assert found.decisive
    assert found.below < 90 < found.above
    assert found.right.exponent == pytest.approx(-0.15, abs=0.01)
    assert not find_break(xs.tolist(), noisy(4 * xs**-0.1)).decisive
    # The criterion for 30 points: one law has two parameters; two laws have four, and the position of the break.
    two = found.left.residual + found.right.residual
    assert (found.left.points + found.right.points, found.single.points) == (30, 30)
    assert found.gain == pytest.approx(30 * np.log(found.single.residual / two) - 3 * np.log(30))


@pytest.mark.parametrize("points", [4, 6])
def test_a_law_of_a_break_may_have_four_points_and_no_fewer(points: int) -> None:
    """The last points of the law, or the same number of first points, are far from the other points."""
    xs = [float(2**place) for place in range(10)]
    for jump in (points, 10 - points):
        found = find_break(xs, noisy(np.where(np.arange(10) < jump, 9.0, 1.0) * np.array(xs) ** -0.1))
        assert (found.below, found.above) == (xs[jump - 1], xs[jump])
    # With a jump after three points, the laws are split one point later.
    found = find_break(xs, noisy(np.where(np.arange(10) < 3, 9.0, 1.0) * np.array(xs) ** -0.1))
    assert min(found.left.points, found.right.points) >= 4


def test_a_break_needs_points_on_both_sides() -> None:
    with pytest.raises(EvaluationError, match="got 7 points, expected at least 8 points"):
        find_break([1, 2, 3, 4, 5, 6, 7], [7, 6, 5, 4, 3, 2, 1])


def test_the_interval_of_a_mean_is_that_of_its_groups() -> None:
    values = np.random.default_rng(5).normal(10, 2, 200)

    def mean(places: list[int]) -> float:
        return float(values[places].mean())

    alone = bootstrap_interval([[place] for place in range(200)], mean)
    assert alone is not None
    assert (alone.low, alone.high) == (pytest.approx(9.7, abs=0.2), pytest.approx(10.3, abs=0.2))
    # Ten groups with equal members count as ten points.
    values = np.repeat(values[:10], 20)
    grouped = bootstrap_interval([list(range(20 * group, 20 * group + 20)) for group in range(10)], mean)
    assert grouped is not None
    assert grouped.high - grouped.low > 3 * (alone.high - alone.low)


@pytest.mark.parametrize("confidence", [0.9, 0.95])
def test_an_interval_leaves_out_half_of_what_it_does_not_hold_on_each_side(confidence: float) -> None:
    drawn: list[float] = []

    def total(places: list[int]) -> float:
        drawn.append(float(sum(places)))
        return drawn[-1]

    found = bootstrap_interval([[place] for place in range(50)], total, 2000, confidence)
    assert found is not None
    assert (found.confidence, found.draws) == (confidence, 2000)
    assert (found.low, found.high) == tuple(np.quantile(drawn, [(1 - confidence) / 2, (1 + confidence) / 2]))
    tails = np.mean(np.array(drawn) < found.low), np.mean(np.array(drawn) > found.high)
    assert tails == (pytest.approx((1 - confidence) / 2, abs=0.005),) * 2


def test_draws_of_runs_are_taken_in_the_bins_of_all_points() -> None:
    # Each run has points in two of the six bins, too few for a law. Bins of one run's points alone would be six.
    flops = [float(10 * run + step) for run in range(1, 4) for step in range(1, 9)]
    points = [ScalingPoint(f"{cost // 10}", 1, cost, cost, cost, 1 / cost) for cost in flops]
    settings = PowerLawsSettings(number_of_bins=6, draws=200, seed=1, confidence=0.9)
    several = []
    for seed in (1, 0):
        generator = np.random.default_rng(seed)
        several.append(sum(len(set(generator.integers(3, size=3).tolist())) > 1 for _ in range(200)))
    for law in scaling_laws(points, settings).laws:
        assert law.interval is not None and law.interval.confidence == 0.9
        assert law.interval.draws == several[0] != several[1]


def test_a_region_has_the_law_of_its_own_points_and_three_are_enough_for_a_law() -> None:
    # Losses are 4/x up to 4 FLOPs and 2/sqrt(x) above 4. The bins are so narrow that every point is optimal.
    losses = {cost: 4 / cost if cost <= 4 else 2 / cost**0.5 for cost in map(float, range(1, 8))}
    points = [ScalingPoint(f"{cost:g}", 1, cost, 3 * cost, 5 * cost, loss) for cost, loss in losses.items()]
    regions = {"low": RegionSettings(up_to=4.0), "high": RegionSettings(above=4.0), "last": RegionSettings(above=6.0)}
    found = scaling_laws(points, PowerLawsSettings(number_of_bins=60, draws=2, regions=regions))
    assert found.optimal == list(range(7))
    laws = {law.region: law for law in found.laws if law.axis == "flops"}
    assert {name: (law.points, law.bounds) for name, law in laws.items()} == {
        **{name: (number, regions[name]) for name, number in {"low": 4, "high": 3, "last": 1}.items()},
        "all": (7, RegionSettings()),
    }
    low, high, last = (laws[name].law for name in regions)
    assert low is not None and high is not None and last is None
    assert (low.exponent, low.points) == (pytest.approx(-1), 4)
    assert (high.exponent, high.points) == (pytest.approx(-0.5), 3)
    assert scaling_laws([], PowerLawsSettings()) == Laws([], [], None)


def test_an_interval_needs_two_groups_and_most_of_its_draws() -> None:
    def refuses(places: list[int]) -> float:
        raise EvaluationError("too few")

    assert bootstrap_interval([[0, 1]], lambda places: 1.0) is None
    assert bootstrap_interval([[0], [1]], refuses) is None
    # An interval needs more than half of its draws.
    for accepted in (10, 11):
        drawn: list[int] = []

        def some(places: list[int], accepted: int = accepted, drawn: list[int] = drawn) -> float:
            drawn.append(1)
            return refuses(places) if len(drawn) > accepted else float(len(drawn))

        found = bootstrap_interval([[0], [1]], some, draws=20)
        assert (None if found is None else found.draws) == (None if accepted == 10 else 11)


def option(name: str, flops: float, perplexity: float, **sizes: int) -> Option:
    return Option(name, {"layers": 1, "width": 8} | sizes, flops, perplexity)


def test_steps_lead_to_the_next_larger_value_of_one_size_alone() -> None:
    options = [
        option("deep", 4e9, 5.0, layers=4),
        option("small", 1e9, 9.0),
        option("two", 2e9, 7.0, layers=2),
        option("other", 9e9, 1.0, layers=4, width=16),
        option("again", 1e9, 99.0),
    ]
    found = steps(options, ["layers", "width"])
    assert [(step.size, step.smaller.name, step.larger.name, step.ratio) for step in found] == [
        ("layers", "small", "two", 2.0),
        ("layers", "two", "deep", 1.0),
        ("width", "deep", "other", 0.8),
    ]


def test_what_costs_no_more_has_no_ratio() -> None:
    (step,) = steps([option("a", 1e9, 9.0), option("b", 1e9, 8.0, layers=2)], ["layers"])
    assert step.ratio is None


def test_few_pairs_are_permuted_and_many_are_not() -> None:
    few = spearman([1, 2, 3, 4], [4, 3, 2, 1])
    assert (few.rho, few.pairs, few.exact) == (pytest.approx(-1), 4, True)
    # Two of the 24 orders are at least as extreme.
    assert few.p_value == pytest.approx(2 / 24)
    ys = [3, 1, 2, 5, 4, 8, 6, 7]
    many = spearman(range(8), ys)
    assert (many.pairs, many.exact) == (8, False)
    assert many.rho is not None
    assert many.p_value == pytest.approx(p_value_of(many.rho, 8))


@pytest.mark.parametrize("ys", [[0, 2, 1, 4, 3, 6, 5], [3, 4, 2, 3, 3, 5, 5], [4, 4, 4, 3, 2, 3, 3]])
def test_p_is_twice_the_smaller_tail_of_all_orders_of_one_side_also_with_ties(ys: list[int]) -> None:
    xs = range(7) if len(set(ys)) == 7 else [6, 1, 6, 1, 5, 4, 6]
    first, second = ((2 * stats.rankdata(side)).astype(int) for side in (xs, ys))
    sums = [int(np.dot(order, second)) for order in permutations(first)]
    tails = sum(each >= sums[0] for each in sums), sum(each <= sums[0] for each in sums)
    # Permuting both sides would give 25 million orders.
    assert spearman(xs, ys).p_value == pytest.approx(min(1, 2 * min(tails) / len(sums)))


def test_a_constant_side_has_no_correlation() -> None:
    assert spearman([1, 2, 3], [5, 5, 5]).rho is None
    with pytest.raises(EvaluationError, match="got 2 pairs, expected 3 or more"):
        spearman([1, 2], [2, 1])


ANCHOR: dict[str, Any] = {
    **{"embedding_size": 256, "hidden_size": 256, "intermediate_size": 1024, "layers": 8, "attention_heads": 8},
    **{"vocabulary_rows": 19_010, "tied": False, "sequence_length": 128, "sequences": STUDY_SEQUENCES},
    **{"parameters": 16_237_122, "tokens": 10**9, "training_flops": 5e16},
}


@pytest.mark.parametrize("formula", ["code", "code_without_projection", "printed", "complete"])
def test_a_run_of_the_study_costs_what_its_formulas_say(formula: StudyFormula) -> None:
    found = training_flops(ANCHOR, formula)
    assert found == pytest.approx(STUDY_SEQUENCES * reduced_vocabulary_flops(256, 256, 1024, 8, 8, formula))


def test_six_n_d_leaves_out_an_embedding_that_is_only_looked_up() -> None:
    assert training_flops(ANCHOR, "six_n_d") == 6 * (16_237_122 - 19_010 * 256) * 10**9
    assert training_flops(ANCHOR | {"tied": True}, "six_n_d") == 6 * 16_237_122 * 10**9


def test_matrix_products_are_those_of_the_run() -> None:
    assert training_flops(ANCHOR, "products") == 5e16
    assert flops_per_sequence(ANCHOR, "products") == 5e16 / STUDY_SEQUENCES


def test_sequences_of_changing_length_have_no_count_of_the_study() -> None:
    run = ANCHOR | {"sequence_length": None}
    counted = {count for count in COUNT_NAMES if training_flops(run, count) is not None}
    assert counted == {"products", "six_n_d"}
    assert flops_per_sequence(ANCHOR | {"sequences": 0}, "products") is None
