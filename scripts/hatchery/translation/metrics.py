"""BLEU and chrF of translations, by sacreBLEU with its signatures, and the area under a learning curve.

Source: "A Natural Bias for Language Generation Models", section 4.1, and its reference, section 6: BLEU with the 13a
tokeniser, exponential smoothing and case; chrF of six character orders, beta 2, without words. Both take detokenised
text and are corpus scores in points from 0 to 100.
"""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

from hatchery.errors import EvaluationError

BLEU, CHRF = "bleu", "chrf"
METRICS = (BLEU, CHRF)


class Score(NamedTuple):
    """A corpus score in points, and what it was computed with."""

    value: float
    signature: str


def scores(translations: Sequence[str], references: Sequence[str]) -> dict[str, Score]:
    """BLEU and chrF of translations against one reference each.

    Raises EvaluationError without any sentence, or for another number of references.
    """
    from sacrebleu.metrics import bleu, chrf

    if len(translations) != len(references) or not references:
        raise EvaluationError(
            f"got {len(translations):,} translations for {len(references):,} references, expected one for each, and "
            "at least one"
        )
    found = {}
    for name, metric in ((BLEU, bleu.BLEU()), (CHRF, chrf.CHRF())):
        value = metric.corpus_score(list(translations), [list(references)]).score
        found[name] = Score(float(value), str(metric.get_signature()))
    return found


def area_under_curve(points: Sequence[tuple[float, float]]) -> float:
    """The area under a curve of (step, score) by the composite trapezoid rule, divided by its span: again a score.

    Points come in any order, each step once. Raises EvaluationError for fewer than two.
    """
    ordered = sorted(points)
    span = ordered[-1][0] - ordered[0][0] if ordered else 0
    if span <= 0:
        raise EvaluationError("an area under a learning curve needs scores at two steps at least")
    pairs = itertools.pairwise(ordered)
    return sum((then - now) * (score + following) / 2 for (now, score), (then, following) in pairs) / span
