"""Published values beside ours: judging whether ours agree.

The judgement is meant to be reproduced with a pocket calculator: the difference against two combined standard
deviations.
"""

import math
from dataclasses import dataclass
from typing import Literal

DEVIATIONS = 2.0
TOLERANCE_WITHOUT_DEVIATION = 0.5
# Most tables print one decimal: half a unit of it is no difference, even where all published runs agree (std 0.0).
PRINTED_ROUNDING = 0.05

Verdict = Literal["within", "above", "below", "not comparable", ""]


@dataclass(frozen=True)
class PublishedValue:
    """One printed number; `std` is None where the source prints none, `rounding` half a unit of its last digit."""

    mean: float
    std: float | None
    source: str
    comparable: bool
    note: str
    rounding: float = PRINTED_ROUNDING


def half_of_last_digit(number: str) -> float:
    """Half a unit of the last printed digit: 0.05 for `61.4`, 0.5 for `-72` (a correlation of two decimals)."""
    return 0.5 * 10.0 ** -len(number.partition(".")[2])


def combined_deviation(published: float | None, ours: float | None, sampling: float | None) -> float | None:
    """Root of the sum of squares of the published standard deviation and of ours.

    Ours is the deviation over runs; for a single run the binomial deviation `sampling` stands in. None when
    neither side has any.
    """
    known = [deviation for deviation in (published, ours if ours is not None else sampling) if deviation is not None]
    return math.sqrt(math.fsum(deviation**2 for deviation in known)) if known else None


def judge(difference: float, deviation: float | None, rounding: float = PRINTED_ROUNDING) -> Verdict:
    """`within` when |difference| (ours minus published) is at most two `deviation`s, else `above` or `below`.

    Without a deviation, half a point is allowed; the `rounding` of the printed number is always allowed.
    """
    tolerance = TOLERANCE_WITHOUT_DEVIATION if deviation is None else max(DEVIATIONS * deviation, rounding)
    # The slack keeps a difference that equals the tolerance on paper from falling outside by a binary fraction.
    if abs(difference) <= tolerance + 1e-9:
        return "within"
    return "above" if difference > 0 else "below"
