"""The stage `pretrain`: what comes before PyTorch is loaded, and after a run was stopped."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hatchery.job_spec import Paths
from hatchery.runner import Job, OutputPath
from hatchery.settings.fields import ABSENT
from hatchery.stage import ADDRESS, Stage, StoredByDigest
from hatchery.training.interruption import EXIT_STATUS_INTERRUPTED, TrainingInterrupted, leave_on_signals
from hatchery.training.settings import PretrainingSettings, PretrainSettings
from hatchery.training.start_settings import InitialModelSettings
from hatchery.typed import keys_of

if TYPE_CHECKING:
    from hatchery.experiment.project import Project
    from hatchery.workflow.jobs import Jobs
    from hatchery.workflow.outputs import Outputs


UNFINISHED = Path("results/checkpoints")
"""The folders of runs that have not ended."""
# All that says what a model without training is, and how text is given to it.
UNTRAINED = ("steps", "sequence_length", "objective", "output_bias", "initialise_from")


def pretraining_settings(project: "Project", experiment: str, run: str) -> dict[str, object]:
    """The model, its objective and its training."""
    chosen = project.seeded_run(experiment, run)
    model = keys_of(project.model_of(experiment, chosen.model), "description")
    pretraining = project.experiment(experiment).runs[chosen.model].pretraining
    kept = training_settings(pretraining)
    if pretraining.budget is not None and "budget" in kept:
        kept["budget"] = project.within_track(experiment, pretraining.budget)
    if kept.get("checkpoints_at"):
        kept["checkpoints_at"] = project.marks(experiment, chosen)
    return {**kept, "model": model, "seed": chosen.seed}


def training_settings(pretraining: PretrainingSettings) -> dict[str, object]:
    """The settings of a run without the place of its initial model.

    Which model that is, the digest of its manifest says, which is among the inputs: a renamed experiment or a moved
    folder trains nothing anew. Nor does a run of 0 steps depend on how it would be trained.
    """
    kept = keys_of(pretraining)
    if not pretraining.steps:
        kept = {key: value for key, value in kept.items() if key in UNTRAINED}
    if pretraining.initialise_from is not None:
        kept["initialise_from"] = keys_of(pretraining.initialise_from, only=InitialModelSettings)
    return kept


def pretraining_inputs(of: "Outputs", jobs: "Jobs", experiment: str, run: str) -> dict[str, Paths]:
    """Manifests of tokens and tokenizer and, where a run names such, of the initial model and of larger counts."""
    block = of.project.experiment(experiment)
    found: dict[str, Paths] = {
        "tokens": of("encode_corpus", corpus=block.corpus, tokenizer=block.tokenizer),
        "tokenizer": of("train_tokenizer", tokenizer=block.tokenizer),
    }
    for initial in jobs.results.initial_model(experiment, run):
        found["initial_model"] = jobs.storage_path(initial)
    larger = block.runs[of.project.seeded_run(experiment, run).model].pretraining.output_bias.larger_corpus
    if larger is not ABSENT:
        found["counts"] = of("encode_corpus", corpus=larger, tokenizer=block.tokenizer)
    return found


@Stage(
    version=1,
    settings=pretraining_settings,
    inputs=pretraining_inputs,
    # No imported model.
    wildcard_patterns=lambda project: {"model": ADDRESS},
    # The run folder with the checkpoints is no output: Snakemake deletes outputs before every attempt, and a killed job
    # goes on from its last checkpoint.
    unrecorded=lambda jobs, model: {"name": jobs.title(model)},
    shared=StoredByDigest("pretraining"),
    environment="pretraining",
    runs_on="gpus",
    threads="pretraining",
    # Memory, and time where it is known beforehand, are in the `cluster` block.
    memory_mb=0,
    minutes=1440,
    runtime=(
        "device",
        "micro_batch_size",
        "checkpoint_interval_steps",
        "keep_checkpoints",
        "log_interval_steps",
        "milestones",
        "background_checkpoints",
        "workers",
        "compile",
        "activation_checkpointing",
        "zero_stage",
        "time_limit_minutes",
        "grace_seconds",
        "sinks",
    ),
)
def pretrain(
    job: Job,
    settings: PretrainSettings,
    runtime: Mapping[str, Any],
    tokens: Path,
    tokenizer: Path,
    checkpoints: OutputPath = UNFINISHED,
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
    from hatchery.training.inputs import Inputs
    from hatchery.training.train_and_export import train_and_export

    try:
        inputs = Inputs(tokens, tokenizer, initial_model, counts)
        train_and_export(job, settings, runtime, inputs, checkpoints, name)
    except TrainingInterrupted as interruption:
        print(interruption, file=sys.stderr)
        sys.exit(EXIT_STATUS_INTERRUPTED)
