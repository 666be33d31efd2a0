"""Decisions on items, and the resulting accuracies. A decision is the preferred candidate and a credit from 0 to 1; the
suite's rule for ties determines the credit of tied candidates.

Sources: docs/papers/babylm-evaluation.md, "Ties", and docs/papers/babylm-2026.md, "Ties".
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

from hatchery.evaluation.draws import generator
from hatchery.evaluation.metrics.scored import Scored
from hatchery.evaluation.minimal_pairs.items import BY_PAIR, Item
from hatchery.evaluation.minimal_pairs.pairs import positions_by
from hatchery.evaluation.scores import frame_of
from hatchery.evaluation.settings import SuiteSettings
from hatchery.sums import plain_sum

OF_PAIRS = 0.5
"""Accuracy of a blind guess between two sentences, as a fraction."""
Outcome = Literal["correct", "wrong", "tie"]
Level = Literal["paradigm", "phenomenon", "suite"]


@dataclass(frozen=True)
class Accuracy:
    """One row of accuracy.csv: the accuracies, as fractions, of a paradigm, a phenomenon or a suite.

    `accuracy` follows the suite's tie rule (`tie_rule`); `accuracy_ties_correct` counts ties as correct.
    """

    level: Level
    name: str
    pairs: int
    correct: int
    ties: int
    accuracy: float
    accuracy_ties_correct: float
    chance: float = OF_PAIRS
    """The accuracy of a blind guess; accuracy.csv has this column only if some items do not have two candidates."""


def best_candidates(item: Item, scores: Sequence[float]) -> list[int]:
    """Return the indices of the candidates with the highest score, ascending. NaN is the lowest score.

    Rounding could give equal texts different scores. A candidate with the correct candidate's text therefore gets the
    correct candidate's score.
    """
    right = item.candidates[0]
    scores = [-math.inf if math.isnan(score) else score for score in scores]
    values = [scores[0] if one == right else score for one, score in zip(item.candidates, scores, strict=True)]
    highest = max(values)
    return [index for index, value in enumerate(values) if value == highest]


def decide(item: Item, *scores: float) -> Outcome:
    """Return the outcome (correct, wrong or tie) of an item whose candidates have the scores `scores`."""
    best = best_candidates(item, scores)
    return "wrong" if 0 not in best else "correct" if len(best) == 1 else "tie"


@dataclass(frozen=True)
class Decision:
    """The decision on an item: the outcome, the candidate reported as preferred, and the credit (0 to 1)."""

    outcome: Outcome
    chosen: int
    credit: float


TIE_RULES = {
    "wrong": "strict: a tie counts as wrong; accuracy_ties_correct counts it as correct",
    "shared": "shared: if k texts have the highest score and the correct text is one of them, the item counts 1/k",
    "first": "as BabyLM 2025: a tie counts as correct",
    "drawn": "as BabyLM 2026: a tie is decided by a random draw, with a seed here",
    "first_in_row": "of several best texts, the first in the row is preferred",
}
"""Descriptions of the tie rules; manifests contain these descriptions."""


def tie_rule(suite: SuiteSettings) -> str:
    """Return the suite's rule for ties between candidates, a key of TIE_RULES."""
    if suite.edition == 2023:
        return "wrong"
    if suite.ties is not None:
        return suite.ties
    if not suite.official:
        return "shared"
    return "first" if suite.edition == 2025 else "drawn"


def decision(item: Item, scores: Sequence[float], suite: SuiteSettings, unknown: bool = False) -> Decision:
    """Return the decision on an item under its suite's rules.

    If several candidates have the best score, the first of these candidates in the item is preferred. There are two
    exceptions. With the tie rule "first_in_row", the first of these candidates in the file's row is preferred. In
    BabyLM 2026, with any other tie rule, one of these candidates is drawn at random. If `unknown` is true, a text of
    the item contains an unknown token, and the item counts as wrong.
    """
    best, outcome, rule = best_candidates(item, scores), decide(item, *scores), tie_rule(suite)
    chosen = best[0]
    if unknown:
        return Decision("wrong", chosen, 0.0)
    if rule == "first_in_row":
        chosen = min(best, key=lambda candidate: place_in_row(item, candidate))
    elif len(best) > 1 and suite.edition == 2026:
        chosen = best[generator(suite.seed, "ties", item.paradigm, item.item_id).integers(len(best))]
    shares = {"wrong": 0.0, "shared": 1 / len(best), "first": 1.0, "drawn": float(chosen == 0)}
    shares["first_in_row"] = shares["drawn"]
    return Decision(outcome, chosen, {"correct": 1.0, "wrong": 0.0, "tie": shares[rule]}[outcome])


def place_in_row(item: Item, candidate: int) -> int:
    """Return the position, in the file's row, of the candidate with the index `candidate` in the item."""
    if candidate == 0:
        return item.place
    return candidate - 1 if candidate <= item.place else candidate


def accuracy_table(
    pairs: Sequence[Item],
    outcomes: Sequence[Outcome],
    suite: str,
    credits: Sequence[float] | None = None,
    by_split: bool = False,
    by_pair: bool = False,
) -> list[Accuracy]:
    """Return accuracies of every paradigm, every phenomenon and the suite; names are sorted within a level.

    By default, the accuracy of a paradigm or phenomenon is over all its pairs, and the suite has two rows, because
    papers average in two ways. On the same decisions, the two averages may differ by more than a percentage point.
    `<suite>` is the unweighted mean over paradigms (LTG-BERT, 67 paradigms). `<suite>_by_phenomenon` is the unweighted
    mean over phenomena (BabyLM 2023 and ELC-BERT, 12 phenomena). `credits` are the credits (0 to 1) of the decisions on
    `pairs`, by default 1 for a correct decision and 0 for a wrong decision or a tie.

    If `by_split` is true (entity tracking), the accuracy of a phenomenon is the mean over its paradigms, and the rows
    `<suite>` and `<suite>_by_phenomenon` both contain the mean over phenomena. If `by_pair` is true, a third row of the
    suite, `<suite>_by_pair`, weights all pairs equally (lm-evaluation-harness).
    """
    credits = [float(outcome == "correct") for outcome in outcomes] if credits is None else credits
    chances = [1 / len(pair.candidates) for pair in pairs]

    def pooled(level: Level, name: str, positions: Sequence[int]) -> Accuracy:
        parts = ([values[index] for index in positions] for values in (outcomes, credits, chances))
        return _pooled(level, name, *parts)  # type: ignore[arg-type]

    def in_order(names: Iterable[str]) -> list[tuple[str, list[int]]]:
        return sorted(positions_by(names).items())

    paradigms = [pooled("paradigm", *of) for of in in_order(pair.paradigm for pair in pairs)]
    phenomena = [pooled("phenomenon", *of) for of in in_order(pair.phenomenon for pair in pairs)]
    if by_split:
        split_of = {pair.paradigm: pair.phenomenon for pair in pairs}
        cells = {name: [row for row in paradigms if split_of[row.name] == name] for name in split_of.values()}
        phenomena = [_mean("phenomenon", row.name, cells[row.name]) for row in phenomena]
    return [
        *paradigms,
        *phenomena,
        _mean("suite", suite, phenomena if by_split else paradigms),
        _mean("suite", f"{suite}_by_phenomenon", phenomena),
        *([pooled("suite", f"{suite}{BY_PAIR}", range(len(pairs)))] if by_pair else []),
    ]


def _pooled(
    level: Level, name: str, outcomes: Sequence[Outcome], credits: Sequence[float], chances: Sequence[float]
) -> Accuracy:
    n_pairs, correct, ties = len(outcomes), outcomes.count("correct"), outcomes.count("tie")
    shares = math.fsum(credits) / n_pairs, (correct + ties) / n_pairs, math.fsum(chances) / n_pairs
    return Accuracy(level, name, n_pairs, correct, ties, *shares)


def _mean(level: Level, name: str, rows: Sequence[Accuracy]) -> Accuracy:
    return Accuracy(
        level,
        name,
        sum(row.pairs for row in rows),
        sum(row.correct for row in rows),
        sum(row.ties for row in rows),
        plain_sum(row.accuracy for row in rows) / len(rows),
        plain_sum(row.accuracy_ties_correct for row in rows) / len(rows),
        math.fsum(row.chance for row in rows) / len(rows),
    )


def correlation_frame(items: Sequence[Item], scores: Sequence[Sequence[float]]) -> pl.DataFrame:
    """Return the table correlation.csv: for each paradigm, the correlation between people's preferences and the model's
    preferences.

    The value is Spearman's correlation over items. People's preference is the fraction of people who prefer the first
    of two texts. The model's preference is the softmax probability of the first text's score. The value is 0 if either
    preference is equal for all items (WUG, docs/papers/babylm-2026.md, "Zero-shot tasks").
    """
    from hatchery.evaluation.metrics.classification import spearman

    rows = []
    for name, positions in sorted(positions_by(item.paradigm for item in items).items()):
        people = np.array([items[index].preference for index in positions], dtype=np.float64)
        # Rank by the differences of the scores. The softmax of the scores has the same order, but would round different
        # large differences to the same probability.
        model = np.array([scores[index][0] - scores[index][1] for index in positions], dtype=np.float64)
        rows.append((name, len(positions), spearman(Scored(people, model, model[:, None]))))
    return pl.DataFrame(rows, schema=["name", "pairs", "spearman"], orient="row")


def accuracy_frame(table: Sequence[Accuracy]) -> pl.DataFrame:
    """Return the table accuracy.csv: the accuracies of `table` as fractions, the number of pairs, the number of correct
    decisions and the number of ties.

    The column `chance`, the accuracy of a blind guess, is added if the number of candidates is not always two.
    """
    frame = frame_of(table, Accuracy)
    return frame.drop("chance") if all(row.chance == OF_PAIRS for row in table) else frame
