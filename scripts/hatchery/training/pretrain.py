"""The function of the stage `pretrain`: what comes before PyTorch is loaded, and after a run was stopped."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hatchery.runner import Job, Place, stage
from hatchery.training.interruption import EXIT_STATUS_INTERRUPTED, TrainingInterrupted, leave_on_signals
from hatchery.training.settings import PretrainSettings


@stage()
def pretrain(
    job: Job,
    settings: PretrainSettings,
    runtime: Mapping[str, Any],
    tokens: Path,
    tokenizer: Path,
    checkpoints: Place,
    initial_model: Path | None = None,
    counts: Path | None = None,
    name: str = "",
) -> None:
    """Pretrain a language model on token shards; status 75 means stopped by a signal, with a checkpoint to go on.

    `initial_model` is the manifest of the model to start from instead of random weights, `counts` that of the token
    shards in which the output bias is counted. Unfinished runs have their folders in `checkpoints`; progress and sinks
    call the run `name`.
    """
    leave_on_signals()
    from hatchery.training.run import Inputs
    from hatchery.training.stage import train_and_export

    try:
        inputs = Inputs(tokens, tokenizer, initial_model, counts)
        train_and_export(job, settings, runtime, inputs, checkpoints, name)
    except TrainingInterrupted as interruption:
        print(interruption, file=sys.stderr)
        sys.exit(EXIT_STATUS_INTERRUPTED)
