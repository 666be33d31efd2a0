"""Could a difference between two models on the same minimal pairs be chance? An exact test over the pairs.

Source: inferred, as no paper tests its differences on minimal pairs; McNemar (1947), which the test is for single runs.
An experiment whose models judge the same pairs has this analysis by itself.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hatchery.analysis.analyses.analysis import MINIMAL_PAIRS, Analysis, AnalysisSettings, Findings, Numbers, Study
from hatchery.analysis.settings import labels_of, models_in_order
from hatchery.errors import ConfigError, EvaluationError
from hatchery.rendering.table import Cell, Column, Content, Group, Table
from hatchery.settings.problems import offered

if TYPE_CHECKING:
    import numpy as np

EVERY_TWO_UP_TO = 4
BEYOND_CHANCE = 0.05


@dataclass(frozen=True, kw_only=True)
class MinimalPairTestsSettings(AnalysisSettings):
    """Which models are compared on the pairs that all of them judged."""

    against: str | None = None
    """The model that all others are compared with, in a study as `experiment/model`; null: every two models, or where
    there are more than four, all others with the first."""


@dataclass(frozen=True)
class _Judged:
    """A model on a suite: whether each of its seeds has a correct answer to each pair, bool [seeds, pairs]."""

    answers: "np.ndarray"

    @property
    def seeds(self) -> int:
        return len(self.answers)

    @property
    def correct(self) -> "np.ndarray":
        """How many seeds have a correct answer, int64 [pairs]."""
        return self.answers.sum(axis=0)

    @property
    def shares(self) -> "np.ndarray":
        return self.correct / self.seeds

    @property
    def deviation(self) -> float | None:
        """Of the accuracy over seeds; None for a single one."""
        return float(self.answers.mean(axis=1).std(ddof=1)) if self.seeds > 1 else None


def check(settings: MinimalPairTestsSettings, study: Study) -> None:
    """Raise ConfigError for a model that there is not."""
    models = models_in_order(study.runs)
    if settings.against is not None and settings.against not in models:
        raise ConfigError(f"against: got {settings.against!r}, no model of these{offered(settings.against, models)}")


def compare(settings: MinimalPairTestsSettings, study: Study) -> Findings:
    """A row for each suite and two models. Raises EvaluationError where models judged other pairs of a suite."""
    from hatchery.rendering.escaping import readable

    rows = [
        row
        for suite, judged in _judged(study).items()
        for model, against in _compared(settings, list(judged))
        for row in [{"suite": suite, "model": model, "against": against, **_row(judged[model], judged[against])}]
    ]
    corrected = holm([row["p_value"] for row in rows])
    rows = [row | {"p_corrected": round(p_value, 6)} for row, p_value in zip(rows, corrected, strict=True)]
    if not rows:
        return Findings(notes=["No two models judged the same minimal pairs."])
    headings = ("accuracy", "of the other", "difference", "95 % interval", "pairs for it", "against it", "p")
    columns = [Column("models", words=True), *map(Column, headings), Column("p, corrected")]
    labels = labels_of(study.runs)
    groups = [
        Group([_line(row, labels) for row in rows if row["suite"] == suite], readable(suite))
        for suite in dict.fromkeys(row["suite"] for row in rows)
    ]
    table = Table(columns, groups, "Differences on the same minimal pairs")
    return Findings(rows, [table], _notes(rows))


def _judged(study: Study) -> dict[str, dict[str, _Judged]]:
    """The models by suite, in the order of the study; models from elsewhere come last."""
    runs = {run.name: run.model for run in study.runs}
    found: dict[str, dict[str, list[Path]]] = {}
    for name, path in study.manifests(MINIMAL_PAIRS).items():
        run, _, suite = name.rpartition(":")
        found.setdefault(suite, {}).setdefault(runs.get(run, run), []).append(path)
    order = models_in_order(study.runs)
    return {
        suite: _read(models, sorted(models, key=lambda model: order.index(model) if model in order else len(order)))
        for suite, models in found.items()
    }


def _read(manifests: Mapping[str, Sequence[Path]], models: Sequence[str]) -> dict[str, _Judged]:
    """The runs of each model on a suite. Raises EvaluationError where one judged other pairs than the first."""
    import numpy as np
    import polars as pl

    from hatchery.artifacts.manifests import read_manifest

    expected, first = None, None
    judged = {}
    for model in models:
        answers = []
        for path in manifests[model]:
            scores = pl.read_parquet(
                read_manifest(path).file("scores.parquet"), columns=["paradigm", "pair_id", "outcome"]
            )
            pairs = scores.drop("outcome")
            if expected is None:
                expected, first = pairs, path
            elif not pairs.equals(expected):
                raise EvaluationError(f"{path}: these are other pairs than those of {first}")
            answers.append((scores["outcome"] == "correct").to_numpy())
        judged[model] = _Judged(np.stack(answers))
    return judged


def _compared(settings: MinimalPairTestsSettings, models: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each model with the one that it is compared with."""
    if settings.against is None and len(models) <= EVERY_TWO_UP_TO:
        yield from ((model, other) for other, model in combinations(models, 2))
        return
    against = settings.against or models[0]
    yield from ((model, against) for model in models if model != against and against in models)


def _row(model: _Judged, against: _Judged) -> Numbers:
    from hatchery.analysis.published_values import combined_deviation
    from hatchery.analysis.summary_rows import NORMAL_95

    differences = model.shares - against.shares
    spread = NORMAL_95 * differences.std() / len(differences) ** 0.5
    over_seeds = combined_deviation(model.deviation, against.deviation, None)
    # Whole numbers, so that equal differences are equal.
    whole = model.correct * against.seeds - against.correct * model.seeds
    percent = {
        "accuracy_percent": model.shares.mean(),
        "against_accuracy_percent": against.shares.mean(),
        "difference": differences.mean(),
        "low": differences.mean() - spread,
        "high": differences.mean() + spread,
    }
    return {
        "pairs": len(differences),
        "seeds": model.seeds,
        "against_seeds": against.seeds,
        **{name: round(100 * float(value), 4) + 0.0 for name, value in percent.items()},
        "deviation_over_seeds": None if over_seeds is None else round(100 * over_seeds, 4),
        "pairs_for": int((whole > 0).sum()),
        "pairs_against": int((whole < 0).sum()),
        "p_value": round(sign_flip_p(whole), 6),
    }


def _line(row: Mapping[str, Any], labels: Mapping[str, str]) -> list[Content]:
    model, against = (labels.get(row[key], row[key]) for key in ("model", "against"))
    over_seeds = row["deviation_over_seeds"]
    beyond = row["p_corrected"] < BEYOND_CHANCE and abs(row["difference"]) > (over_seeds or 0)
    return [
        f"{model} against {against}",
        f"{row['accuracy_percent']:.1f}",
        f"{row['against_accuracy_percent']:.1f}",
        Cell(f"{row['difference']:+.1f}", "" if over_seeds is None else f"{over_seeds:.1f}", bold=beyond),
        f"{row['low']:+.1f} to {row['high']:+.1f}",
        f"{row['pairs_for']:,}",
        f"{row['pairs_against']:,}",
        *(f"{p_value:.3f}" if p_value >= 0.001 else "< 0.001" for p_value in (row["p_value"], row["p_corrected"])),
    ]


def _notes(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    notes = [
        "Accuracy in percent over all pairs of a suite, which count the same; a tie is wrong. The pairs for a model "
        "are those that it has right and the other has not.",
        "p: how often a difference as large would come about if, on every pair, only chance had told which of the two "
        "models is which (exact; McNemar's test). Corrected: for the "
        f"{len(rows)} comparison{'s' if len(rows) > 1 else ''} here (Holm). A difference is bold where that is below "
        f"{BEYOND_CHANCE:g}: beyond the noise of the choice of the pairs.",
        "The test is over pairs, given these trained models. It takes pairs as independent; where many are made from "
        "one template, p is too small.",
    ]
    if any(row["seeds"] == 1 or row["against_seeds"] == 1 for row in rows):
        notes.append("What another seed of pretraining would give is not known of a model with a single one.")
    if any(row["seeds"] > 1 or row["against_seeds"] > 1 for row in rows):
        notes.insert(
            1,
            "Of a model with several pretraining seeds, a pair counts with the share of them that have it right, and "
            "is for the model with the larger share. Behind a difference stands its deviation over seeds, the root of "
            "the sum of squares of those that are known; a difference that is no larger is not bold, whatever its p: "
            "one seed may make it.",
        )
    return notes


def sign_flip_p(differences: "np.ndarray") -> float:
    """Two-sided p of the sum of whole `differences` [n], if each could as well have the other sign; 1 if all are 0.

    Fisher's exact test of paired differences. Where every difference is one or none, as of two models that are right or
    wrong on the same items, it is McNemar's.
    """
    import numpy as np
    from scipy.signal import fftconvolve
    from scipy.stats import binom

    sizes, counts = np.unique(np.abs(differences[differences != 0]), return_counts=True)
    if not len(sizes):
        return 1.0
    # Only the ratios of the sizes count, and smaller ones have fewer sums.
    unit = np.gcd.reduce(sizes)
    # The probability of each sum of those with a positive sign.
    chances = np.ones(1)
    for size, count in zip(sizes // unit, counts, strict=True):
        positive = np.zeros(size * count + 1)
        positive[::size] = binom.pmf(np.arange(count + 1), count, 0.5)
        chances = fftconvolve(chances, positive) if len(chances) > 1 else positive
    sums = 2 * np.arange(len(chances)) - (len(chances) - 1)
    extreme = chances[np.abs(sums) >= abs(int(differences.sum()) // unit)].sum()
    return min(1.0, max(0.0, float(extreme)))


def holm(p_values: Sequence[float]) -> list[float]:
    """The p values, each corrected for all of them, so that any below 0.05 by chance alone has a chance of 0.05.

    Holm (1979), "A Simple Sequentially Rejective Multiple Test Procedure".
    """
    corrected = [0.0] * len(p_values)
    least = 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=lambda index: p_values[index])):
        least = max(least, min(1.0, (len(p_values) - rank) * p_values[place]))
        corrected[place] = least
    return corrected


ANALYSIS = Analysis(
    title="Are differences on minimal pairs beyond chance?",
    version=3,
    settings=MinimalPairTestsSettings,
    run=compare,
    needs=(MINIMAL_PAIRS,),
    check=check,
)
