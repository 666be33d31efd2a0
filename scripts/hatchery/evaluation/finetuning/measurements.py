"""Rows of `measurements.parquet` for scores of fine-tuned models, and rows of `layers.parquet` for layer weights of
probes.

Each job trains on one task and scores the task's first scored set. A job may also score further sets of this task (MNLI
mismatched), or sets of tasks on which the job does not train (HANS). A summary lists each scored set as a task of its
own. Every combination of seed and learning rate is a run. All runs are listed; none is selected as the best run (for
MSGS: docs/papers/elc-bert.md, "Fine-tuning").
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any

from hatchery.artifacts.manifests import Manifest
from hatchery.artifacts.records import Record, Strict, record
from hatchery.errors import EvaluationError, ManifestError
from hatchery.evaluation.basis import basis, digest_of
from hatchery.evaluation.evaluation import Evaluated, TidyRow, measured
from hatchery.evaluation.metrics import Failure
from hatchery.evaluation.tasks.settings import ProtocolSettings
from hatchery.settings.base import Range, Share
from hatchery.typed import build

MAIN_SET = "validation"
RESULTS_FILE, WEIGHTS_FILE = "results.csv", "layer_weights.csv"
# Weights are stored with about seven digits. The sum of a span's weights may differ from 1 by this amount.
SUM_TOLERANCE = 1e-3


@dataclass(frozen=True)
class _Result(Record):
    """A row of `results.csv`; `value` is a fraction or a correlation."""

    rows: str
    seed: int
    learning_rate: float
    metric: str
    value: Annotated[float, Range(ge=-1.0, le=1.0)] | None
    failed: Failure

    @property
    def run(self) -> tuple[str, int, float]:
        """Scored set, seed and learning rate of the row. A failure in one row applies to all rows with these three
        values.
        """
        return self.rows, self.seed, self.learning_rate


@dataclass(frozen=True)
class _ScoredSet:
    """One set of rows on which a job's models are scored. `suite` and `task` are the names in the set's rows, `primary`
    is the first metric of the set's task, and `main` is True for the job's first scored set.
    """

    suite: str
    task: str
    primary: str
    main: bool


@dataclass(frozen=True)
class _Measured(Record):
    """Measurements of one scored set in the manifest of a fine-tuning job.

    `majority_accuracy` is the accuracy of the most frequent label, None for a task without classes; `scored` is the
    number of scored rows, None if the job did not record this number.
    """

    majority_accuracy: Annotated[Share, Strict()] | None
    scored: int | None


def finetuning_rows(evaluated: Evaluated) -> list[TidyRow]:
    """Return one row per scored set, run (seed and learning rate) and metric.

    A classifier that predicts one class for all rows has collapsed, even if one of its metrics is high. Therefore, if
    the table reports a failure for one metric of a run on a scored set, all metrics of this run on this set are
    reported as failed. The values of a collapsed run are still listed; only a diverged run ("nan") has no values. The
    first metric in a task's settings is the task's primary metric.

    Raises EvaluationError naming file and line of a malformed table, EvaluationError for an impossible value among a
    manifest's `measures`, and ManifestError if the manifest's settings lack a required key.
    """
    task, manifest = evaluated.name, evaluated.manifest
    path = manifest.folder / RESULTS_FILE
    rows = evaluated.records(RESULTS_FILE, _Result, ("rows", "seed", "learning_rate", "metric"))
    names = list(dict.fromkeys(row.rows for row in rows))
    if MAIN_SET not in names:
        raise EvaluationError(f"{path}: there is no row of the set {MAIN_SET!r}, only of {', '.join(names)}")
    sets = {name: _scored_set(manifest, task, name) for name in names}
    for name, scored in sets.items():
        if scored.primary not in {row.metric for row in rows if row.rows == name}:
            raise EvaluationError(
                f"{path}: the set {name!r} has no number of the task's first metric, {scored.primary}"
            )
    failures: dict[tuple[str, int, float], str] = {}
    for row in rows:
        if row.failed:
            failures.setdefault(row.run, row.failed)
    measurements, settings = [], settings_text(manifest)
    counted = {name: _measured(manifest, name) for name in names}
    for row in rows:
        scored, failed = sets[row.rows], failures.get(row.run, "")
        blind = _blind_guess(row.metric, counted[row.rows].majority_accuracy)
        value = None if row.value is None or failed == "nan" else 100 * row.value
        if value is None and not failed:
            raise EvaluationError(
                f"{path}: {row.rows}, seed {row.seed}: the value of {row.metric} is missing, expected a value or the "
                "reason why it is missing"
            )
        measurements.append(
            measured(
                *(scored.suite, scored.task, "task", f"{row.metric}_percent", value),
                finetuning_seed=row.seed,
                learning_rate=row.learning_rate,
                failed=failed,
                items=counted[row.rows].scored,
                origin=task,
                main=scored.main,
                primary=row.metric == scored.primary,
                blind_guess=None if blind is None else 100 * blind,
                settings=settings,
                basis=_basis_of_set(manifest, row.rows, counted[row.rows].scored),
            )
        )
    return measurements


def _basis_of_set(manifest: Manifest, rows: str, scored: int | None) -> str:
    """Return the comparison basis of a score on the set `rows`: a text that is equal for comparable scores. It contains
    a digest of the raw data and the number of scored rows. If the protocol follows BabyLM's rules since 2025, the basis
    names these rules. If the set is the task's validation set (MAIN_SET) and the reported model state was selected on
    its rows, the basis states this selection. No other setting of fine-tuning is part of the basis.
    """
    sources = sorted((name, digest) for name, digest in manifest.inputs.items() if name.startswith("source"))
    given: Any = manifest.settings.get("protocol", {})
    edition = given.get("edition", 2023)
    return basis(
        text=digest_of(sources) if sources else "",
        items=scored,
        selection="best on the scored rows" if given.get("selection") == "scored" and rows == MAIN_SET else "",
        rules="" if edition == 2023 else f"BabyLM {edition}{_of_track(given)}",
    )


def _of_track(protocol: Any) -> str:
    """Return the track of a protocol as text for a comparison basis (the conditions under which a score was measured),
    where the text follows the name of BabyLM's rules. If the protocol reproduces the bugs of the track's official
    trainer, the text ends with `with its slips`. Return an empty text for a protocol without a track.
    """
    if protocol.get("track") is None:
        return ""
    return ", multilingual track" + (" with its slips" if protocol.get("official") else "")


SLIPS = (
    "with the bugs of the official trainer: the state after the last epoch is scored, and the last incomplete batch of "
    "8 validation rows is not scored"
)
NO_SLIPS = "without the bugs of the official trainer: all validation rows are scored"
_CHOSEN = {"held_out": "best on held-out training rows", "scored": "best on the scored rows", "last": "last state"}


def settings_text(manifest: Manifest) -> str:
    """Return a description of the fine-tuning settings on which a score depends; empty for a manifest without a
    protocol.
    """
    if "protocol" not in manifest.settings:
        return ""
    given: Any = manifest.settings
    protocol = build(ProtocolSettings, given["protocol"], str(manifest.path))
    head = given["task"].get("head", {})
    # The head of a causal model reads the last token, even if its options name the first token. Therefore the manifest
    # states the pooling. Older manifests have no key `pooling`; for them, the head's options are used.
    pooling: Any = manifest.measures.get("pooling", head.get("options", {}).get("pooling", "first_token"))
    clip = protocol.max_gradient_norm
    parts = [
        f"rules of BabyLM {protocol.edition}{_of_track(given['protocol'])}" if protocol.edition != 2023 else "",
        f"{protocol.epochs} epochs in batches of {protocol.batch_size}",
        f"peak rate {' or '.join(f'{rate:g}' for rate in protocol.learning_rates)}",
        f"{protocol.schedule.replace('_', ' ')} to {protocol.final_fraction:g}, warm-up {protocol.warmup_fraction:g}",
        f"decay {protocol.weight_decay:g} of {protocol.decay}",
        "no clipping" if clip is None else f"gradients clipped at {clip:g}",
        f"dropout {protocol.dropout:g}",
        f"at most {protocol.max_length} tokens",
        pooling.replace("_", " ") if head.get("kind", "sequence_classification") == "sequence_classification" else "",
        "" if protocol.official else _CHOSEN[protocol.selection],
        "" if protocol.track is None else SLIPS if protocol.official else NO_SLIPS,
        f"seeds {', '.join(map(str, protocol.seeds))}",
    ]
    return "; ".join(part for part in parts if part)


def _blind_guess(metric: str, majority_accuracy: float | None) -> float | None:
    """Return the value of a metric for a model that always predicts the most frequent label, as a fraction; None if the
    value is unknown.

    `majority_accuracy` is the accuracy of the most frequent label.
    """
    return {"accuracy": majority_accuracy, "mcc": 0.0}.get(metric)


def with_distinct_tasks(measurements: Iterable[TidyRow]) -> list[TidyRow]:
    """Return the measurements with unique task names.

    Models fine-tuned on different tasks may be scored on the same task. Then a suffix of the scored task's name is the
    name of the fine-tuning task. For example, HANS scored by the models of two MNLI protocols becomes
    `hans_from_glue_mnli` and `hans_from_babylm_mnli`. The name has no suffix for the fine-tuning task's own validation
    set.
    """
    measurements = list(measurements)
    origins: dict[tuple[str, str], set[str]] = {}
    for run in measurements:
        origins.setdefault((run["suite"], run["task"]), set()).add(run["origin"])
    return [
        run
        if run["main"] or len(origins[run["suite"], run["task"]]) == 1
        else run | {"task": f"{run['task']}_from_{run['origin']}"}
        for run in measurements
    ]


def _scored_set(manifest: Manifest, task: str, rows: str) -> _ScoredSet:
    settings = manifest.settings
    transferred: list[Any] = settings.get("transfer") or []
    try:
        for other in transferred:
            if other["name"] == rows:
                return _ScoredSet(str(other["suite"]), rows, str(other["metrics"][0]), main=False)
        own = settings["task"]
        suite, primary = str(own["suite"]), str(own["metrics"][0])
    except (KeyError, IndexError, TypeError) as error:
        raise ManifestError(f"{manifest.path}: the settings of a task lack its name, suite or metrics") from error
    main = rows == MAIN_SET
    return _ScoredSet(suite, task if main else f"{task}_{rows}", primary, main)


def _measured(manifest: Manifest, rows: str) -> _Measured:
    measures = {name: manifest.measures.get(f"{name}_{rows}") for name in ("majority_accuracy", "scored")}
    return record(_Measured, measures, f"{manifest.path}: measures of {rows}")


@dataclass(frozen=True)
class _Weight(Record):
    """A row of `layer_weights.csv`: the weight of one layer in a probe."""

    seed: int
    learning_rate: float
    span: str
    layer: int
    weight: Share


def probe_rows(evaluated: Evaluated) -> list[TidyRow]:
    """Return rows of `layers.parquet`: the softmax weights of every probe (one probe per seed and learning rate) by
    span and layer.

    Return no rows for a task without probes. Raises EvaluationError naming the file if a layer is missing or the
    weights of a span do not sum to 1.
    """
    if not evaluated.has(WEIGHTS_FILE):
        return []
    path = evaluated.manifest.folder / WEIGHTS_FILE
    mixes: dict[tuple[int, float, str], dict[int, float]] = {}
    for row in evaluated.records(WEIGHTS_FILE, _Weight, ("seed", "learning_rate", "span", "layer")):
        mixes.setdefault((row.seed, row.learning_rate, row.span), {})[row.layer] = row.weight
    layers = list(range(1, len(next(iter(mixes.values()))) + 1))
    rows = []
    for (seed, rate, span), mix in mixes.items():
        where = f"{path}: seed {seed}, learning rate {rate:g}, span {span}"
        if sorted(mix) != layers:
            raise EvaluationError(
                f"{where}: got the layers {sorted(mix)}, expected 1 to {len(layers)}, each layer once"
            )
        if abs(math.fsum(mix.values()) - 1) > SUM_TOLERANCE:
            raise EvaluationError(f"{where}: the weights sum to {math.fsum(mix.values()):.4f}, expected 1")
        same = {"quantity": "probe_share", "depth": len(layers), "task": evaluated.name}
        same |= {"finetuning_seed": seed, "learning_rate": rate, "span": span}
        rows += [same | {"layer": layer, "value": mix[layer]} for layer in layers]
    return rows
