"""One run in one process: build model, batches, progress record and watchers from settings and inputs, and train.

Every process of a run calls `train_run`; only the first process has the right to write into the run folder.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch.distributed
from torch import Tensor

from hatchery.artifacts.manifests import read_manifest
from hatchery.corpora.word_counting import word_count_of
from hatchery.errors import ConfigError
from hatchery.modeling.language_model import LanguageModel
from hatchery.tokenization.documents import TRAINING_SPLIT
from hatchery.training.compilation import COMPILATION_TAKES, Compilation, compilation_of_run
from hatchery.training.continuation import initial_checkpoint, initial_position, words_before
from hatchery.training.distillation import distilled
from hatchery.training.early_stopping import EarlyStopping
from hatchery.training.engine import Engine
from hatchery.training.inputs import Inputs
from hatchery.training.loop import train
from hatchery.training.measured_difficulty import measure_of
from hatchery.training.objectives import objective_of
from hatchery.training.optimizers import build_optimizer
from hatchery.training.own_model import OwnModel
from hatchery.training.precision import Precision, resolve_precision, slow_arithmetic
from hatchery.training.processes import prepare_device, process_group, select_device
from hatchery.training.record import RunRecord
from hatchery.training.run_folder import RunLease
from hatchery.training.run_parts import NOTHING_GIVEN, Given, RunParts
from hatchery.training.runtime_settings import RuntimeSettings
from hatchery.training.settings import PretrainSettings
from hatchery.training.topology import Topology
from hatchery.training.watchers import Watcher
from hatchery.training.weight_average import WeightAverage
from hatchery.training.word_budget import Spending, most_words, spend

# Folder, next to the exported model, for the files of sinks (metric trackers such as TensorBoard).
SINKS_FOLDER = "sinks"


@dataclass(frozen=True)
class Trained:
    """The result of a run, in each process."""

    model: LanguageModel | OwnModel
    record: RunRecord
    # Norms and divergences of the output layer at step 0; empty unless the settings need or request these measures.
    output_layer: dict[str, float]
    # Measures of the training examples that the objective reports, for the manifest.
    examples: Mapping[str, Any] = field(default_factory=dict)
    # Seconds for which training waited for batches.
    loader_wait_seconds: float = 0.0
    # Watchers from the settings, followed by the caller's watchers.
    watchers: Sequence[Watcher] = ()
    compilation: Compilation = "off"

    @property
    def stopping(self) -> EarlyStopping | None:
        """Watcher for early stopping; None without early stopping."""
        return next((each for each in self.watchers if isinstance(each, EarlyStopping)), None)

    @property
    def raw_weights(self) -> Mapping[str, Tensor]:
        """Weights of the last step, if averaged weights are exported and `keep_raw_weights` is set; otherwise empty."""
        return next((each.raw for each in self.watchers if isinstance(each, WeightAverage)), {})


def train_run(
    settings: PretrainSettings,
    options: RuntimeSettings,
    inputs: Inputs,
    topology: Topology,
    store: torch.distributed.Store,
    folder: Path,
    output: Path,
    name: str,
    lease: RunLease | None = None,
    kept_steps: Collection[int] = (),
    given: Given = NOTHING_GIVEN,
) -> Trained:
    """Train a run in this process, from its inputs to its last step; only the first process writes into `folder`.

    The processes connect through `store`; `lease` is the first process's right to write into `folder`. The run keeps
    the checkpoints at the milestones in the settings, and at the steps `kept_steps` (steps of the word milestones).
    `given` contains the caller's module and watchers. Raises ConfigError, TrainingError, and TrainingInterrupted after
    saving a checkpoint.
    """
    parts = RunParts(settings, options, inputs, topology, name)
    model, start = parts.model() if given.model is None else (parts.own_model(given.model), {})
    device = select_device(options.device, topology)
    precision = resolve_precision(settings.precision, device)
    if slow := slow_arithmetic(precision, device):
        parts.say(slow)
    compilation = compilation_of_run(options.compile, device, settings.steps, options.zero_stage)
    record = parts.record(
        folder, output.parent / SINKS_FOLDER, device, precision, lease, kept_steps, given.model is None
    )
    if settings.steps == 0:
        return Trained(model, record, start)
    _require_sharing(options.zero_stage, precision)
    prepare_device(device, options.threads, compilation != "off")
    if compilation != "off":
        parts.say(COMPILATION_TAKES)
    loader, examples = parts.batches(device)
    watchers = (*parts.watchers(model, kept_steps), *given.watchers)
    continued = None
    if settings.initialise_from is not None and settings.initialise_from.take == "training" and inputs.initial:
        continued = initial_checkpoint(inputs.initial)
    objective = distilled(parts.objective, settings, inputs, device, precision)
    with process_group(topology, device, store, options.zero_stage > 0):
        model.to(device)
        # Parameter groups depend on parameter names, so a caller's module is used without the prefix that `OwnModel`
        # adds.
        named = model.module if isinstance(model, OwnModel) else model
        optimizer = build_optimizer(named, settings.optimizer)
        # The weights are loaded before DeepSpeed starts, because DeepSpeed then sends the first process's parameters to
        # all other processes.
        record.resume(model, optimizer, precision, watchers, continued)
        clip = settings.optimizer.max_gradient_norm
        chosen = compilation != "off", options.zero_stage, options.activation_checkpointing
        with Engine(model, optimizer, clip, precision, device, topology, *chosen) as engine:
            train(objective, engine, loader, record, watchers, parts.stop_request(device, lease))
    for watcher in watchers:
        watcher.finish(model)
    measures = parts.objective.measures(examples)
    return Trained(model, record, start, measures, loader.waited_seconds, watchers, compilation)


def _require_sharing(stage: int, precision: Precision) -> None:
    """Raise ConfigError for fp16 above ZeRO stage 0."""
    if stage > 0 and precision.scaler is not None:
        raise ConfigError(
            f"runtime.zero_stage: got {stage}, only 0 is possible in fp16, whose loss scale needs unsharded gradients; "
            "expected precision bf16 or fp32"
        )


def spent_budget(settings: PretrainSettings, inputs: Inputs) -> Spending:
    """Return the number of steps that spend the run's word budget, and the word milestones.

    Raises ConfigError if words were not counted, if the initial model and the text count words by different rules, and
    for the reasons that `most_words` and `spend` state.
    """
    assert settings.budget is not None
    objective = objective_of(settings.objective)
    shards = objective.open(inputs.tokens, TRAINING_SPLIT)
    before = words_before(settings, inputs.initial)
    if not shards.text_words or before is None:
        uncounted = inputs.initial if shards.text_words else inputs.tokens
        raise ConfigError(
            f"pretraining.budget: {uncounted} contains no count of words, which a budget needs; make this result "
            "again, or set `steps`"
        )
    if inputs.initial is not None:
        rule = word_count_of(read_manifest(inputs.initial).measures)
        if rule != shards.word_count:
            raise ConfigError(
                f"pretraining.budget: the corpus of the initial model {inputs.initial} counts words by the rule {rule}"
                f", and the corpus of this run counts words by the rule {shards.word_count}; set the same `word_count` "
                "in both corpora, or set `steps`"
            )
    most, first = most_words(settings.budget, shards.text_words, shards.text_bytes), 0
    if settings.initialise_from is not None and settings.initialise_from.take == "training" and inputs.initial:
        done = initial_position(inputs.initial)
        first, before = done.step, before + (done.words or 0)
    return spend(
        settings,
        objective,
        partial(objective.examples, shards),
        most,
        before,
        first,
        measure_of(settings.order, inputs),
    )
