"""Maximum-likelihood regressions, against normal densities, closed forms, and results of statsmodels."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from hatchery.evaluation.reading_times.mixed_models import Fit, fit_linear, fit_mixed

N_ROWS, N_GROUPS = 240, 8


def rows(slope: float = 5.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return outcome, two predictors and groups; `slope` scales the variation of the second predictor's slope by
    group."""
    i = np.arange(N_ROWS)
    group = i % N_GROUPS
    a = np.sin(1.7 * i) + 0.3 * np.cos(0.37 * i * i)
    b = np.cos(2.3 * i + 0.5)
    noise = 6.5 * np.sin(12.9898 * i * i + 78.233)
    of_groups = 6 * np.sin(5.0 * group) + 4 * np.cos(3.0 * group) * a + slope * np.sin(2.0 * group + 1) * b
    return 250 + 8 * a - 3 * b + of_groups + noise, np.column_stack([a, b]), group


def density(outcome, predictors, groups, coefficients, residual, deviations) -> float:
    """Return the joint log-density of all outcomes: one normal distribution whose dimension is the number of rows."""
    design = np.column_stack([np.ones(len(outcome)), predictors])
    covariance = residual**2 * np.eye(len(outcome))
    for column, deviation in zip(design.T, deviations, strict=False):
        covariance += deviation**2 * np.outer(column, column) * (groups[:, None] == groups[None, :])
    return float(multivariate_normal(design @ coefficients, covariance).logpdf(outcome))


def density_of(fit: Fit, data) -> float:
    return density(*data, fit.coefficients, fit.residual_deviation, fit.random_deviations)


# Results of statsmodels 0.15.0 for `rows()`: MixedLM(...).fit(reml=False, free=<diagonal>) and OLS(...).fit().
@pytest.mark.parametrize(
    ("slopes", "likelihood", "coefficients", "deviations", "residual", "errors"),
    [
        (
            True,
            -736.4258651683878,
            [248.40554051161286, 8.240079514541495, -2.1686981297847425],
            [3.7806286849616964, 3.956999686832679, 3.6195643088526985],
            4.55973650690811,
            [1.3689116960169259, 1.4595548248357288, 1.3462435607270207],
        ),
        (
            False,
            -780.3170694956362,
            [248.3964431044343, 8.572719302783367, -2.0577007539933367],
            [3.7998036437853475],
            5.986599287816966,
            [1.3979184012346393, 0.5418970378009064, 0.546995796138665],
        ),
    ],
)
def test_mixed_models_are_those_of_statsmodels(
    slopes: bool, likelihood: float, coefficients: list, deviations: list, residual: float, errors: list
) -> None:
    found = fit_mixed(*rows(), slopes=slopes)
    assert found.log_likelihood == pytest.approx(likelihood, abs=1e-6)
    assert found.coefficients == pytest.approx(coefficients, abs=1e-5)
    assert found.random_deviations == pytest.approx(deviations, abs=1e-5)
    assert found.residual_deviation == pytest.approx(residual, abs=1e-6)
    assert found.errors == pytest.approx(errors, rel=1e-4)


@pytest.mark.parametrize("slopes", [True, False])
@pytest.mark.parametrize("slope", [5.0, 0.0])
def test_the_likelihood_is_the_density_of_all_rows_and_no_other_values_give_more(slopes: bool, slope: float) -> None:
    data = rows(slope)
    found = fit_mixed(*data, slopes=slopes)
    assert found.log_likelihood == pytest.approx(density_of(found, data), abs=1e-7)
    values = [*found.coefficients, found.residual_deviation, *found.random_deviations]
    for place in range(len(values)):
        for step in (-0.02, 0.02):
            others = np.array(values)
            others[place] = abs(others[place] + step)
            other = density(*data, others[:3], others[3], others[4:])
            assert other <= found.log_likelihood + 1e-9


def test_a_variance_that_no_data_ask_for_is_zero_and_one_that_they_ask_for_is_found_from_zero(monkeypatch) -> None:
    from hatchery.evaluation.reading_times import mixed_models

    found = fit_mixed(*rows(slope=0.0))
    assert found.random_deviations[2] == 0 and found.random_deviations[1] > 3
    monkeypatch.setattr(mixed_models, "START", 0.0)
    again = fit_mixed(*rows(slope=0.0))
    assert again.log_likelihood == pytest.approx(found.log_likelihood, abs=1e-6)


def test_parts_of_groups_are_densities_of_their_rows_and_sum_to_the_likelihood() -> None:
    outcome, predictors, groups = rows()
    found = fit_mixed(outcome, predictors, groups)
    for group in range(N_GROUPS):
        own = groups == group
        assert found.by_group[group] == pytest.approx(
            density_of(found, (outcome[own], predictors[own], groups[own])), abs=1e-8
        )
    assert found.by_group.sum() == pytest.approx(found.log_likelihood, abs=1e-8)


def test_linear_regressions_have_the_closed_form() -> None:
    outcome, predictors, groups = rows()
    design = np.column_stack([np.ones(N_ROWS), predictors])
    solved = np.linalg.solve(design.T @ design, design.T @ outcome)
    squares = np.square(outcome - design @ solved).sum()
    expected = -N_ROWS / 2 * (np.log(2 * np.pi * squares / N_ROWS) + 1)
    found = fit_linear(outcome, predictors, groups)
    assert found.log_likelihood == pytest.approx(expected) == pytest.approx(-810.6475750258315)
    assert found.coefficients == pytest.approx([248.39574683642246, 8.639118035079198, -2.0690639458033138])
    assert found.by_group.sum() == pytest.approx(expected)


def test_a_repeated_predictor_changes_no_likelihood() -> None:
    outcome, predictors, groups = rows()
    twice = np.column_stack([predictors, predictors[:, 0]])
    for fit in (fit_linear, lambda *data: fit_mixed(*data, slopes=False)):
        assert fit(outcome, twice, groups).log_likelihood == pytest.approx(
            fit(outcome, predictors, groups).log_likelihood, abs=1e-6
        )
