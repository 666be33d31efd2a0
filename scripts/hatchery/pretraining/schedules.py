"""The learning rate as a pure function of the step, so that a resumed run needs no scheduler state.

`cosine` is LTG-BERT's: a linear warm-up from exactly 0 (the first update has rate 0), then half a cosine down to a
fraction of the peak (LTG-BERT code; values in tests/pretraining). Steps count optimiser updates from 0.
"""

import math

from hatchery.pretraining.settings import ScheduleSettings


def learning_rate(peak: float, schedule: ScheduleSettings, step: int, steps: int) -> float:
    """The rate of update number `step` (from 0) of a run of `steps` updates."""
    return peak * learning_rate_factor(schedule, step, steps)


def learning_rate_factor(schedule: ScheduleSettings, step: int, steps: int) -> float:
    """The share of the peak rate, 0 to 1, for update number `step` of `steps`.

    The warm-up takes `int(warmup_fraction * steps)` updates. `linear` here falls from the peak after the warm-up to
    `final_fraction` at the end; the papers' own linear variant multiplies the warm-up ramp with a decay over all
    steps and ends at 0.
    """
    warmup = int(schedule.warmup_fraction * steps)
    if step < warmup:
        return step / warmup
    if schedule.name == "constant":
        return 1.0
    progress = (step - warmup) / max(1, steps - warmup)
    floor = schedule.final_fraction
    if schedule.name == "linear":
        return max(floor, 1 - (1 - floor) * progress)
    return max(floor, floor + (1 - floor) * 0.5 * (1 + math.cos(math.pi * progress)))
