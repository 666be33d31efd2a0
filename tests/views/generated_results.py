"""The files that an evaluation of each kind would write, with generated numbers."""

import hashlib
import io
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import polars as pl
from measured_experiment import table

from hatchery.analysis.babylm_scores import SUITES, TASKS, RowCount
from hatchery.evaluation.evaluation import Result
from hatchery.evaluation.minimal_pairs.decisions import accuracy_frame, accuracy_table
from hatchery.evaluation.minimal_pairs.items import Candidate, Item
from hatchery.evaluation.minimal_pairs.measurements import BEST_TEMPERATURE_FILE
from hatchery.evaluation.scores import csv_of

CANDIDATES = {"entity_tracking": (5,), "global_piqa": (4, 2)}
"""The numbers of candidates of the items of a format; two if the format is not listed."""
Files = dict[str, str | bytes]
Generated = tuple[Files, dict[str, Any]]
"""The files of an evaluation, and the measures of its manifest."""
PREDICTIONS = "predictions.json"
BINS = (-9.0, -7.5)


def drawn(*names: object) -> float:
    """Return a number from 0.3 to 0.7 that depends on the names alone."""
    return 0.3 + 0.4 * int.from_bytes(hashlib.sha256(repr(names).encode()).digest()[:4]) / 2**32


def items_of(kind: str, paradigms: Iterable[str] = ()) -> list[Item]:
    """Return one item per paradigm, which is its own phenomenon; by default eight items of two phenomena."""
    counts = CANDIDATES.get(kind, (2,))
    names = [(name, name) for name in paradigms] or [(f"p{index % 4}", f"f{index % 2}") for index in range(8)]
    return [
        Item(paradigm, phenomenon, str(index), tuple(map(Candidate, "abcde"[: counts[index % len(counts)]])))
        for index, (paradigm, phenomenon) in enumerate(names)
    ]


@dataclass
class Asked:
    """An evaluation to generate: its settings, the format of its suite, and its paradigms if they are not the default.

    `rows` are the numbers of rows by paradigm or task in the evaluation's block of a submission, if it is submitted.
    """

    result: Result
    settings: dict[str, Any]
    format: str = ""
    paradigms: list[str] = field(default_factory=list)
    rows: dict[str, int] = field(default_factory=dict)
    checkpoints: list[str] = field(default_factory=list)


def block_of(result: Result) -> str:
    """Return the evaluation's block of a submission, for GLUE with the task after a slash; empty if not submitted."""
    if result.kind == "finetuning":
        return next((f"glue/{task}" for task in TASKS if result.name.endswith(f"_{task}")), "")
    if result.kind == "minimal_pairs":
        return next((block for block, suite in SUITES.items() if result.name.endswith(f"_{suite}")), "")
    return result.kind


def predictions(rows: dict[str, int], prediction: str | int) -> str:
    """Return predictions by paradigm or task; each row has its number."""
    numbered = {uid: [{"id": f"{uid}_{row}", "pred": prediction} for row in range(n)] for uid, n in rows.items()}
    return json.dumps({uid: {"predictions": rows} for uid, rows in numbered.items()})


def minimal_pairs(asked: Asked) -> Generated:
    """Return accuracies by paradigm and phenomenon, or correlations with people."""
    result = asked.result
    if asked.format == "wug":
        rows = [(name, 50, drawn(result, name)) for name in ("past", "adjectives")]
        return {"correlation.csv": table(("name", "pairs", "spearman"), rows)}, {}
    items = items_of(asked.format, asked.paradigms)
    outcomes: list[Any] = ["correct" if drawn(result, item.item_id) > 0.45 else "wrong" for item in items]
    accuracies = accuracy_table(items, outcomes, result.name, None, asked.format == "entity_tracking")
    files: Files = {"accuracy.csv": csv_of(accuracy_frame(accuracies))}
    if asked.settings.get("temperatures"):
        files[BEST_TEMPERATURE_FILE] = csv_of(accuracy_frame(accuracies))
    # The file has one prediction per example, but does not number the examples.
    of_examples = {f"example{row}": 1 for row in range(asked.rows.get("", 0))}
    return files | ({PREDICTIONS: predictions(of_examples or asked.rows, "A text.")} if asked.rows else {}), {}


def finetuning(asked: Asked) -> Generated:
    """Return scores for each set, seed and learning rate, and a probe's layer weights."""
    settings, rows = asked.settings, list[Any]()
    task, protocol = settings["task"], settings["protocol"]
    runs = [(seed, rate) for seed in protocol["seeds"] for rate in protocol["learning_rates"]]
    sets = {name: task["metrics"] for name in task["files"] if name != "train"} | {"validation": task["metrics"]}
    sets |= {other["name"]: other["metrics"] for other in settings["transfer"]}
    for name, metrics in sets.items():
        for seed, rate in runs:
            values = {metric: drawn(asked.result, name, seed, rate, metric) for metric in metrics}
            rows += [[name, seed, rate, metric, value, 30, value, ""] for metric, value in values.items()]
    columns = ("rows", "seed", "learning_rate", "metric", "value", "best_step", "development_value", "failed")
    files: Files = {"results.csv": table(columns, rows)}
    if task["head"]["kind"] == "span_classification":
        weights = [(seed, rate, 1, layer, share) for seed, rate in runs for layer, share in enumerate((0.25, 0.75), 1)]
        files["layer_weights.csv"] = table(("seed", "learning_rate", "span", "layer", "weight"), weights)
    if asked.rows:
        files[PREDICTIONS] = predictions(asked.rows, 1)
    measures = {f"scored_{name}": 1000 for name in sets}
    measures |= {"train_rows": 5000, "validation_rows": 1000}
    measures |= {"truncated_train_rows": 50, "truncated_validation_rows": 10}
    return files, measures | {f"majority_accuracy_{name}": 0.25 for name in sets}


def perplexity(asked: Asked) -> Generated:
    """Return the losses of each split, and log-probabilities by frequency if frequency bins are configured."""
    columns = ("split", "sequences", "labelled_tokens", "loss_nats", "perplexity", "accuracy", "pseudo_perplexity")
    losses = {split: 2 + drawn(asked.result, split) for split in asked.settings["splits"]}
    rows = [(split, 10, 150, loss, 2.718281828**loss, 0.5, "") for split, loss in losses.items()]
    files: Files = {"perplexity.csv": table(columns, rows)}
    if asked.settings.get("frequency_bin_nats"):
        measured = ("log_frequency_nats", "log_probability_nats", "log_probability_without_bias_nats")
        slopes = ("frequency_slope", "frequency_slope_without_bias")
        frequencies = [
            (split, low, 50, metric, low + drawn(asked.result, low, metric), 0.1)
            for split in losses
            for low in BINS
            for metric in measured
        ]
        frequencies += [
            (split, "", 100, slope, drawn(asked.result, slope), 0.1) for split in losses for slope in slopes
        ]
        columns = ("split", "lowest", "tokens", "metric", "value", "standard_error")
        files["frequency.csv"] = table(columns, frequencies)
    return files, {}


def surprisal(asked: Asked) -> Generated:
    """Return the surprisals of three words in the sentence that the figure shows."""
    words = ["The", "dog", "barks."]
    columns = {"sentence": [asked.settings["drawn"]] * 3, "position": [1, 2, 3], "word": words}
    columns |= {"surprisal": [10 * drawn(asked.result, word) for word in words]}
    written = io.BytesIO()
    pl.DataFrame(columns).write_parquet(written)
    return {"surprisal.parquet": written.getvalue()}, {"scoring": "left_to_right"}


def translation(asked: Asked) -> Generated:
    """Return BLEU and chrF for each test set."""
    columns = ("test", "corpus", "split", "pairs", "metric", "score", "signature")
    rows = [
        (name, test["corpus"], test["split"], 100, metric, 100 * drawn(asked.result, name, metric), "s")
        for name, test in asked.settings["tests"].items()
        for metric in ("bleu", "chrf")
    ]
    return {"scores.csv": table(columns, rows)}, {}


def reading(asked: Asked) -> Generated:
    """Return the gains of both measures and their mean, and the submitted surprisals."""
    gains = {"spr": drawn(asked.result, "spr") / 10, "rt": drawn(asked.result, "rt") / 10}
    gains["reading"] = sum(gains.values()) / 2
    files: Files = {"scores.csv": table(("outcome", "gain"), list(gains.items()))}
    count = asked.rows.get("reading", 0)
    rows = [{"id": row, "pred": 7.5, "prev_pred": float("nan") if row == 0 else 2.5} for row in range(count)]
    return files | ({PREDICTIONS: json.dumps({"reading": {"predictions": rows}})} if rows else {}), {"words": 99}


def reading_times(asked: Asked) -> Generated:
    """Return the gain for each response, and the perplexity of the read words."""
    response = asked.settings["response"]
    columns = ("response", "rows", "gain_nats", "gain_deviation_nats")
    names = [response] if isinstance(response, str) else response
    rows = [(name, 900, 20 * drawn(asked.result, name), 2.5) for name in names]
    facts = {
        "scoring": "left_to_right",
        "scored_words": 99,
        "perplexity_of_words": 10 + 90 * drawn(asked.result, "words"),
    }
    return {"scores.csv": table(columns, rows)}, facts


def acquisition(asked: Asked) -> Generated:
    """Return the correlation, and the surprisals of all checkpoints."""
    word = {"word_count": 10**6, "target_word": "dog", "context_id": 0, "context": "the", "surprisal": 3.5}
    rows = [{"step": name, **word} for name in asked.checkpoints for _ in range(asked.rows.get("", 1))]
    surprisals = json.dumps({"metadata": {}, "results": rows})
    files: Files = {"surprisal.json": surprisals, "aoa_score.json": '{"aoa": 0.25}', "ages.csv": ""}
    return files, {"aoa": 0.25, "words": 40, "edition": 2026}


GENERATED: dict[str, Callable[[Asked], Generated]] = {
    "minimal_pairs": minimal_pairs,
    "finetuning": finetuning,
    "perplexity": perplexity,
    "surprisal": surprisal,
    "translation": translation,
    "reading": reading,
    "reading_times": reading_times,
    "acquisition": acquisition,
}


def counted(counts: Iterable[RowCount]) -> dict[str, dict[str, int]]:
    """Return numbers of rows by block and paradigm; each GLUE task is a block."""
    found: dict[str, dict[str, int]] = {}
    for count in counts:
        block = {"glue": f"glue/{count.uid}", "aoa_surprisals": "acquisition"}.get(count.block, count.block)
        found.setdefault(block, {})[count.uid] = count.rows
    return found
