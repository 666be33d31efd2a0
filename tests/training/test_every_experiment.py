"""Every experiment's models take two training steps, and the heads of its tasks one step, all with tiny sizes.

The settings are those that planning resolves for each run and task. Only numbers are made smaller: widths, layers and
heads, lengths, batches and steps. The text is generated; the code from the batch to the changed weights is that of the
stages. Runs whose reduced settings are equal are trained once.
"""

import copy
import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from head_cases import head_cases
from torch import nn

from hatchery.evaluation.finetuning.loop import build_optimizer as build_finetuning_optimizer
from hatchery.evaluation.tasks.settings import ProtocolSettings
from hatchery.experiment.project import Project
from hatchery.modeling.heads.registry import HEADS, build_task_model
from hatchery.modeling.heads.task_model import HeadContext
from hatchery.modeling.language_model import LanguageModel
from hatchery.tokenization.documents import TRAINING_SPLIT
from hatchery.tokenization.special_tokens import SpecialTokens
from hatchery.training.batches import TrainingBatches
from hatchery.training.curriculum import order_of
from hatchery.training.engine import Engine
from hatchery.training.learning_rates import learning_rate
from hatchery.training.loop import accumulate_gradients
from hatchery.training.objectives import objective_of
from hatchery.training.optimizers import build_optimizer
from hatchery.training.output_prior import prepare_output_
from hatchery.training.precision import resolve_precision
from hatchery.training.run_parts import build_model
from hatchery.training.settings import pretrain_settings
from hatchery.training.step_plan import StepPlan
from hatchery.training.topology import SINGLE_PROCESS
from hatchery.typed import build
from hatchery.workflow.jobs import Jobs

PROJECT = Project(Path(__file__).resolve().parents[2] / "config")
CPU = torch.device("cpu")
# One step has short sequences and, if the length grows, the other has long sequences.
STEPS = 2
WIDTH, VOCABULARY = 16, 100
# These settings control measurement, storage and loading, and do not change a step.
BESIDE_THE_STEP = {
    *("divergences", "bias_drift", "early_stopping", "keep_training_state", "milestones", "initialise_from"),
    *("budget", "checkpoints_at", "weight_average"),
}
# The search for translations, which no step uses.
BESIDE_THE_LOSS = {"search", "development_translations", "early_evaluations"}
# Settings whose different values have the same path through the code.
SAME_WAY = {"num_hidden_layers", "hidden_dropout_prob", "attention_probs_dropout_prob"}
# The first layer mixes only one earlier output, so its weight cannot learn.
NOTHING_TO_LEARN = {"encoder.mixture.layer_weights.0"}


class Trained(NamedTuple):
    """A trained model, with the special tokens of its text."""

    model: LanguageModel
    special: SpecialTokens


def batch_size(settings: Mapping[str, Any]) -> int:
    """Return a batch size with at least one sequence of each kind in the first step and at the last length."""
    return 32 if "length_schedule" in settings else 8


def shrunk(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return a run's settings with tiny sizes; embeddings stay narrower or wider than hidden states, or as wide."""
    model, embedding = dict(settings["model"]), settings["model"].get("embedding_size")
    if embedding is not None:
        wider = (embedding > model["hidden_size"]) - (embedding < model["hidden_size"])
        model["embedding_size"] = WIDTH + 8 * wider
    model |= {"hidden_size": WIDTH, "intermediate_size": 24}
    # Three layers, so that the last layer of ELC-BERT mixes several outputs.
    model["num_hidden_layers"] = min(2 if model["layer_weighting"] == "none" else 3, model["num_hidden_layers"])
    model["num_attention_heads"] = 2
    return {
        **{key: value for key, value in settings.items() if key not in BESIDE_THE_STEP},
        "model": model,
        "objective": {key: value for key, value in settings["objective"].items() if key not in BESIDE_THE_LOSS},
        "steps": min(STEPS, settings["steps"]) if "steps" in settings else STEPS,
        "sequence_length": 16,
        "batch_size": 60 if settings["objective"].get("task") == "translation" else batch_size(settings),
        "evaluation_interval_steps": STEPS,
        "evaluation_sequences": 0,
        "seed": 0,
    }


def way(values: Any, name: str = "") -> Any:
    """Return a key that is equal for settings with the same path through the code: positive numbers are equal, except
    for the width of embeddings."""
    if isinstance(values, Mapping):
        return tuple(sorted((key, way(value, key)) for key, value in values.items() if key not in SAME_WAY))
    if isinstance(values, list):
        return tuple((str(place), way(value)) for place, value in enumerate(values))
    return repr(bool(values) if isinstance(values, int | float) and name != "embedding_size" else values)


def unchanged(model: nn.Module, before: Mapping[str, torch.Tensor]) -> set[str]:
    """Return the names of the unchanged parameters."""
    return {name for name, parameter in model.named_parameters() if torch.equal(parameter, before[name])}


@pytest.fixture(scope="module")
def train(token_data: Any, pair_data: Any, single_process: None) -> Callable[[Mapping[str, Any]], Trained]:
    """Train a model with reduced settings, and check that every parameter has changed; without steps, only build it."""
    kept: dict[Any, Trained] = {}

    def made(values: Mapping[str, Any]) -> Trained:
        settings = pretrain_settings(values)
        objective = objective_of(settings.objective)
        data = pair_data if settings.objective.task == "translation" else token_data
        shards = objective.open(data.tokens, TRAINING_SPLIT)
        model = build_model(settings, shards.vocabulary_size, shards.special)
        examples = partial(objective.examples, shards)
        first = partial(examples, settings.sequence_length)
        prepare_output_(model, settings.output_bias, first, shards, 0, False, objective.target_counts)
        if not settings.steps:
            return Trained(model, shards.special)
        before = copy.deepcopy(model.state_dict())
        batches = TrainingBatches(StepPlan(settings), 0, SINGLE_PROCESS, None, examples, partial(order_of, objective))
        optimizer, precision = build_optimizer(model, settings.optimizer), resolve_precision(settings.precision, CPU)
        with Engine(model, optimizer, settings.optimizer.max_gradient_norm, precision, CPU, SINGLE_PROCESS) as engine:
            for step in range(STEPS):
                skipped = True
                # fp16 skips a step until the loss scale is small enough for the gradients.
                while skipped:
                    rate = learning_rate(settings.optimizer.learning_rate, settings.schedule, step, STEPS)
                    engine.begin_step(0, step, rate)
                    sums = accumulate_gradients(engine, batches.at(step), settings.loss_average, objective)
                    update = engine.step()
                    skipped = update.skipped
                assert bool(sums.isfinite().all()) and bool(update.gradient_norm.isfinite())
        assert unchanged(model, before) <= NOTHING_TO_LEARN
        return Trained(model, shards.special)

    def found(values: Mapping[str, Any]) -> Trained:
        key = way(values)
        if key not in kept:
            kept[key] = made(values)
        return kept[key]

    return found


@pytest.fixture(scope="module")
def tune() -> Callable[[Trained, Mapping[str, Any], ProtocolSettings], None]:
    """Take one step with a task's head and options on a copy of the trained encoder."""
    seen: set[Any] = set()

    def step(trained: Trained, head: Mapping[str, Any], protocol: ProtocolSettings) -> None:
        key = (trained.model.config, trained.special, json.dumps(head, sort_keys=True))
        if key in seen:
            return
        seen.add(key)
        name, options, special = head["kind"], head["options"], trained.special
        ids = torch.randint(len(special.order), VOCABULARY, (3, 12), generator=torch.Generator().manual_seed(7))
        mask = torch.arange(12) < torch.tensor([12, 9, 5])[:, None]
        pad = special.ids[special.pad]
        case = head_cases(ids.where(mask, pad), mask)[name]
        inputs = case.inputs
        if name == "span_classification":
            inputs = {**inputs, "spans": inputs["spans"].repeat(1, options["n_spans"], 1)}
        context = HeadContext(3 if HEADS[name].has_label_set else None, protocol.dropout, 5, pad)
        model = build_task_model(name, copy.deepcopy(trained.model.encoder), context, options).train()
        with torch.no_grad():
            # The study's rectified loss has no gradient at outputs below 0.
            model.output_layer.bias.add_(1.0)
        before = copy.deepcopy(model.state_dict())
        optimizer = build_finetuning_optimizer(model, protocol, protocol.learning_rates[0])
        loss = model.loss(model(**inputs), case.labels).mean
        loss.backward()
        optimizer.step()
        assert bool(loss.isfinite())
        frozen = {name for name, parameter in model.named_parameters() if not parameter.requires_grad}
        assert unchanged(model, before) - frozen <= NOTHING_TO_LEARN

    return step


@pytest.mark.parametrize("experiment", PROJECT.names("experiment"))
def test_every_model_learns_in_its_first_steps_and_every_head_on_it_in_one(
    experiment: str,
    train: Callable[[Mapping[str, Any]], Trained],
    tune: Callable[[Trained, Mapping[str, Any], ProtocolSettings], None],
) -> None:
    tasks = PROJECT.experiment(experiment).finetuning.tasks
    jobs = [json.loads(Jobs(PROJECT).settings("finetune", experiment=experiment, task=task)) for task in tasks]
    heads = [(job["task"]["head"], build(ProtocolSettings, job["protocol"], "protocol")) for job in jobs]
    for run in PROJECT.seeded_runs(experiment):
        settings = json.loads(Jobs(PROJECT).settings("pretrain", experiment=experiment, run=run.name))
        trained = train(shrunk(settings))
        for head, protocol in heads:
            tune(trained, head, protocol)
