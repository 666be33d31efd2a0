"""The learning rate of each step, a pure function of the step number, so that a resumed run needs no scheduler state.

`cosine` is LTG-BERT's schedule: a linear warm-up from exactly 0 (the first update has rate 0), then half a cosine down
to a fraction of the peak. `linear_as_published` is the other schedule of LTG-BERT's code (docs/papers/ltg-bert.md,
"Learning rate"), and `inverse_square_root` the schedule of the reduced-vocabulary study, Section 4.2
(docs/papers/reduced-vocabulary.md, "Pretraining"). Steps count optimiser updates from 0, including those that fp16
skips, as in LTG-BERT's BNC code.
"""

import math

from hatchery.settings.fields import ABSENT
from hatchery.training.settings import ScheduleSettings

# torch's linear schedulers, of which the published code composes `linear_as_published`, cannot start at 0, so the code
# starts and ends at this factor.
NEARLY_ZERO = 1e-9


def learning_rate(peak: float, schedule: ScheduleSettings, step: int, steps: int) -> float:
    """Return the rate of update number `step` (from 0) of a run of `steps` updates."""
    return peak * learning_rate_factor(schedule, step, steps)


def learning_rate_factor(schedule: ScheduleSettings, step: int, steps: int) -> float:
    """Return the learning rate of update number `step` of `steps` as a share of its peak, 0 to 1.

    `cosine` and `linear` fall from the peak after the warm-up to `final_fraction` at the end, `constant` stays at the
    peak. `linear_as_published` multiplies the warm-up ramp with a decay over all steps: it ends near 0 for any
    `final_fraction`. `inverse_square_root` ends at the square root of the warm-up's share of the steps. With a
    cool-down, the rate falls linearly from `final_fraction` to 0 in the last steps of every schedule
    (docs/papers/gpt-bert.md, "Training").
    """
    cooldown = math.floor(schedule.cooldown_fraction * steps)
    if cooldown and step >= steps - cooldown:
        return schedule.final_fraction * (steps - step) / cooldown
    warmup = warmup_steps(schedule, steps)
    if schedule.name == "linear_as_published":
        ramp = 1.0 if step >= warmup else NEARLY_ZERO + (1 - NEARLY_ZERO) * step / warmup
        return ramp * (1 + (NEARLY_ZERO - 1) * min(step, steps) / max(1, steps))
    if schedule.name == "inverse_square_root":
        # Step 0 counts as 1, as published: the first two updates have the same rate.
        count, width = max(step, 1), max(warmup, 1)
        return min(math.sqrt(width / count), count / width)
    if step < warmup:
        return step / warmup
    if schedule.name == "constant":
        return 1.0
    progress = (step - warmup) / max(1, steps - warmup)
    floor = schedule.final_fraction
    if schedule.name == "linear":
        return max(floor, 1 - (1 - floor) * progress)
    return max(floor, floor + (1 - floor) * 0.5 * (1 + math.cos(math.pi * progress)))


def warmup_steps(schedule: ScheduleSettings, steps: int) -> int:
    """Return the number of warm-up updates: `warmup_steps`, else `int(warmup_fraction * steps)`, at most
    `warmup_steps_limit`."""
    if schedule.warmup_steps is not ABSENT:
        return schedule.warmup_steps
    warmup = int(schedule.warmup_fraction * steps)
    return warmup if schedule.warmup_steps_limit is None else min(schedule.warmup_steps_limit, warmup)
