"""What an experiment will cost, reckoned from its settings alone, before there is any data or any run.

Operations are those of `modeling.flops`; beside them stand the counts of the papers (docs/papers/ltg-bert.md, "Cost of
a run", and docs/papers/reduced-vocabulary.md, "FLOPs"). Padding counts as text and no step is lost, so the numbers are
upper bounds of the work, and the time is as good as the stated share of the device's peak (MFU). Equal settings give
equal estimates.

The evaluation of a model is reckoned more roughly: the configuration does not know how long sentences are or how many a
task has, so published sizes and a typical length stand in (docs/papers/babylm-evaluation.md, "Cost of scoring";
LTG-BERT, Table 4). Good for the order of magnitude: is it an hour or a week?
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hatchery.artifacts.manifests import read_manifest
from hatchery.experiment.cluster import PlanSettings, precision_and_peak
from hatchery.modeling.configuration import ModelConfig
from hatchery.modeling.families import family_of, model_config, training_flops_per_sequence
from hatchery.modeling.flops import BACKWARD_FACTOR
from hatchery.training.data_order import Phase, phases_from, training_phases
from hatchery.training.settings import PretrainSettings, pretrain_settings
from hatchery.typed import build, stage_body
from hatchery.workflow.stages.write_cost import CostSettings, PlannedRun, SuiteSettings, TaskSettings

BYTES_PER_VALUE = 4
ZERO_STAGES = (0, 1, 2, 3)
OPTIMIZER_MOMENTS = 2
"""LAMB and AdamW both keep a mean and a mean square of every gradient, in fp32 like the parameters."""

# Operations of training on one sequence of a length with a share of labelled positions.
FlopsPerSequence = Callable[[int, float], float]

PARADIGMS = 67
"""BLiMP's; a suite with fewer costs less."""

PAIRS_PER_PARADIGM = 1000
SENTENCE_TOKENS = 12
"""Subwords of a sentence of BLiMP (some eight words), special tokens not counted."""

TRAINING_EXAMPLES = {
    "boolq": 9_427,
    "cola": 8_551,
    "mnli": 392_702,
    "mnli_mm": 392_702,
    "mrpc": 3_668,
    "multirc": 27_243,
    "qnli": 104_743,
    "qqp": 363_846,
    "rte": 2_490,
    "sst2": 67_349,
    "stsb": 5_749,
    "wnli": 635,
    "wsc": 554,
}
"""Training examples of GLUE and SuperGLUE; the sets that BabyLM filtered are smaller."""

KEPT_BY_VOCABULARY = {
    "cola": 0.6187,
    "mnli": 0.2482,
    "mrpc": 0.1017,
    "qnli": 0.0932,
    "qqp": 0.3275,
    "rte": 0.0635,
    "sst2": 0.3123,
    "stsb": 0.4015,
    "wnli": 0.4178,
}
"""Share of the rows of GLUE within a child's vocabulary (docs/papers/reduced-vocabulary.md, "Filtered GLUE")."""

OTHER_TASK_EXAMPLES = 10_000
"""For a task without a published size or a limit."""


@dataclass(frozen=True)
class RunCost:
    """The cost of one pretraining and, roughly, of evaluating its model; operations are those of the model alone."""

    run: str
    parameters: int
    steps: int
    sequences: int
    # Positions of all sequences, padding included; of pairs, of both sides.
    tokens: int
    # Forward and backward, over both sequence lengths.
    training_flops: float
    # Forward passes over the development sequences.
    development_flops: float
    # What the family's paper would count, and how.
    paper_flops: float
    paper_formula: str
    precision: str
    # Of all devices together.
    peak_flops_per_second: float
    wall_seconds: float
    device_hours: float
    # Rough, of all suites and of all tasks with all their seeds.
    minimal_pairs_flops: float
    finetuning_flops: float
    checkpoint_bytes: int
    # Most that lies in the run folder at once; it is removed when the run is over.
    run_folder_bytes: int
    # The pretrained model, and its copy as a folder for `transformers`.
    model_bytes: int
    export_bytes: int

    def seconds_on_one_device(self, flops: float, plan: PlanSettings) -> float:
        """How long evaluating takes, whose jobs use one device each."""
        return flops / (self.peak_flops_per_second * plan.mfu / plan.devices)


@dataclass(frozen=True)
class ShardsOnDisk:
    """Token shards that are there already."""

    bytes: int
    training_tokens: int


def cost_settings(settings: Mapping[str, Any]) -> CostSettings:
    """The typed settings. Raises ConfigError for an unknown, missing or impossible value."""
    return build(CostSettings, stage_body(settings), "cost")


def estimate(settings: CostSettings) -> list[RunCost]:
    """The cost of every run, in the order of the experiment.

    Raises ConfigError and ModelError for an impossible run or model, and ConfigError for a precision that the planned
    device does not have.
    """
    return [_cost_of(run, settings) for run in settings.runs]


def parameters_of(config: ModelConfig) -> int:
    """Parameters of a model, shared ones once, from the modules themselves but without memory for their values."""
    from hatchery.modeling.language_model import empty_language_model

    return sum(parameter.numel() for parameter in empty_language_model(config).parameters())


def training_bytes(parameters: int, devices: int, zero_stage: int) -> int:
    """Memory of each device for parameters, gradients and optimiser, before activations and DeepSpeed's buffers.

    ZeRO shares the moments among the devices (1), also the gradients (2), also the parameters (3), and keeps a copy of
    the share of parameters that a device updates.
    """
    whole = parameters * BYTES_PER_VALUE
    share = -(-whole // devices)
    moments = OPTIMIZER_MOMENTS * (share if zero_stage >= 1 else whole)
    gradients = share if zero_stage >= 2 else whole
    values = (share if zero_stage >= 3 else whole) + (share if zero_stage >= 1 else 0)
    return values + gradients + moments


def shards_on_disk(manifest: Path) -> ShardsOnDisk | None:
    """Size of the token shards of a manifest; None where there is none yet. Raises ManifestError when it is damaged."""
    if not manifest.is_file():
        return None
    read = read_manifest(manifest)
    training = read.measures.get("splits", {}).get("train", {}).get("subwords", 0)
    return ShardsOnDisk(sum(output.bytes for output in read.outputs), int(training))


def _cost_of(planned: PlannedRun, settings: CostSettings) -> RunCost:
    run, plan = pretrain_settings(planned.pretraining), settings.plan
    model = run.model_values
    config = model_config({**model, "vocab_size": settings.vocabulary_size}, f"cost.runs.{planned.name}.model")
    phases = phases_from(training_phases(run), planned.first_step)
    parameters = parameters_of(config)
    sequences = round(sum(_sequences(phase) for phase in phases))
    texts = run.objective.texts_of_sequence
    tokens = round(sum(_sequences(phase) * phase.sequence_length for phase in phases)) * texts

    def per_sequence(length: int, labelled_share: float) -> float:
        return training_flops_per_sequence(model, settings.vocabulary_size, length, labelled_share)

    training, development = pretraining_flops(run, planned.first_step, per_sequence)
    precision, peak = precision_and_peak(run.precision, plan)
    wall = (training + development) / (peak * plan.mfu)
    family, work = family_of(config), [(round(_sequences(phase)), phase.sequence_length) for phase in phases]
    model_bytes = parameters * BYTES_PER_VALUE
    # A model that is not trained has none.
    checkpoint = model_bytes * (1 + OPTIMIZER_MOMENTS) if run.steps else 0
    # One more than is kept: an old checkpoint goes when the new one is complete.
    most = plan.keep_checkpoints + 1 + len(plan.milestones)
    return RunCost(
        run=planned.name,
        parameters=parameters,
        steps=run.steps - planned.first_step,
        sequences=sequences,
        tokens=tokens,
        training_flops=training,
        development_flops=development,
        paper_flops=family.paper_flops(config, parameters, work),
        paper_formula=family.paper_formula,
        precision=precision,
        peak_flops_per_second=peak,
        wall_seconds=wall,
        device_hours=wall * plan.devices / 3600,
        minimal_pairs_flops=sum(minimal_pairs_flops(suite, per_sequence) for suite in settings.suites),
        finetuning_flops=sum(finetuning_flops(task, per_sequence) for task in settings.tasks),
        checkpoint_bytes=checkpoint,
        run_folder_bytes=most * checkpoint,
        model_bytes=model_bytes,
        export_bytes=model_bytes,
    )


def pretraining_flops(run: PretrainSettings, first_step: int, per_sequence: FlopsPerSequence) -> tuple[float, float]:
    """Operations of a pretraining from its first own step on: of training, and of scoring development text."""
    labelled = run.objective.labelled_share
    phases = phases_from(training_phases(run), first_step)
    training = sum(_sequences(phase) * per_sequence(phase.sequence_length, labelled) for phase in phases)
    # The development set keeps the short length, so that its curve is comparable over the whole run.
    scored = evaluations(run, first_step) * run.evaluation_sequences
    return training, scored * per_sequence(run.sequence_length, labelled) / (1 + BACKWARD_FACTOR)


def _sequences(phase: Phase) -> float:
    return (phase.last_step - phase.first_step) * phase.sequences_per_step


def evaluations(run: PretrainSettings, first_step: int = 0) -> int:
    """How often development text is scored: early where the objective says so, every interval, after the last step."""
    interval = run.evaluation_interval_steps
    early = [
        step
        for step in run.objective.early_evaluations_at(interval)
        if step < run.steps and (step > first_step or step == first_step == 0)
    ]
    return len(early) + -(-run.steps // interval) - first_step // interval


def minimal_pairs_flops(suite: SuiteSettings, per_sequence: FlopsPerSequence) -> float:
    """Pseudo-log-likelihoods of both sentences of every pair: one forward pass for each of their tokens."""
    pairs = PARADIGMS * (suite.pairs_per_paradigm or PAIRS_PER_PARADIGM)
    length = SENTENCE_TOKENS + 2
    forward = per_sequence(length, 1 / length) / (1 + BACKWARD_FACTOR)
    return pairs * 2 * SENTENCE_TOKENS * forward


def finetuning_flops(task: TaskSettings, per_sequence: FlopsPerSequence) -> float:
    """All seeds and epochs, and after each epoch a forward pass over the held-out share of the training file."""
    examples = task.examples or _training_examples(task.name)
    held_out = task.development_fraction
    # No position meets the vocabulary, and the classifier's own product is too small to count.
    work = (1 - held_out) + held_out / (1 + BACKWARD_FACTOR)
    return task.seeds * task.epochs * examples * work * per_sequence(task.max_length, 0.0)


def _training_examples(task: str) -> int:
    """Published rows of a task; filtered ones by the share of all rows that the vocabulary keeps."""
    plain = task.removesuffix("_filtered").removeprefix("babylm_").removeprefix("rv_glue_")
    share = KEPT_BY_VOCABULARY.get(plain, 1.0) if task.endswith("_filtered") else 1.0
    return round(TRAINING_EXAMPLES.get(plain, OTHER_TASK_EXAMPLES) * share)
