"""The learning rate of each step. It depends only on the step number and the settings, so a resumed run needs no
scheduler state.

`cosine` is LTG-BERT's schedule: a linear warm-up from exactly 0, then half a cosine down to a fraction of the peak.
`linear_as_published` is the second schedule in LTG-BERT's code (docs/papers/ltg-bert.md, "Learning rate").
`inverse_square_root` is the schedule of the reduced-vocabulary study, Section 4.2 (docs/papers/reduced-vocabulary.md,
"Pretraining"). As in LTG-BERT's BNC code, the step number includes steps that fp16 skips.
"""

import math

from hatchery.settings.fields import ABSENT
from hatchery.training.settings import ScheduleSettings

# Learning rate, as a fraction of the peak, at the beginning of the warm-up and at the end of the decay in LTG-BERT's
# code. It is not 0, because torch's linear schedulers cannot start at 0.
NEARLY_ZERO = 1e-9


def learning_rate(peak: float, schedule: ScheduleSettings, step: int, steps: int) -> float:
    """Return the learning rate of step number `step` (from 0) of a run of `steps` steps."""
    return peak * learning_rate_factor(schedule, step, steps)


def learning_rate_factor(schedule: ScheduleSettings, step: int, steps: int) -> float:
    """Return the learning rate of step number `step` (from 0), divided by the peak learning rate: 0 to 1.

    After the warm-up, `cosine` and `linear` fall to `final_fraction`, and `constant` stays at the peak.
    `linear_as_published` is the product of the warm-up and a decay over all steps; it ends near 0 for any
    `final_fraction`. `inverse_square_root` ends at the square root of (warm-up steps / all steps). If
    `cooldown_fraction` is above 0, the last steps of every schedule have another learning rate, which falls linearly
    from `final_fraction` to 0 (docs/papers/gpt-bert.md, "Training").
    """
    cooldown = math.floor(schedule.cooldown_fraction * steps)
    if cooldown and step >= steps - cooldown:
        return schedule.final_fraction * (steps - step) / cooldown
    warmup = warmup_steps(schedule, steps)
    if schedule.name == "linear_as_published":
        ramp = 1.0 if step >= warmup else NEARLY_ZERO + (1 - NEARLY_ZERO) * step / warmup
        return ramp * (1 + (NEARLY_ZERO - 1) * min(step, steps) / max(1, steps))
    if schedule.name == "inverse_square_root":
        # As in the reduced-vocabulary study's code, step 0 counts as step 1, so the first two updates have the same
        # rate.
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
    """Return the number of warm-up steps: `warmup_steps` if this key is set, or else `int(warmup_fraction * steps)`,
    but at most `warmup_steps_limit`. The limit does not apply to `warmup_steps`.
    """
    if schedule.warmup_steps is not ABSENT:
        return schedule.warmup_steps
    warmup = int(schedule.warmup_fraction * steps)
    return warmup if schedule.warmup_steps_limit is None else min(schedule.warmup_steps_limit, warmup)
