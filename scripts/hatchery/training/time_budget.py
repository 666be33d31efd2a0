"""The number of steps for a budget of minutes, from the duration of trial steps before the training.

Schedules depend on the number of steps, so this number must be known before training. A short training with the same
settings, but without compilation and without development text, is timed and discarded. The number of steps is stored in
the run folder, so a killed run keeps this number, even on another machine.
"""

import copy
import json
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from hatchery.errors import ConfigError
from hatchery.training.inputs import Inputs
from hatchery.training.processes import rendezvous
from hatchery.training.run import train_run
from hatchery.training.run_parts import NOTHING_GIVEN, Given
from hatchery.training.runtime_settings import RuntimeSettings
from hatchery.training.settings import PretrainSettings
from hatchery.training.topology import Topology
from hatchery.training.word_budget import Spending

TRIAL_STEPS, WARM_STEPS = 24, 4
"""Number of trial steps, and number of first trial steps that are not timed, because the first steps are slow. Sequence
lengths and batch sizes change within the trial as in the training.
"""


def timed_budget(
    settings: PretrainSettings,
    options: RuntimeSettings,
    inputs: Inputs,
    topology: Topology,
    name: str,
    given: Given = NOTHING_GIVEN,
) -> Spending:
    """Return the number of steps of a run whose budget is in minutes. Raises ConfigError if the run has several
    processes.
    """
    assert settings.budget is not None
    if topology.world_size > 1:
        raise ConfigError(
            f"pretraining.budget.minutes: got {topology.world_size} processes, expected one process; set `steps` "
            "instead"
        )
    print(f"{name}: timing {TRIAL_STEPS} steps before training begins", file=sys.stderr, flush=True)
    seconds = _seconds_per_step(settings, options, inputs, topology, f"{name} (timed)", given)
    return Spending(max(1, int(60 * settings.budget.minutes / seconds)), None, {})


def _seconds_per_step(
    settings: PretrainSettings, options: RuntimeSettings, inputs: Inputs, topology: Topology, name: str, given: Given
) -> float:
    trial = replace(settings.with_steps(TRIAL_STEPS), early_stopping=None, evaluation_sequences=0, divergences=False)
    every_step = replace(
        options, log_interval_steps=1, checkpoint_interval_steps=TRIAL_STEPS, milestones=(), sinks=(), compile="off"
    )
    with tempfile.TemporaryDirectory(prefix="hatchery-timed-") as folder:
        place = Path(folder)
        trial_output = place / "output"
        # The trial trains a copy of the caller's module, because training changes the weights.
        trial_of = Given(copy.deepcopy(given.model))
        store = rendezvous(topology)
        trained = train_run(trial, every_step, inputs, topology, store, place, trial_output, name, given=trial_of)
    rows = [json.loads(line) for line in trained.record.speed_text().splitlines()]
    measured = [row["step_seconds"] for row in rows if row["step"] > WARM_STEPS]
    return float(sum(measured) / len(measured))
