"""The estimated cost of an experiment, computed only from its settings, without data or runs.

FLOPs are counted by `modeling.flops`, and reported next to the counts by the formulas of two papers
(docs/papers/ltg-bert.md, "Cost of a run", and docs/papers/reduced-vocabulary.md, "FLOPs"). The FLOPs are upper bounds,
because padding counts as text and no step is skipped. The run time is FLOPs divided by the assumed speed, so its
accuracy depends on the assumed share of the device's peak speed (MFU). Equal settings give equal estimates.

The cost of evaluation is excluded, because it depends on the number of sentence pairs and task rows in the data.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from hatchery.artifacts.manifests import read_manifest
from hatchery.experiment.cluster import precision_and_peak
from hatchery.modeling.configuration import ModelConfig
from hatchery.modeling.families import (
    family_of,
    model_config,
    teaching_flops_per_sequence,
    training_flops_per_sequence,
)
from hatchery.modeling.flops import BACKWARD_FACTOR, FlopsPerSequence
from hatchery.settings.fields import ABSENT
from hatchery.training.settings import PretrainSettings, TrainingSettings, pretrain_settings
from hatchery.training.step_plan import StepPlan
from hatchery.typed import build, stage_body
from hatchery.workflow.cost_settings import CostSettings, PlannedRun

# Assumed maximum number of steps per minute. It applies to small models: they reach only a small share of a large
# device's peak speed, so the estimate from the peak speed would be too fast.
MOST_STEPS_PER_MINUTE = 6_000
BYTES_PER_VALUE = 4
ZERO_STAGES = (0, 1, 2, 3)
OPTIMIZER_MOMENTS = 2
"""Number of values that the optimiser stores per parameter: LAMB and AdamW store the mean and the mean square of each
gradient, in fp32.
"""


@dataclass(frozen=True)
class RunCost:
    """The cost of one pretraining; the FLOPs of the optimiser are not included."""

    run: str
    parameters: int
    steps: int
    sequences: int
    # Number of positions of all sequences, including padding. In translation, the number of source and target
    # positions.
    tokens: int
    # FLOPs of all forward and backward passes, at all sequence lengths of the training, including the forward passes of
    # teachers.
    training_flops: float
    # FLOPs of forward passes over the development sequences.
    development_flops: float
    # FLOPs by the formula in the paper that introduced the model's architecture, and the name of this formula.
    paper_flops: float
    paper_formula: str
    precision: str
    # Sum of the peak FLOPs per second of all devices.
    peak_flops_per_second: float
    wall_seconds: float
    device_hours: float
    checkpoint_bytes: int
    # Maximum size of the run folder (checkpoints and intermediate models), which is removed after the run.
    run_folder_bytes: int
    # Size of the pretrained model, and size of its export in the format of `transformers`.
    model_bytes: int
    export_bytes: int


@dataclass(frozen=True)
class ShardsOnDisk:
    """Size of existing token shards in bytes, and number of training tokens that these shards contain."""

    bytes: int
    training_tokens: int


def cost_settings(settings: Mapping[str, Any]) -> CostSettings:
    """Return the mapping `settings` as an object. Raises ConfigError for an unknown key, or a missing or invalid
    value.
    """
    return build(CostSettings, stage_body(settings), "cost")


def estimate(settings: CostSettings) -> list[RunCost]:
    """Return the cost of each pretraining in `settings.runs`, in the same order.

    Raises ConfigError or ModelError for an invalid run or model, and ConfigError for a precision that the planned
    device does not support.
    """
    return [_cost_of(run, settings) for run in settings.runs]


@cache
def parameters_of(config: ModelConfig) -> int:
    """Return the number of parameters of a model; shared parameters are counted once.

    The model is built on PyTorch's meta device, without memory for its values.
    """
    from hatchery.modeling.language_model import empty_language_model

    return sum(parameter.numel() for parameter in empty_language_model(config).parameters())


def training_bytes(parameters: int, devices: int, zero_stage: int) -> int:
    """Return the number of bytes that parameters, gradients and optimiser need on each device.

    Activations and DeepSpeed's buffers are not included. ZeRO stage 1 divides the optimiser's moments among the
    devices, stage 2 also the gradients, and stage 3 also the parameters. At stages 1 to 3, each device also stores a
    copy of the parameters that it updates.
    """
    whole = parameters * BYTES_PER_VALUE
    share = -(-whole // devices)
    moments = OPTIMIZER_MOMENTS * (share if zero_stage >= 1 else whole)
    gradients = share if zero_stage >= 2 else whole
    values = (share if zero_stage >= 3 else whole) + (share if zero_stage >= 1 else 0)
    return values + gradients + moments


def shards_on_disk(manifest: Path) -> ShardsOnDisk | None:
    """Return the size, and the number of training tokens, of the token shards that `manifest` lists.

    None if the manifest does not exist. Raises ManifestError if the manifest is damaged.
    """
    if not manifest.is_file():
        return None
    read = read_manifest(manifest)
    training = read.measures.get("splits", {}).get("train", {}).get("subwords", 0)
    return ShardsOnDisk(sum(output.bytes for output in read.outputs), int(training))


def planned_at(run: PretrainSettings, per_sequence: FlopsPerSequence, pace: float) -> PretrainSettings:
    """Return the settings of a run with `steps` in place of a training budget in minutes: the number of steps that the
    run can make in these minutes.

    `pace` is the speed in FLOPs per second. Settings that state `steps`, or that have no budget in minutes, are
    returned unchanged.
    """
    if run.budget is None or run.budget.words is not None or run.steps is not ABSENT:
        return run
    some = run.planned()
    each = StepPlan(some).flops(per_sequence) / some.steps
    steps = min(60 * run.budget.minutes * pace / each, MOST_STEPS_PER_MINUTE * run.budget.minutes)
    return run.with_steps(max(1, round(steps)))


def _cost_of(planned: PlannedRun, settings: CostSettings) -> RunCost:
    run, machine = pretrain_settings(planned.pretraining), settings.plan
    model = run.model_values
    config = model_config({**model, "vocab_size": settings.vocabulary_size}, f"cost.runs.{planned.name}.model")
    parameters = sum(map(parameters_of, _members(planned, settings))) or parameters_of(config)

    def per_sequence(length: int, labelled_share: float) -> float:
        return training_flops_per_sequence(model, settings.vocabulary_size, length, labelled_share)

    def per_taught_sequence(length: int, labelled_share: float) -> float:
        taught = teaching_flops_per_sequence(planned.teachers, settings.vocabulary_size, length, labelled_share)
        return per_sequence(length, labelled_share) + taught

    precision, peak = precision_and_peak(run.precision, machine)
    run = planned_at(run, per_taught_sequence, peak * machine.mfu)
    plan, first = StepPlan(run), planned.first_step
    training, development = plan.flops(per_taught_sequence, first), development_flops(plan, first, per_sequence)
    wall = (training + development) / (peak * machine.mfu)
    family, work = family_of(config), [(round(part.sequences), part.sequence_length) for part in plan.work(first)]
    model_bytes = parameters * BYTES_PER_VALUE
    weights = model_bytes * (1 if run.weight_average is None else 2)
    # A model without training steps has no checkpoints.
    checkpoint = weights + model_bytes * OPTIMIZER_MOMENTS if plan.steps else 0
    # The folder contains at most `keep_checkpoints` + 1 checkpoints, because the oldest checkpoint is removed only
    # after the new checkpoint is complete. Milestones and marks (intermediate models) contain weights, but no optimiser
    # moments.
    whole, kept = machine.keep_checkpoints + 1, len(machine.milestones) + len(run.marks)
    return RunCost(
        run=planned.name,
        parameters=parameters,
        steps=plan.steps - planned.first_step,
        sequences=round(plan.sequences(first)),
        tokens=plan.tokens(first),
        training_flops=training,
        development_flops=development,
        paper_flops=family.paper_flops(config, parameters, work),
        paper_formula=family.paper_formula,
        precision=precision,
        peak_flops_per_second=peak,
        wall_seconds=wall,
        device_hours=wall * machine.devices / 3600,
        checkpoint_bytes=checkpoint,
        run_folder_bytes=whole * checkpoint + kept * weights if plan.steps else 0,
        model_bytes=model_bytes,
        export_bytes=0 if planned.members else model_bytes * (1 + len(run.marks)),
    )


def _members(planned: PlannedRun, settings: CostSettings) -> list[ModelConfig]:
    """Return the configurations of the member models if `planned` is an ensemble; empty for other runs."""
    where = f"cost.runs.{planned.name}.members"
    return [model_config({**model, "vocab_size": settings.vocabulary_size}, where) for model in planned.members]


def development_flops(plan: StepPlan, first_step: int, per_sequence: FlopsPerSequence) -> float:
    """Return the FLOPs of all evaluations on development text that a pretraining makes after step `first_step`."""
    run = plan.settings
    # Development sequences always have the first sequence length, so that losses are comparable over the whole run.
    scored = evaluations(run, first_step) * run.evaluation_sequences
    labelled = run.objective.labelled_share_at(run.objective.mask_rate(1.0))
    return scored * per_sequence(run.sequence_length, labelled) / (1 + BACKWARD_FACTOR)


def evaluations(run: TrainingSettings, first_step: int = 0) -> int:
    """Return the number of evaluations on development text after `first_step`.

    A run is evaluated after every `evaluation_interval_steps` steps, after the last step, and at the early steps that
    the objective requests.
    """
    interval = run.evaluation_interval_steps
    early = [
        step
        for step in run.objective.early_evaluations_at(interval)
        if step < run.steps and (step > first_step or step == first_step == 0)
    ]
    return len(early) + -(-run.steps // interval) - first_step // interval
