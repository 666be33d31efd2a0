"""Maximum likelihood of linear regressions, without or with random effects of one grouping factor, such as
participants.

The random effects are independent normal variables: for each group an intercept, or an intercept and a slope of every
predictor (`y ~ x + (1 + x || participant)` of lme4, with REML = FALSE). For these models, the likelihood depends on the
table only through sums over the rows of each group. One evaluation of the likelihood therefore needs only a few small
matrices per group, for any number of rows (Bates et al., 2015, "Fitting linear mixed-effects models using lme4",
Section 3, with one factor). Residual variance and coefficients are profiled out. The remaining parameters are the
standard deviations of the random effects, divided by the residual standard deviation.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

START = 0.3
"""Initial standard deviation of every random effect, divided by the residual standard deviation."""
FROM_ZERO = 0.05
"""New value for a standard deviation of 0, if the search ended at 0 although a larger value has a higher likelihood."""
MOST_RESTARTS = 10


@dataclass(frozen=True)
class Fit:
    """A fitted regression.

    `coefficients` float64 [P + 1] are the fixed effects, first the intercept, then the P predictors; `errors` float64
    [P + 1] are their standard errors. `random_deviations` float64 [Q] are the standard deviations of the Q random
    effects, empty for a linear regression. `by_group` float64 [G] is the term of each of the G groups in
    `log_likelihood` (nats).
    """

    log_likelihood: float
    coefficients: np.ndarray
    errors: np.ndarray
    residual_deviation: float
    random_deviations: np.ndarray
    by_group: np.ndarray


@dataclass(frozen=True)
class _Sums:
    """Sums over the rows of each of G groups: design'design [G, C, C], design'outcome [G, C], outcome'outcome [G], and
    the number of rows [G]. The design matrix has C columns: the intercept and the predictors.
    """

    xx: np.ndarray
    xy: np.ndarray
    yy: np.ndarray
    rows: np.ndarray


def fit_linear(outcome: np.ndarray, predictors: np.ndarray, groups: np.ndarray) -> Fit:
    """Return the linear regression of `outcome` float64 [N] on an intercept and `predictors` float64 [N, P]. `groups`
    int64 [N] is the group of each row, counted from 0.

    The residual variance is the maximum likelihood estimate: the mean square of the residuals.
    """
    design = _design(predictors)
    coefficients = np.linalg.lstsq(design, outcome, rcond=None)[0]
    residuals = outcome - design @ coefficients
    squares = np.bincount(groups, weights=np.square(residuals))
    variance = float(squares.sum()) / len(outcome)
    rows = np.bincount(groups)
    with np.errstate(divide="ignore", invalid="ignore"):
        by_group = -0.5 * (rows * np.log(2 * math.pi * variance) + squares / variance)
    errors = _errors(design.T @ design, variance)
    return Fit(float(by_group.sum()), coefficients, errors, math.sqrt(variance), np.zeros(0), by_group)


def fit_mixed(outcome: np.ndarray, predictors: np.ndarray, groups: np.ndarray, slopes: bool = True) -> Fit:
    """Fit a mixed model; the first three arguments are those of `fit_linear`. Each group has an independent random
    intercept and, if `slopes` is true, an independent random slope of every predictor.

    Parameters are estimated by maximum likelihood, not by restricted maximum likelihood.
    """
    from scipy.optimize import minimize

    # Subtract the mean from the outcome. The likelihood does not depend on the mean, and sums of squares around 0 lose
    # fewer digits.
    mean = float(outcome.mean())
    sums = _sums(outcome - mean, _design(predictors), groups)
    random = np.arange(predictors.shape[1] + 1) if slopes else np.arange(1)
    first = _Profile(sums, random, np.full(len(random), START))
    # The search stops at a small relative change of its objective. The deviance of a large table is large, so subtract
    # the initial deviance.
    offset, at = first.deviance, np.full(len(random), START)

    def relative(deviations: np.ndarray) -> tuple[float, np.ndarray]:
        profile = _Profile(sums, random, deviations)
        return profile.deviance - offset, 2 * deviations * profile.by_variance

    options = {"maxiter": 2000, "maxfun": 20000, "ftol": 1e-14, "gtol": 1e-6, "maxcor": 30}
    for _ in range(MOST_RESTARTS):
        found: Any = minimize(relative, at, jac=True, method="L-BFGS-B", bounds=[(0, None)] * len(at), options=options)
        at = np.asarray(found.x)
        # At a standard deviation of 0, the derivative of the deviance by the standard deviation is always 0. Test the
        # derivative by the variance instead.
        stuck = (at < 1e-6) & (_Profile(sums, random, at).by_variance < 0)
        if not stuck.any():
            break
        at = np.where(stuck, FROM_ZERO, at)
    best = _Profile(sums, random, at)
    coefficients = best.coefficients.copy()
    coefficients[0] += mean
    return Fit(
        -0.5 * best.deviance,
        coefficients,
        _errors(best.design_products, best.variance),
        math.sqrt(best.variance),
        at * math.sqrt(best.variance),
        best.by_group,
    )


class _Profile:
    """The likelihood for given standard deviations of the random effects, maximised over coefficients and residual
    variance.

    `deviance` is -2 times the log-likelihood; `by_variance` [Q] are the derivatives of the deviance with respect to the
    Q squared standard deviations.
    """

    def __init__(self, sums: _Sums, random: Sequence[int] | np.ndarray, deviations: np.ndarray) -> None:
        products = sums.xx[:, random][:, :, random]
        scaled = deviations[None, :, None] * products * deviations[None, None, :]
        root = np.linalg.cholesky(scaled + np.eye(len(random)))
        known = np.concatenate([sums.xx[:, random], sums.xy[:, random, None]], axis=2)
        explained = np.linalg.solve(root, deviations[None, :, None] * known)
        of_design, of_outcome = explained[:, :, :-1], explained[:, :, -1]
        self.design_products = sums.xx.sum(axis=0) - np.einsum("gqp,gqr->pr", of_design, of_design)
        right = sums.xy.sum(axis=0) - np.einsum("gqp,gq->p", of_design, of_outcome)
        self.coefficients = np.linalg.lstsq(self.design_products, right, rcond=None)[0]
        left = of_outcome - of_design @ self.coefficients
        squares = (
            sums.yy
            - 2 * sums.xy @ self.coefficients
            + np.einsum("p,gpr,r->g", self.coefficients, sums.xx, self.coefficients)
            - np.square(left).sum(axis=1)
        )
        count = int(sums.rows.sum())
        self.variance = float(squares.sum()) / count
        determinants = 2 * np.log(np.diagonal(root, axis1=1, axis2=2)).sum(axis=1)
        self.by_group = -0.5 * (
            sums.rows * math.log(2 * math.pi * self.variance) + determinants + squares / self.variance
        )
        self.deviance = float(determinants.sum()) + count * (math.log(2 * math.pi * self.variance) + 1)
        of_random = of_design[:, :, random]
        spread = np.diagonal(products, axis1=1, axis2=2) - np.square(of_random).sum(axis=1)
        residual = sums.xy[:, random] - sums.xx[:, random] @ self.coefficients
        weighted = residual - np.einsum("gqr,gq->gr", of_random, left)
        self.by_variance = spread.sum(axis=0) - np.square(weighted).sum(axis=0) / self.variance


def _design(predictors: np.ndarray) -> np.ndarray:
    return np.column_stack([np.ones(len(predictors)), predictors])


def _sums(outcome: np.ndarray, design: np.ndarray, groups: np.ndarray) -> _Sums:
    order = np.argsort(groups, kind="stable")
    counts = np.bincount(groups)
    ends = np.cumsum(counts)
    parts = [(design[own], outcome[own]) for own in np.split(order, ends[:-1])]
    return _Sums(
        np.array([x.T @ x for x, _ in parts]),
        np.array([x.T @ y for x, y in parts]),
        np.array([y @ y for _, y in parts]),
        counts,
    )


def _errors(products: np.ndarray, variance: float) -> np.ndarray:
    return np.sqrt(np.clip(np.diagonal(np.linalg.pinv(products, hermitian=True)) * variance, 0, None))
