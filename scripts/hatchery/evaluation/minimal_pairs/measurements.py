"""Rows of `measurements.parquet` for suites of minimal pairs. Fractions are converted to percent."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from hatchery.artifacts.records import Record
from hatchery.errors import EvaluationError
from hatchery.evaluation.basis import basis, shortened
from hatchery.evaluation.evaluation import Evaluated, Level, TidyRow, measured
from hatchery.evaluation.minimal_pairs.items import BY_PAIR
from hatchery.evaluation.settings import is_imported
from hatchery.evaluation.trained_objective import objective_of_model
from hatchery.evaluation.ways_of_scoring import default_way, never_hidden
from hatchery.settings.base import Range, Share

PHENOMENON_AVERAGE = "phenomenon_average"
PARADIGM_AVERAGE = "paradigm_average"
PAIR_AVERAGE = "pair_average"
"""Average, used in the multilingual track, in which all pairs of a suite have equal weights."""
ACCURACY = "accuracy_percent"
ACCURACY_TIES_CORRECT = "accuracy_ties_correct_percent"
AT_BEST_TEMPERATURE = "best_temperature_accuracy_percent"
"""Accuracy at the temperature with the highest accuracy on the test pairs themselves (GPT-BERT): an upper bound, never
comparable with other accuracies."""
ACCURACY_FILE = "accuracy.csv"
BEST_TEMPERATURE_FILE = "accuracy_at_best_temperature.csv"
CORRELATION = "spearman_percent"
"""Correlation with people's preferences, for a suite without right answers (WUG)."""
CORRELATION_FILE = "correlation.csv"
ACCURACY_LEVELS: tuple[Literal["paradigm", "phenomenon", "suite"], ...] = ("paradigm", "phenomenon", "suite")
ACCURACY_COLUMNS = {ACCURACY: "accuracy", ACCURACY_TIES_CORRECT: "accuracy_ties_correct"}


@dataclass(frozen=True)
class _AccuracyRow(Record):
    level: Literal["paradigm", "phenomenon", "suite"]
    name: str
    pairs: int
    accuracy: Share
    accuracy_ties_correct: Share
    # If all items have two candidates, accuracy.csv has no column `chance`. The chance level is then 0.5.
    chance: Share = 0.5


def minimal_pair_rows(evaluated: Evaluated) -> list[TidyRow]:
    """Return rows from `accuracy.csv`, in percent: the accuracy of every paradigm, the accuracy of every phenomenon,
    and averages over the suite.

    Each accuracy is listed twice: with the suite's tie rule, and with ties counted as correct. There are three
    averages. `phenomenon_average` weights phenomena equally (as in the tables of BabyLM 2023). `paradigm_average`
    weights paradigms equally (as in BLiMP's paper, and in Table 8 of the LTG-BERT paper). In the multilingual track,
    `pair_average` weights pairs equally. On the same predictions, these averages may differ by more than a percentage
    point. If the suite was scored with `temperatures`, the accuracies at the best temperature are added once, with the
    suite's tie rule.

    For a suite without correct answers (WUG), return only the correlations of `correlation.csv`, in percent.
    """
    if evaluated.has(CORRELATION_FILE):
        return _correlations(evaluated)
    rows = _rows_of(evaluated, ACCURACY_FILE, ACCURACY_COLUMNS)
    if evaluated.has(BEST_TEMPERATURE_FILE):
        rows += _rows_of(evaluated, BEST_TEMPERATURE_FILE, {AT_BEST_TEMPERATURE: "accuracy"})
    return rows


TENSOR_FLOAT = (
    "matrix products in TensorFloat-32 on GPUs that support it, so a few near-ties may be decided differently"
)
PRECISIONS = {"tf32": TENSOR_FLOAT, "screened": "clear decisions in bf16, all others in fp32"}
"""Note in the column `settings` of accuracies, for precisions other than fp32."""


@dataclass(frozen=True)
class _CorrelationRow(Record):
    name: str
    pairs: int
    spearman: Annotated[float, Range(ge=-1.0, le=1.0)]


def _correlations(evaluated: Evaluated) -> list[TidyRow]:
    settings = str(evaluated.manifest.measures.get("rules", ""))
    rows = []
    for row in evaluated.records(CORRELATION_FILE, _CorrelationRow, ("name",)):
        more = {"items": row.pairs, "blind_guess": 0.0, "settings": settings}
        more["basis"] = basis_of_suite(evaluated, row.pairs)
        rows.append(measured(evaluated.name, row.name, "phenomenon", CORRELATION, 100 * row.spearman, **more))
    return rows


def basis_of_suite(evaluated: Evaluated, items: int) -> str:
    """Return the comparison basis of a suite's accuracies: its items, the scoring method, the rules for scored tokens
    and ties, and the floating-point precision.

    As in papers, accuracies by the pseudo-log-likelihood of a masked model are comparable with accuracies by the
    log-likelihood of a causal model. Any other scoring method, such as `fused`, is comparable only with itself.
    """
    manifest, settings = evaluated.manifest, evaluated.manifest.settings
    if "source" not in manifest.inputs:
        return basis(items=items)
    measures = manifest.measures
    way, rules = measures.get("scoring"), [str(measures.get("rules", "")), str(measures.get("tie_rule", ""))]
    rules += ["by the mean of tokens"] if settings.get("per_token") else []
    own = default_way("causal" if _is_causal(evaluated) else "masked")
    return basis(
        text=shortened(manifest.inputs["source"]),
        items=f"{items} of seed {settings['seed']}" if settings.get("pairs_per_paradigm") else items,
        scoring="own way" if way in (own, *(() if own == "left_to_right" else ("masked", "mntp"))) else way,
        rules=", ".join(filter(None, rules)),
        # The precision `screened` counts as fp32: it makes the same decisions as fp32, unless an error exceeds the
        # measured bound.
        precision="fp32" if settings.get("precision") == "screened" else settings.get("precision"),
    )


def _is_causal(evaluated: Evaluated) -> bool:
    if is_imported(evaluated.model) or "objective" not in evaluated.model.settings:
        return evaluated.manifest.measures.get("architecture") != "masked"
    return objective_of_model(evaluated.model).kinds[0] != "masked"


def _rows_of(evaluated: Evaluated, name: str, columns: Mapping[str, str]) -> list[TidyRow]:
    """Convert the evaluation's table `name` to rows of `measurements.parquet`; `columns` maps each metric to a column
    of the table.
    """
    path = evaluated.manifest.folder / name
    rows = evaluated.records(name, _AccuracyRow, ("level", "name"))
    tidy_rows: list[TidyRow] = []
    measures = evaluated.manifest.measures
    rules = [f"{measures['rules']}; ties {measures['tie_rule']}"] if "rules" in measures else []
    if (note := PRECISIONS.get(evaluated.manifest.settings.get("precision", ""))) is not None:
        rules.append(note)
    if "objective" in evaluated.model.settings:
        loose = never_hidden(str(measures.get("scoring")), objective_of_model(evaluated.model))
        rules += [f"the bound is loose: {loose}"] if loose else []
    settings = "; ".join(rules)

    def add(level: Level, task: str, metric: str, value: float, deviation: float, items: int, chance: float) -> None:
        more = {"sampling_deviation": deviation, "items": items, "blind_guess": 100 * chance, "settings": settings}
        more["basis"] = basis_of_suite(evaluated, items)
        tidy_rows.append(measured(evaluated.name, task, level, metric, value, **more))

    if any(row.pairs == 0 for row in rows):
        raise EvaluationError(f"{path}: got an accuracy over 0 pairs, expected at least 1 pair")
    by_level: dict[str, list[_AccuracyRow]] = {
        level: [row for row in rows if row.level == level] for level in ACCURACY_LEVELS
    }
    for metric, column in columns.items():
        for level in ACCURACY_LEVELS:
            for row in by_level[level]:
                add(level, row.name, metric, *_accuracy(row, column), row.chance)
        for task, averaged in ((PHENOMENON_AVERAGE, "phenomenon"), (PARADIGM_AVERAGE, "paradigm")):
            values = [_accuracy(row, column) for row in by_level[averaged]]
            if not values:
                raise EvaluationError(f"{path}: there is no row of level {averaged}")
            mean = math.fsum(value for value, _, _ in values) / len(values)
            deviation = math.sqrt(math.fsum(deviation**2 for _, deviation, _ in values)) / len(values)
            chance = math.fsum(row.chance for row in by_level[averaged]) / len(values)
            add("average", task, metric, mean, deviation, sum(items for _, _, items in values), chance)
        for row in by_level["suite"]:
            if row.name == f"{evaluated.name}{BY_PAIR}":
                add("average", PAIR_AVERAGE, metric, *_accuracy(row, column), row.chance)
    return tidy_rows


def _accuracy(row: _AccuracyRow, column: str) -> tuple[float, float, int]:
    """Return accuracy and its binomial standard deviation, both in percent, and the number of pairs.

    Two correct and two wrong pairs are added for the deviation (Agresti and Coull, 1998). Otherwise, the deviation
    would be 0 if all pairs are correct.
    """
    accuracy: float = getattr(row, column)
    pairs = row.pairs + 4
    share = (accuracy * row.pairs + 2) / pairs
    return 100 * accuracy, 100 * math.sqrt(share * (1 - share) / pairs), row.pairs
