"""The stage `pretrain`: its settings, its inputs and its command, which imports PyTorch only when it runs."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hatchery.job_spec import Paths
from hatchery.runner import Job, OutputPath
from hatchery.settings.fields import ABSENT
from hatchery.stage import ADDRESS, Stage, StoredByDigest
from hatchery.training.distillation_settings import DistillationSettings
from hatchery.training.interruption import EXIT_STATUS_INTERRUPTED, TrainingInterrupted, leave_on_signals
from hatchery.training.settings import PretrainingSettings, PretrainSettings
from hatchery.training.start_settings import CurriculumSettings, InitialModelSettings
from hatchery.typed import keys_of

if TYPE_CHECKING:
    from hatchery.experiment.project import Project
    from hatchery.workflow.jobs import Jobs
    from hatchery.workflow.outputs import Outputs


UNFINISHED = Path("results/checkpoints")
"""Folder of the run folders of unfinished runs."""
# Settings that affect a model of 0 steps. The keys determine the initial weights, and the training sequences whose
# labels are counted for the output bias.
UNTRAINED = ("steps", "sequence_length", "objective", "output_bias", "initialise_from")


def pretraining_settings(project: "Project", experiment: str, run: str) -> dict[str, object]:
    """Return the settings of the stage: model configuration, seed and training settings of a run."""
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
    """Return the training settings of a run without the locations of the models that the run reads (initial model,
    teachers, ensemble members, the curriculum's model).

    Because the digests of these models' manifests identify the models, a renamed experiment or a moved folder causes no
    new training. A run of 0 steps keeps only the settings that determine an untrained model.
    """
    kept = keys_of(pretraining)
    if not pretraining.steps:
        kept = {key: value for key, value in kept.items() if key in UNTRAINED}
    # Leave the locations of the ensemble's members out of the settings, because the manifests of these models are
    # inputs of the stage.
    kept.pop("ensemble", None)
    if pretraining.ensemble:
        kept["ensemble"] = True
    if pretraining.initialise_from is not None:
        kept["initialise_from"] = keys_of(pretraining.initialise_from, only=InitialModelSettings)
    if pretraining.order is not None and pretraining.steps != 0:
        kept["order"] = keys_of(pretraining.order, only=CurriculumSettings)
    if pretraining.learns_from_teachers:
        kept["distillation"] = keys_of(pretraining.distillation, only=DistillationSettings)
    else:
        # Teachers with weight 0 have no effect, so the settings must equal those of a run without teachers.
        kept.pop("distillation", None)
    return kept


def pretraining_inputs(of: "Outputs", jobs: "Jobs", experiment: str, run: str) -> dict[str, Paths]:
    """Return the input manifests of a run.

    The result contains the manifests of tokens and tokenizer. If the run uses them, it also contains the manifests of
    the initial model; of the teachers or ensemble members; of the curriculum's model, word list or corpus; and of the
    larger corpus for the output bias.
    """
    block = of.project.experiment(experiment)
    found: dict[str, Paths] = {
        "tokens": of("encode_corpus", corpus=block.corpus, tokenizer=block.tokenizer),
        "tokenizer": of("train_tokenizer", tokenizer=block.tokenizer),
    }
    for initial in jobs.results.initial_model(experiment, run):
        found["initial_model"] = jobs.storage_path(initial)
    pretraining = block.runs[of.project.seeded_run(experiment, run).model].pretraining
    if teachers := jobs.results.teachers(experiment, run):
        name = "members" if pretraining.ensemble else "teachers"
        found[name] = [jobs.storage_path(teacher) for teacher in teachers]
    for ordering in jobs.results.order_model(experiment, run):
        found["order_model"] = jobs.storage_path(ordering)
    if pretraining.steps != 0 and pretraining.order is not None:
        if pretraining.order.words is not ABSENT:
            (found["order_words"],) = of.source(pretraining.order.words)
        if pretraining.order.by == "column":
            found["order_corpus"] = of.corpus(block.corpus)
    larger = pretraining.output_bias.larger_corpus
    if larger is not ABSENT:
        found["counts"] = of("encode_corpus", corpus=larger, tokenizer=block.tokenizer)
    return found


@Stage(
    version=2,
    settings=pretraining_settings,
    inputs=pretraining_inputs,
    input_names={"teachers": "teacher", "members": "member"},
    # Let the wildcard match only trainings of this project, not imported models.
    wildcard_patterns=lambda project: {"model": ADDRESS},
    # The run folder is not an output of the rule, because Snakemake deletes outputs before every attempt, but a killed
    # job must continue from its last checkpoint.
    unrecorded=lambda jobs, model: {"name": jobs.title(model)},
    shared=StoredByDigest("pretraining"),
    environment="pretraining",
    runs_on="gpus",
    threads="pretraining",
    # The section `cluster` of the configuration sets the memory. It also sets the run time, if the run time is known
    # before the job.
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
    teachers: Sequence[Path] = (),
    members: Sequence[Path] = (),
    order_model: Path | None = None,
    order_words: Path | None = None,
    order_corpus: Path | None = None,
    name: str = "",
) -> None:
    """Pretrain a language model on token shards. The exit status 75 means that a signal, the time limit or another
    attempt of the same job stopped the run; the same command continues the run.

    All inputs are manifests. `initial_model` replaces random initial weights. `counts` are the token shards of a larger
    corpus, from whose token frequencies the initial output bias is computed. The model learns from `teachers`, or is an
    ensemble of `members`. The loss of `order_model`, the word list `order_words`, or a numeric column of `order_corpus`
    determines the order of the text. The folder `checkpoints` contains the folders of unfinished runs. `name` is the
    run's name in progress lines and sinks.
    """
    leave_on_signals()
    from hatchery.training.inputs import Inputs
    from hatchery.training.train_and_export import train_and_export

    try:
        ordering = order_model, order_words, order_corpus
        inputs = Inputs(tokens, tokenizer, initial_model, counts, teachers, members, *ordering)
        train_and_export(job, settings, runtime, inputs, checkpoints, name)
    except TrainingInterrupted as interruption:
        print(interruption, file=sys.stderr)
        sys.exit(EXIT_STATUS_INTERRUPTED)
