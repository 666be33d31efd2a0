"""BLEU and chrF of translations, computed by sacreBLEU with its signatures, and the area under a learning curve.

Source: "A Natural Bias for Language Generation Models", Section 4.1; docs/papers/natural-bias.md, "Decoding and
metrics". BLEU is case-sensitive, with the 13a tokeniser and exponential smoothing. chrF uses character n-grams up to
order 6 and beta 2, without word n-grams. Each score is computed over all sentences of detokenised text together, in
points from 0 to 100.
"""

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

from hatchery.errors import EvaluationError
from hatchery.sums import plain_sum

BLEU, CHRF = "bleu", "chrf"
METRICS = (BLEU, CHRF)


class CorpusScore(NamedTuple):
    """The score of all translations of a test set together, in points, with sacreBLEU's signature."""

    value: float
    signature: str


def scores(translations: Sequence[str], references: Sequence[str]) -> dict[str, CorpusScore]:
    """Return BLEU and chrF of translations with one reference each, by name of the metric.

    Raises EvaluationError if there are no sentences, or if the numbers of translations and references differ.
    """
    _check_numbers(translations, references)
    scores_by_metric = {}
    for name, metric in _metrics().items():
        value = metric.corpus_score(list(translations), [list(references)]).score
        scores_by_metric[name] = CorpusScore(float(value), str(metric.get_signature()))
    return scores_by_metric


class Difference(NamedTuple):
    """The difference between the scores of two systems on the same sentences, in points."""

    value: float
    low: float
    high: float
    """`low` and `high` are the ends of an interval that contains 95 % of the differences on resampled sentences."""
    p_value: float
    """Probability of an absolute difference of at least this size by chance, computed as in sacreBLEU's paired
    bootstrap.
    """


def paired_differences(
    translations: Sequence[str], others: Sequence[str], references: Sequence[str], samples: int, seed: int
) -> dict[str, Difference]:
    """Return the differences in BLEU and chrF between `translations` and `others`, the translations of a second system,
    by paired bootstrap (Koehn 2004).

    Sentences are drawn `samples` times with replacement; each draw uses the same sentences for both systems. `seed`
    determines the draws. Raises EvaluationError like `scores`.
    """
    import numpy as np

    _check_numbers(translations, references)
    _check_numbers(others, references)
    count = len(references)
    drawn = np.random.default_rng(seed).choice(count, size=(samples, count), replace=True)
    # Number of times that each sentence was drawn in each sample, [samples, sentences]. The product of these numbers
    # and the sentences' n-gram counts is the n-gram counts of each sample.
    times = np.stack([np.bincount(row, minlength=count) for row in drawn])
    differences_by_metric = {}
    for name, metric in _metrics().items():
        full_scores, resampled = [], []
        for system in (translations, others):
            statistics = np.array(metric._extract_corpus_statistics(list(system), [list(references)]))
            full_scores.append(metric._compute_score_from_stats(statistics.sum(axis=0)).score)
            resampled.append(np.array([metric._compute_score_from_stats(row).score for row in times @ statistics]))
        value, differences = full_scores[0] - full_scores[1], resampled[0] - resampled[1]
        low, high = np.quantile(differences, (0.025, 0.975))
        sizes = np.abs(differences)
        beyond = int((sizes - sizes.mean() > abs(value)).sum())
        differences_by_metric[name] = Difference(float(value), float(low), float(high), (beyond + 1) / (samples + 1))
    return differences_by_metric


def _metrics() -> dict[str, Any]:
    from sacrebleu.metrics import bleu, chrf

    return {BLEU: bleu.BLEU(), CHRF: chrf.CHRF()}


def _check_numbers(translations: Sequence[str], references: Sequence[str]) -> None:
    if len(translations) != len(references) or not references:
        raise EvaluationError(
            f"got {len(translations):,} translations and {len(references):,} references, expected equal numbers, at "
            "least 1"
        )


def area_under_curve(points: Sequence[tuple[float, float]]) -> float:
    """Return the mean score of a curve of points (step, score): the area under the curve, divided by the range of
    steps.

    The area is computed by the composite trapezoidal rule. Points may be in any order; steps must be distinct. Raises
    EvaluationError for fewer than two points.
    """
    ordered = sorted(points)
    span = ordered[-1][0] - ordered[0][0] if ordered else 0
    if span <= 0:
        raise EvaluationError(f"area under a learning curve: got {len(points)} points, expected at least 2")
    pairs = itertools.pairwise(ordered)
    return plain_sum((then - now) * (score + following) / 2 for (now, score), (then, following) in pairs) / span
