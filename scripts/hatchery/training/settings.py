"""Settings of a pretraining run (`PretrainSettings`) that determine its weights and identify the run.

Values that exclude each other are refused before any data is loaded. `runtime_settings` contains the settings that may
change between two attempts of a run. The defaults are those of LTG-BERT, Table 9, and ELC-BERT, Table 4.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal, Self

from hatchery.settings.base import (
    Count,
    Natural,
    Range,
    RefusedError,
    Settings,
    Share,
    ShareAboveZero,
    conflict,
    omitted_at_default,
    refused,
    require,
)
from hatchery.settings.fields import ABSENT, Unique
from hatchery.training.distillation_settings import DistillationChoice, DistillationSettings
from hatchery.training.milestones import BABYLM_MARKS
from hatchery.training.objectives import ObjectiveSettings
from hatchery.training.objectives.masked import MaskedSettings
from hatchery.training.optimizer_settings import OptimizerSettings
from hatchery.training.start_settings import (
    BudgetSettings,
    CurriculumChoice,
    CurriculumSettings,
    EarlyStoppingSettings,
    InitialModelChoice,
    InitialModelSettings,
    ModelChoice,
    OutputBiasSettings,
    WeightAverageSettings,
    WordCount,
)
from hatchery.typed import build, stage_body

# Estimated number of tokens per word. The numbers of steps and batch sizes of BabyLM's baselines of 2025, whose
# vocabularies have 16,384 subwords, imply 1.616 and 1.624 tokens per word.
TOKENS_PER_WORD = 1.62
# Estimated number of steps per minute, to plan a budget of minutes before the device is known.
STEPS_PER_MINUTE = 60
MOST_STEPS = 100_000_000
"""Maximum number of steps, because a plan stores a number for each step. The papers' runs have far fewer steps."""
WARMUP_FRACTION = 0.016
EVALUATION_INTERVAL_STEPS = 500
"""Default number of steps between two evaluations of development text."""


@dataclass(frozen=True)
class ScheduleSettings(Settings):
    """Schedule of the learning rate."""

    name: Literal["cosine", "linear", "linear_as_published", "inverse_square_root", "constant"] = "cosine"
    """Decay of the learning rate after warm-up. `linear_as_published` multiplies the warm-up by a decay that begins at
    the first step, and ends near 0.
    """
    warmup_fraction: Share = WARMUP_FRACTION
    """Share of the steps in which the learning rate rises to its peak."""
    final_fraction: Share = 0.1
    """Learning rate, as a share of the peak, at the end of `cosine` and `linear`, and at the start of a cooldown."""
    cooldown_fraction: Share = 0.0
    """Share of the steps, at the end, in which the learning rate falls linearly from `final_fraction` to 0; 0 disables
    this cooldown.
    """
    warmup_steps_limit: Count | None = None
    """Maximum number of warm-up steps; `null` sets no maximum."""
    warmup_steps: Count = ABSENT
    """Number of warm-up steps, instead of `warmup_fraction`. In a run with `steps` and without `keep_training_state`,
    the value may be at most the number of steps. With this key and without a cooldown, the learning rates of
    `inverse_square_root` and `constant` do not depend on the number of steps.
    """

    def __post_init__(self) -> None:
        if self.warmup_steps is ABSENT:
            return
        for key, default in (("warmup_steps_limit", None), ("warmup_fraction", WARMUP_FRACTION)):
            if getattr(self, key) != default:
                reason = "`warmup_steps` sets the exact number of warm-up steps"
                raise conflict(key, getattr(self, key), "`warmup_steps`", reason)


@dataclass(frozen=True)
class LongSequenceSettings(Settings):
    """Part of the training with longer sequences: they are `factor` times longer, and batches `factor` times smaller,
    than at the beginning. With `long_sequence`, this part begins at step `floor(from_fraction * steps)`. As an entry of
    `length_schedule`, this part begins with the step that completes the share `from_fraction` of all steps.
    """

    from_fraction: Share
    """Share of all steps that precede the change of the sequence length."""
    factor: Count
    """Factor by which sequences become longer; `batch_size` must be a multiple of this factor."""


@dataclass(frozen=True, kw_only=True)
class TrainingSettings(Settings):
    """Settings that determine the weights, together with model, seed and text. Both an experiment and the stage
    `pretrain` have these settings.
    """

    steps: Natural = ABSENT
    """Number of optimiser steps; 0 gives an untrained model: random weights, or the weights of the initial model."""
    budget: BudgetSettings | None = None
    """Limit on the words or minutes of training, instead of `steps`. The number of steps is calculated before the first
    step, so schedules cover the whole budget. `null` uses `steps`.
    """
    batch_size: Count
    """Number of sequences per step over all devices; for the task `translation`, the maximum number of target tokens;
    for the task `preference`, the number of pairs.
    """
    sequence_length: Annotated[int, Range(ge=8)] = 128
    """Maximum number of tokens in a sequence, including special tokens such as [CLS] and [SEP]."""
    long_sequence: LongSequenceSettings | None = None
    """Last part of the training, in which sequences are longer and batches are smaller by the same factor. When this
    part begins, the data start again with the first epoch, as in LTG-BERT's code. `null` keeps sequence length and
    batch size constant.
    """
    length_schedule: tuple[LongSequenceSettings, ...] = ()
    """Changes of sequence length and batch size in the order of the steps. At a change, reading continues at the same
    position in the text, unlike with `long_sequence`."""
    initial_batch_fraction: ShareAboveZero = 1.0
    """Size of the first batch as a share of `batch_size`; batches grow linearly to `batch_size` over all steps."""
    weight_average: WeightAverageSettings | None = None
    """Average of the weights that is evaluated and exported instead of the last weights; `null` uses the last weights.
    """
    order: CurriculumSettings | None = omitted_at_default(None)
    """Order of the sequences in an epoch, such as by difficulty; `null` shuffles the sequences in every epoch."""
    objective: ObjectiveSettings = field(default_factory=MaskedSettings)
    """Training objective, which determines how examples are made from the text, and which tokens are predicted."""
    output_bias: OutputBiasSettings = field(default_factory=OutputBiasSettings)
    """Initial bias and initial matrix of the output layer."""
    optimizer: OptimizerSettings = field(default_factory=OptimizerSettings)
    """Optimiser and its hyperparameters."""
    schedule: ScheduleSettings = field(default_factory=ScheduleSettings)
    """Schedule of the learning rate."""
    initialise_from: InitialModelSettings | None = None
    """Model from which training starts; `null` starts from random weights."""
    distillation: DistillationSettings | None = omitted_at_default(None)
    """Distillation from the predictions of finished models; `null` learns only from the labels."""
    early_stopping: EarlyStoppingSettings | None = None
    """Stop training when the score of development text no longer improves. This score is the loss or, for some tasks,
    another measure. `null` trains for all steps.
    """
    keep_training_state: bool = False
    """Keep the training state (weights and optimiser state) with the model, so that another run can continue the
    training (`take: training`). The training state needs about three times the disk space of the model.
    """
    milestones: Annotated[tuple[Count, ...], Unique()] = ()
    """Numbers of the steps after which the model is kept, in addition to the finished model. These milestones can be
    evaluated (`evaluate_milestones`), and can be initial models of other runs (`initialise_from.step`).
    """
    checkpoints_at: Literal["babylm"] | Annotated[tuple[WordCount, ...], Unique()] = ()
    """With a budget in words: numbers of words after which the model is kept, in addition to the finished model.
    `babylm` means every 1M words up to 10M, every 10M up to 100M, and every 100M up to 1000M. The milestone that equals
    the budget is the finished model.
    """
    precision: Literal["auto", "fp32", "bf16", "fp16"] = "auto"
    """Number format of the forward pass; parameters are always fp32. `auto` uses bf16 autocast on GPUs that support
    bf16, and fp32 on all other devices.
    """
    loss_average: Literal["tokens", "processes"] = "tokens"
    """Averaging of the loss. `tokens`: mean over the predicted tokens of the global batch. `processes`: mean of the
    means of all processes, as in LTG-BERT's code.
    """
    divergences: bool = False
    """Log the KL divergences of the predictions from the unigram, the uniform and the empirical distribution."""
    bias_drift: bool = False
    """Log two distances of the output layer's bias: from its initial value, and from the unigram distribution."""
    evaluation_interval_steps: Count = EVALUATION_INTERVAL_STEPS
    """Number of steps between two measurements of the development loss, which is also measured after the last step."""
    evaluation_sequences: Natural = 2048
    """Maximum number of development sequences, or pairs, for the development loss. The masks of these sequences are
    always the same. 0 measures no development loss.
    """

    def __post_init__(self) -> None:
        self._check_budget()
        if self.bias_drift and self.output_bias.kind == "none":
            raise conflict("bias_drift", True, "`output_bias.kind: none`", "the output layer has no bias")
        kinds = self.objective.kinds
        translates = "translation" in kinds
        if not translates and self.output_bias.counts == "larger_corpus":
            raise refused(
                "output_bias.counts",
                self.output_bias.counts,
                "labels or corpus; larger_corpus is allowed only for the task translation",
            )
        for step in self.milestones if self.steps else ():
            if step >= self.steps or step % self.evaluation_interval_steps:
                raise refused(
                    "milestones",
                    step,
                    f"a multiple of `evaluation_interval_steps` ({self.evaluation_interval_steps}) that is less than "
                    f"`steps` ({self.steps})",
                )
        self._check_batches(translates)
        rows = self.objective.rows_of_sequence
        pairs = translates or rows > 1 or getattr(self.objective, "sentence_pairs", "none") != "none"
        if self.learns_from_teachers and pairs:
            expected = (
                "null with task translation, preference or sentence_pairs, because teachers predict tokens of one text"
            )
            raise refused("distillation", self.distillation, expected)
        if self.order is not None and self.order.by == "loss" and rows > 1:
            raise refused("order.by", "loss", "another order with task preference, because a pair has two losses")

    @property
    def learns_from_teachers(self) -> bool:
        """True if the predictions of teachers affect the training."""
        return self.distillation is not None and self.distillation.weight > 0 and self.steps != 0

    @property
    def marks(self) -> tuple[int, ...]:
        """Numbers of words after which a checkpoint is kept as a word milestone, in ascending order."""
        most = self.words_budget
        if most is None or self.steps == 0:
            return ()
        at = BABYLM_MARKS if self.checkpoints_at == "babylm" else sorted(self.checkpoints_at)
        return tuple(words for words in at if words <= most)

    @property
    def words_budget(self) -> int | None:
        """Number of words of the budget; None if the settings contain no budget in words."""
        return None if self.budget is None else self.budget.words

    def with_steps(self, steps: int) -> Self:
        """Return the settings with `steps`, the number of steps that spend the budget, instead of the budget and its
        word milestones.
        """
        return replace(self, steps=steps, budget=None, checkpoints_at=())

    def planned(self) -> Self:
        """Return the settings; without `steps`, an estimated number of steps replaces the budget (`with_steps`)."""
        if self.steps is not ABSENT or self.budget is None:
            return self
        return self.with_steps(self._likely_steps(self.budget))

    def _likely_steps(self, budget: BudgetSettings) -> int:
        if budget.words is None:
            return max(1, round(STEPS_PER_MINUTE * budget.minutes))
        batch = self.batch_size * (1 + self.initial_batch_fraction) / 2
        sequences = self.objective.sequences_of_step(1, self.sequence_length) * self.objective.texts_of_sequence
        tokens_per_step = batch * sequences * self.sequence_length
        return max(1, round(budget.words * TOKENS_PER_WORD / tokens_per_step))

    def _check_budget(self) -> None:
        """Refuse combinations of steps and budget that exclude each other, and word milestones that do not fit the
        budget.
        """
        if self.steps is ABSENT and self.budget is None:
            raise RefusedError("steps", "the key is missing; expected `steps` or a `budget`")
        key = "steps" if self.budget is None else "budget"
        steps = self.steps if self.budget is None else self._likely_steps(self.budget)
        require(steps <= MOST_STEPS, key, steps, f"at most {MOST_STEPS:,} steps")
        if self.steps is not ABSENT and self.steps and self.budget is not None:
            reason = "the budget determines the number of steps; omit `steps`"
            raise conflict("steps", self.steps, "`budget`", reason)
        if self.checkpoints_at and self.words_budget is None:
            expected = "no word milestones, because there is no budget in words; set `budget.words_seen`"
            raise refused("checkpoints_at", self.checkpoints_at, expected)
        if self.checkpoints_at and self.early_stopping is not None:
            reason = "the last word milestone is the end of the training"
            raise conflict("early_stopping", self.early_stopping, "`checkpoints_at`", reason)
        if (most := self.words_budget) is not None and self.steps != 0:
            least = self.objective.sequences_of_step(
                round(self.batch_size * self.initial_batch_fraction), self.sequence_length
            )
            if most < least:
                raise refused(
                    "budget.words_seen", most, f"at least {least:,} words, one word for each sequence of a step"
                )
            first = BABYLM_MARKS[0]
            if self.checkpoints_at == "babylm" and most < first:
                expected = (
                    f"numbers of words up to the budget of {most:,} words: the first number of babylm is {first:,}"
                )
                raise refused("checkpoints_at", self.checkpoints_at, expected)
        if most is not None and self.checkpoints_at != "babylm":
            for words in self.checkpoints_at:
                require(words <= most, "checkpoints_at", words, f"at most the {most:,} words of the budget")
        if self.milestones and self.steps is ABSENT:
            instead = "" if most is None else "; set numbers of words in `checkpoints_at`"
            reason = f"the number of steps is not known before training{instead}"
            raise conflict("milestones", self.milestones, "`budget`", reason)

    def _check_batches(self, translates: bool) -> None:
        """Refuse sequence lengths, batch sizes and data orders that exclude each other."""
        named = {"long_sequence": (self.long_sequence,), "length_schedule": self.length_schedule}
        changes = [(key, change) for key, of_key in named.items() for change in of_key if change is not None]
        if self.long_sequence and self.length_schedule:
            reason = "each of the two keys changes the sequence length"
            raise conflict("length_schedule", self.length_schedule, "`long_sequence`", reason)
        fractions = [change.from_fraction for _, change in changes]
        if fractions != sorted(set(fractions)):
            raise refused("length_schedule", fractions, "different values of `from_fraction` in ascending order")
        if self.order is not None and (translates or self.length_schedule):
            expected = "null, because the task translation and a length_schedule have their own order of the sequences"
            raise refused("order", self.order, expected)
        grows = self.initial_batch_fraction != 1
        for key, change in changes:
            if translates:
                raise refused(
                    key,
                    change,
                    "no change of length with the task translation, because its batches are measured in target tokens",
                )
            if self.batch_size % change.factor:
                raise refused(
                    "batch_size",
                    self.batch_size,
                    f"a multiple of {key}.factor ({change.factor}), so that all steps have the same number of tokens",
                )
        if grows and translates:
            expected = "1 with the task translation, because its batches are measured in target tokens and cannot grow"
            raise refused("initial_batch_fraction", self.initial_batch_fraction, expected)
        kinds, factors = self.objective.kinds, [change.factor for _, change in changes]
        least = math.ceil(len(kinds) * max(factors, default=1) / self.initial_batch_fraction)
        if self.batch_size < least:
            raise refused(
                "batch_size",
                self.batch_size,
                f"at least {least}, because every batch has a sequence of each kind ({', '.join(kinds)})",
            )


@dataclass(frozen=True, kw_only=True)
class PretrainingSettings(TrainingSettings):
    """Pretraining of an experiment's models. A run lists only the keys whose values differ from the experiment's
    values.
    """

    initialise_from: InitialModelChoice | None = None
    """Model from which training starts: a run of this or another experiment, or a folder with a manifest (`path`).
    `null` starts from random weights.
    """
    distillation: DistillationChoice | None = omitted_at_default(None)
    """Distillation from the predictions of finished models of any experiment; `null` learns only from the labels."""
    order: CurriculumChoice | None = omitted_at_default(None)
    """Order of the sequences in an epoch, such as by difficulty; `null` shuffles the sequences in every epoch."""
    ensemble: tuple[ModelChoice, ...] = omitted_at_default(())
    """Finished models with the tokenizer and the objective of this run. The run's model averages their probabilities.
    An ensemble needs `steps: 0`, and `model` must be the model of the first member.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.ensemble:
            return
        require(len(self.ensemble) > 1, "ensemble", f"{len(self.ensemble)} model", "at least two models")
        expected = "no ensemble, or `steps: 0`, because the members of an ensemble are finished models"
        require(self.steps == 0, "ensemble", f"{len(self.ensemble)} models", expected)
        for key in ("initialise_from", "distillation"):
            require(
                getattr(self, key) is None,
                key,
                getattr(self, key),
                "null with `ensemble`, because the members of the ensemble are finished models",
            )


@dataclass(frozen=True, kw_only=True)
class PretrainSettings(TrainingSettings):
    """The settings of a run in the stage `pretrain`, apart from the token shards and the tokenizer.

    A run of 0 steps has only the settings that determine an untrained model.
    """

    batch_size: Count = 1
    """Number of sequences per step over all devices; set for every run with at least one step."""
    model: dict[str, Any]
    """Keys of the model's configuration, except the vocabulary size, which comes from the token shards."""
    seed: Natural
    """Random seed of the weights, the masks, dropout and the data order."""
    ensemble: bool = omitted_at_default(False)
    """The model is an ensemble, the mean of the probabilities of finished models; their manifests are inputs of the
    stage."""

    @property
    def model_values(self) -> dict[str, object]:
        """Fields of the model's configuration, except those that the tokenizer determines."""
        return {
            **self.model,
            "vocabulary_bias": self.output_bias.kind != "none",
            **self.objective.model_values,
        }


def pretrain_settings(settings: Mapping[str, Any]) -> PretrainSettings:
    """Return the typed settings of the `pretrain` stage. Raises ConfigError for an unknown, missing or impossible
    value."""
    return build(PretrainSettings, stage_body(settings), "pretrain")
