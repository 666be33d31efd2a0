"""Rows of the tidy tables for one pretraining: model sizes and losses, learning curve, and layer weights.

Duration and date are read from `provenance.json`. All other values come from the manifest of the stage `pretrain`, or
from outputs that this manifest lists.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, make_dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from annotated_types import MinLen

from hatchery.analysis.read_tables import LayerWeights
from hatchery.analysis.tidy_tables import CURVES, RUNS
from hatchery.artifacts.manifests import Manifest, volatile_facts
from hatchery.artifacts.records import Record, json_record, json_records
from hatchery.errors import EvaluationError, HatcheryError
from hatchery.evaluation.evaluation import TidyRow
from hatchery.modeling.configuration import UNRESTRICTED, ModelConfig
from hatchery.modeling.families import model_config, teaching_flops_per_sequence, training_flops_per_sequence
from hatchery.settings.fields import ABSENT
from hatchery.training.milestones import step_name
from hatchery.training.settings import pretrain_settings
from hatchery.training.step_plan import StepPlan

METRICS_FILE = "metrics.jsonl"
LAYER_WEIGHTS_FILE = "layer_weights.json"
CONFIG_FILE = "config.json"


_MEASURED = [column for column in CURVES.columns if column.kind in ("integer", "number") and column.name != "seed"]
# A row of `metrics.jsonl`, with the numeric columns of the table of curves. Every row contains `step` and `tokens`;
# every other column may be missing.
_MetricRow: type[Record] = make_dataclass(
    "_MetricRow",
    [
        *((name, int) for name in ("step", "tokens")),
        *((column.name, float | None, None) for column in _MEASURED if column.name not in ("step", "tokens")),
    ],
    bases=(Record,),
    frozen=True,
)


@dataclass(frozen=True)
class _Weight(Record):
    consuming_layer: int
    producing_layer: int
    scaled_weight: float


@dataclass(frozen=True)
class _Weights(Record):
    rows: Annotated[tuple[_Weight, ...], MinLen(1)]


@dataclass(frozen=True)
class _Config(Record):
    num_hidden_layers: int
    layer_weighting: str


def metric_rows(manifest: Manifest) -> list[TidyRow]:
    """Return the rows of `metrics.jsonl`, with the numeric columns of `CURVES`; other keys are ignored, and missing
    values are None. The list is empty if the file has no lines.

    Raises EvaluationError, naming file and line, if a row is not an object of finite numbers or if a step is repeated.
    """
    return [dict(vars(row)) for row in json_records(manifest.file(METRICS_FILE), _MetricRow, "step")]


def read_layer_weights(manifest: Manifest) -> LayerWeights:
    """Return the layer weights of a model, read from `config.json` and, if the model has layer weighting, from
    `layer_weights.json`.

    Return no weights if the model's weights combine blocks instead of layers, as in GPT-BERT. Raises EvaluationError,
    naming the file, for an invalid file, or if the weight of a pair of layers is missing or not expected.
    """
    config = json_record(manifest.file(CONFIG_FILE), _Config)
    layers = config.num_hidden_layers
    if config.layer_weighting == "none":
        return LayerWeights(layers, True, dict.fromkeys(_pairs(layers), 1.0))
    if config.layer_weighting == UNRESTRICTED:
        return LayerWeights(layers, False, {})
    path = manifest.file(LAYER_WEIGHTS_FILE)
    scaled = {(row.consuming_layer, row.producing_layer): row.scaled_weight for row in json_record(path, _Weights).rows}
    expected = _pairs(layers + 1 if (layers + 1, 0) in scaled else layers)
    for consumer, producer in sorted(scaled.keys() ^ set(expected)):
        fault = "is not expected" if (consumer, producer) in scaled else "is missing"
        raise EvaluationError(
            f"{path}: the weight with which layer {consumer} reads the output of layer {producer} {fault}"
        )
    return LayerWeights(layers, False, scaled)


def _pairs(consumers: int) -> list[tuple[int, int]]:
    """Return all pairs (n, i), sorted: layer n reads the output of the earlier layer i (0: the embedding). `consumers`
    is the number of layers that read outputs of other layers.
    """
    return [(n, i) for n in range(1, consumers + 1) for i in range(n)]


@dataclass(frozen=True)
class PretrainedRun:
    """A pretraining in the tidy tables: its row in `RUNS`, and its rows in `CURVES` and `LAYERS`. The rows lack the
    columns that identify the run, such as `experiment` and `run`.
    """

    facts: TidyRow
    curve: list[TidyRow]
    layers: list[TidyRow]
    milestones: dict[str, TidyRow]
    """Columns of `RUNS` for each intermediate checkpoint, by the name of its folder."""
    taken: tuple[str, str] | None
    """Manifest and folder name of the intermediate checkpoint, if this run only consists of an intermediate checkpoint
    of another run; otherwise None.
    """


def pretrained_run(manifest: Manifest) -> PretrainedRun:
    """Return the rows of the pretraining whose manifest is given. Raises EvaluationError for an invalid output of the
    pretraining, and ManifestError for an altered output.
    """
    rows = metric_rows(manifest)
    settings, measures = pretrain_settings(manifest.settings), manifest.measures
    if settings.budget is not None and settings.steps is ABSENT:
        settings = settings.with_steps(int(measures["planned_steps"]))
    path = manifest.file(CONFIG_FILE)
    model, config = _model(path)
    plan = StepPlan(settings)
    flops = _flops_after(plan, model, config, _teachers(measures))
    columns = set(CURVES.names)
    curve = [
        {name: value for name, value in row.items() if name in columns} | {"flops": flops(int(row["step"]))}
        for row in rows
    ]
    weights = read_layer_weights(manifest)
    initial = measures.get("initial_model") or {}
    volatile = volatile_facts(manifest.path)

    def seen(steps: int, tokens: int, words: float | None) -> TidyRow:
        words = None if words is None else int(words)
        return {"steps": steps, "tokens": tokens, "words": words, "training_flops": flops(steps)}

    losses = ("loss", "development_loss", "development_perplexity")
    facts = {
        "parameters": measures["parameters"],
        "layers": weights.layers,
        **_sizes(config),
        **_sequences(plan, int(measures["steps"])),
        **seen(int(measures["steps"]), int(measures["tokens"]), measures.get("words")),
        "planned_steps": settings.steps,
        **{name: next((row[name] for row in reversed(curve) if row.get(name) is not None), None) for name in losses},
        "initial": initial.get("take", ""),
        "earlier_steps": initial.get("earlier_steps"),
        "earlier_tokens": initial.get("earlier_tokens"),
        "seconds": volatile.get("training_seconds"),
        "day": str(volatile["started"])[:10] if "started" in volatile else None,
        "manifest": manifest.digest,
    }
    kept = {step_name(step): step for step in settings.milestones}
    kept |= {name: mark["step"] for name, mark in measures.get("marks", {}).items()}
    by_step = {row["step"]: row for row in curve}
    milestones = {
        name: facts
        | _sequences(plan, step)
        | seen(step, by_step[step]["tokens"], by_step[step]["words"])
        | {name: by_step[step][name] for name in losses}
        for name, step in kept.items()
        if step in by_step
    }
    start = settings.initialise_from
    taken = None
    if start is not None and start.step is not None and not settings.steps:
        taken = (manifest.inputs["initial_model"], step_name(start.step))
    quantity = "unit_weight" if weights.plain else "layer_weight"
    same = {"quantity": quantity, "depth": weights.layers, "task": "", "span": ""}
    layers = [
        same | {"consumer": consumer, "layer": layer, "value": value}
        for (consumer, layer), value in weights.scaled.items()
    ]
    return PretrainedRun(facts, curve, layers, milestones, taken)


def imported_run(manifest: Manifest) -> TidyRow:
    """Return an external model's row in the table `RUNS`. The row contains the model's sizes, but no columns about its
    training.
    """
    measured = {name: manifest.measures[name] for name in RUNS.names if name in manifest.measures}
    return measured | {"initial": "", "manifest": manifest.digest}


def _model(path: Path) -> tuple[Mapping[str, object], ModelConfig]:
    """Read a model's configuration file. Return the keys of the file without `vocab_size`, and the configuration
    object.
    """
    try:
        values = json.loads(path.read_bytes())
        # The configuration file contains the key `causal` (`modeling.store.description`), but the configuration class
        # has no field `causal`.
        values.pop("causal", None)
        return {name: value for name, value in values.items() if name != "vocab_size"}, model_config(values)
    except (OSError, ValueError, TypeError, AttributeError, HatcheryError) as error:
        raise EvaluationError(f"{path}: not the configuration of a model: {type(error).__name__}: {error}") from error


def _sizes(config: ModelConfig) -> TidyRow:
    return {
        "embedding_size": config.embedding_width,
        "hidden_size": config.hidden_size,
        "intermediate_size": config.intermediate_size,
        "attention_heads": config.num_attention_heads,
        "vocabulary_rows": config.vocabulary_rows,
        "tied": config.tie_word_embeddings,
    }


def _sequences(plan: StepPlan, steps: int) -> dict[str, int | None]:
    """Return the number of training sequences in the first `steps` steps, and the sequence length (None if it changes
    during training).
    """
    length = plan.lengths[0] if len(plan.lengths) == 1 else None
    return {"sequence_length": length, "sequences": round(plan.sequences(0, steps))}


def _teachers(measures: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the configurations of the teachers (distillation), given the measures in the manifest of the run. The
    configurations lack `vocab_size` and `sentence_pair_head`.
    """
    excluded = ("vocab_size", "sentence_pair_head")
    return [{key: one[key] for key in one if key not in excluded} for one in measures.get("teachers", ())]


def _flops_after(
    plan: StepPlan, model: Mapping[str, Any], config: ModelConfig, teachers: Sequence[Mapping[str, Any]]
) -> Callable[[int], float]:
    """Return a function that returns the training FLOPs of the first n steps, given n.

    FLOPs include forward and backward passes of the model and forward passes of the teachers. Every sequence counts as
    if it had the maximum sequence length of its step.
    """

    @cache
    def per_sequence(length: int, labelled_share: float) -> float:
        taught = teaching_flops_per_sequence(teachers, config.vocab_size, length, labelled_share)
        return training_flops_per_sequence(model, config.vocab_size, length, labelled_share) + taught

    return lambda step: plan.flops(per_sequence, 0, step)
