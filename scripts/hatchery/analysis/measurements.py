"""Held-out loss, and translation scores on development text, measured during pretraining and read from the learning
curve.

Next to each loss is the loss of a blind guess, which ignores its input. All other measurements come from evaluations.
Source of the measures for translation models: "A Natural Bias for Language Generation Models", Sections 4.1 and 4.2.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from hatchery.artifacts.manifests import Manifest
from hatchery.evaluation.basis import asked_of, basis, shortened, window_of
from hatchery.evaluation.evaluation import TidyRow, measured
from hatchery.evaluation.perplexity.measurements import unigram_guess
from hatchery.evaluation.perplexity.rows import BITS_PER_BYTE
from hatchery.training.settings import pretrain_settings
from hatchery.translation.metrics import METRICS, area_under_curve

PRETRAINING_SUITE = "pretraining"
DEVELOPMENT = "development"
PER_TOKEN = ("loss_nats", "perplexity")
DEVELOPMENT_BITS = "development_bits_per_byte"
"""Column of learning curves that is computed here, because `metrics.jsonl` does not contain it."""


def development_measurements(
    curve: Iterable[Mapping[str, Any]], unigram_loss: float | None = None, per_byte: float | None = None
) -> list[TidyRow]:
    """Return rows with the last development loss (nats per predicted token), its perplexity and, if known, its bits per
    byte. Return no rows if the curve has no development loss.

    `curve` contains the rows of `metrics.jsonl`, with bits per byte if known. `unigram_loss` is the loss of the unigram
    distribution in nats, and `per_byte` is the number of predicted tokens per byte.
    """
    evaluated = [row for row in curve if row.get("development_loss") is not None]
    if not evaluated:
        return []
    values = {
        "loss_nats": evaluated[-1]["development_loss"],
        "perplexity": evaluated[-1].get("development_perplexity"),
        BITS_PER_BYTE: evaluated[-1].get(DEVELOPMENT_BITS),
    }
    return [
        measured(
            *(PRETRAINING_SUITE, DEVELOPMENT, "split", metric, value),
            blind_guess=unigram_guess(metric, unigram_loss, per_byte),
        )
        for metric, value in values.items()
        if value is not None
    ]


def development_basis(manifest: Manifest, text: str, metric: str) -> str:
    """Return the comparison basis of a metric that was measured on development text during a training. `manifest` is
    the manifest of this training.
    """
    settings = pretrain_settings(manifest.settings)
    objective = settings.objective
    return basis(
        asked=asked_of(objective),
        # Bits per byte and translation scores measure text, not tokens, so they are comparable across tokenizers.
        tokenizer=shortened(manifest.inputs.get("tokenizer")) if metric in PER_TOKEN else "",
        text=f"{settings.evaluation_sequences} development sequences of {text}",
        window=window_of(objective, settings.sequence_length),
        precision=settings.precision,
        selection="" if settings.early_stopping is None else "training stopped by this text",
    )


def learning_measurements(curve: Iterable[Mapping[str, Any]], alc_steps: int) -> list[TidyRow]:
    """Return the best translation scores on development text, and the areas under the learning curves of these scores.
    The result is empty if there are no translation scores.

    `curve` contains the rows of `metrics.jsonl`. An area covers the first `alc_steps` steps. It exists only if the
    curve has points at step 0 and at or after step `alc_steps`. The column `task` of an area names these steps:
    `first_20000_steps`.
    """
    rows, found = list(curve), []
    for metric in METRICS:
        points = [
            (row["step"], row[f"development_{metric}"]) for row in rows if row.get(f"development_{metric}") is not None
        ]
        values = {(DEVELOPMENT, f"best_{metric}"): max(score for _, score in points)} if points else {}
        if early := _first_steps(points, alc_steps):
            values[early_task(alc_steps), f"alc_{metric}"] = area_under_curve(early)
        found += [measured(PRETRAINING_SUITE, task, "split", name, value) for (task, name), value in values.items()]
    return found


def early_task(steps: int) -> str:
    """Return the value of the column `task` for scores over the first `steps` training steps."""
    return f"first_{steps}_steps"


def _first_steps(points: Iterable[tuple[int, float]], last: int) -> list[tuple[float, float]]:
    """Return the points (step, score) up to step `last`; the score at `last` is interpolated linearly. Return no points
    if the curve does not start at step 0, or ends before step `last`.
    """
    ordered = sorted(points)
    if not ordered or ordered[0][0] > 0 or ordered[-1][0] < last:
        return []
    kept: list[tuple[float, float]] = [point for point in ordered if point[0] <= last]
    if kept[-1][0] < last:
        (before, low), (after, high) = kept[-1], ordered[len(kept)]
        kept.append((last, low + (high - low) * (last - before) / (after - before)))
    return kept
