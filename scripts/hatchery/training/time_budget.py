"""In how many steps a budget of minutes is spent: by the time that the first steps take, before the first one counts.

Schedules go over all steps, so their number has to be known when training begins. A short training with the same
settings is timed and thrown away. Its number of steps is kept beside the checkpoints, so a run that was killed goes on
to the same end, whatever another machine would have made of it.
"""

import json
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from hatchery.errors import ConfigError
from hatchery.training.inputs import Inputs
from hatchery.training.processes import rendezvous
from hatchery.training.run import train_run
from hatchery.training.runtime_settings import RuntimeSettings
from hatchery.training.settings import PretrainSettings
from hatchery.training.topology import Topology
from hatchery.training.word_budget import Spending

TRIAL_STEPS, WARM_STEPS = 24, 4
"""So many steps are timed, of which the first are slower than all others. Lengths and sizes of batches change as over a
whole training."""


def timed_budget(
    settings: PretrainSettings, options: RuntimeSettings, inputs: Inputs, topology: Topology, name: str
) -> Spending:
    """The steps of a run with a budget of minutes. Raises ConfigError for several processes."""
    assert settings.budget is not None
    if topology.world_size > 1:
        raise ConfigError(f"pretrain.budget.minutes: expected one process, got {topology.world_size}; give `steps`")
    print(f"{name}: {TRIAL_STEPS} steps are timed, then training begins", file=sys.stderr, flush=True)
    seconds = _seconds_per_step(settings, options, inputs, topology, f"{name} (timed)")
    return Spending(max(1, int(60 * settings.budget.minutes / seconds)), None, {})


def _seconds_per_step(
    settings: PretrainSettings, options: RuntimeSettings, inputs: Inputs, topology: Topology, name: str
) -> float:
    trial = replace(settings.with_steps(TRIAL_STEPS), early_stopping=None, evaluation_sequences=0, divergences=False)
    every_step = replace(
        options, log_interval_steps=1, checkpoint_interval_steps=TRIAL_STEPS, milestones=(), sinks=(), compile="off"
    )
    with tempfile.TemporaryDirectory(prefix="hatchery-timed-") as folder:
        place = Path(folder)
        trained = train_run(trial, every_step, inputs, topology, rendezvous(topology), place, place / "output", name)
    rows = [json.loads(line) for line in trained.record.speed_text().splitlines()]
    measured = [row["step_seconds"] for row in rows if row["step"] > WARM_STEPS]
    return float(sum(measured) / len(measured))
