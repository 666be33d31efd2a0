"""BabyLM's age of acquisition: when a model learns words, compared with children's ages (docs/papers/babylm-2026.md,
"Age of acquisition").

Two sigmoids are fitted to each word. The first is fitted to the fraction of children who say the word, as a function of
age. The second is fitted to minus the word's surprisal, as a function of the logarithm of the number of words that the
model has read.

The children's age of acquisition is the age at which the first curve reaches 0.5. The model's age of acquisition is the
number of words at which the second curve reaches minus the mean of two surprisals: the surprisal under a uniform
distribution over the vocabulary, and the word's lowest surprisal. The score is the correlation between both ages, over
all words for which both are known.
"""

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from tokenizers import Tokenizer as Backend

from hatchery.evaluation.minimal_pairs.scoring import sentence_scores, token_scores
from hatchery.evaluation.surprisal.reading import Model

Rules = Literal["2025", "2026"]
ACQUIRED = 0.5
"""Share of children who say a word at the word's age of acquisition."""
FEWEST_WORDS, FEWEST_POINTS, LEAST_SIGNIFICANT = 3, 3, 0.1
"""Smallest number of words for a correlation, smallest number of points for a fit, and largest p-value of a significant
correlation.
"""
CHANCE_OF_2025 = math.log2(300_000)
SMALLEST = 1e-6
"""Smallest height and slope of a curve that counts as increasing; a curve with a smaller height or slope counts as
constant.
"""


class Sigmoid(NamedTuple):
    """The curve height / (1 + exp(-slope (x - middle))) + floor."""

    height: float
    slope: float
    middle: float
    floor: float

    def where(self, value: float) -> float | None:
        """Return the x at which the curve reaches `value`; None if the curve never reaches `value`."""
        share = (value - self.floor) / self.height if self.height else math.inf
        if not 0 < share < 1 or not self.slope:
            return None
        return self.middle - math.log(1 / share - 1) / self.slope


class Bounds(NamedTuple):
    """Start values, lower limits and upper limits of the parameters of a fit. If the limits are None, the parameters
    are unlimited.
    """

    start: Sigmoid
    lowest: Sigmoid | None = None
    highest: Sigmoid | None = None


def fit(x: np.ndarray, y: np.ndarray, bounds: Bounds, evaluations: int) -> Sigmoid | None:
    """Return the sigmoid with the least squared error at the points with the coordinates `x` and `y`, two arrays of
    equal length. Return None if the fit fails, for example if it does not converge within `evaluations` evaluations of
    the curve.
    """
    from scipy.optimize import OptimizeWarning, curve_fit

    def curve(at: np.ndarray, height: float, slope: float, middle: float, floor: float) -> np.ndarray:
        return height / (1 + np.exp(-slope * (at - middle))) + floor

    limits = {} if bounds.lowest is None else {"bounds": (bounds.lowest, bounds.highest)}
    try:
        with warnings.catch_warnings(), np.errstate(over="ignore"):
            warnings.simplefilter("ignore", OptimizeWarning)
            found, _ = curve_fit(curve, x, y, p0=bounds.start, maxfev=evaluations, **limits)
    except (RuntimeError, ValueError, TypeError):
        # The fit does not converge, a start value is outside its limits, or there are fewer points than parameters.
        return None
    return Sigmoid(*found.tolist())


def child_age(shares: Mapping[float, float]) -> float | None:
    """Return the age in months at which half of the children say a word. Return None if this age is unknown, or outside
    the ages in `shares`. `shares` is the fraction of children who say the word, by age.
    """
    known = {age: share for age, share in shares.items() if not math.isnan(share)}
    if len(known) < FEWEST_POINTS:
        return None
    ages = np.array(sorted(known))
    bounds = Bounds(
        Sigmoid(1, 0.1, float(ages.mean()), 0),
        Sigmoid(0, 0, float(ages.min()), -0.5),
        Sigmoid(2, 1, float(ages.max()), 0.5),
    )
    curve = fit(ages, np.array([known[age] for age in ages]), bounds, evaluations=1000)
    age = None if curve is None else curve.where(ACQUIRED)
    return age if age is not None and ages.min() <= age <= ages.max() else None


@dataclass(frozen=True)
class Learning:
    """The surprisals of a word during training: `surprisals` maps the number of training words that the model had read
    to the surprisals (nats) of the word, one for each of its contexts.

    `pieces` is the number of tokens that the word adds to a text.
    """

    surprisals: Mapping[int, Sequence[float]]
    pieces: int

    def chance(self, vocabulary_size: int, rules: Rules) -> float:
        """Return the surprisal at chance, in nats: the surprisal of a word of `pieces` tokens under a uniform
        distribution. With BabyLM's rules of 2025, return the constant that BabyLM's code contains.
        """
        return CHANCE_OF_2025 if rules == "2025" else self.pieces * math.log(vocabulary_size)


def model_age(learning: Learning, vocabulary_size: int, rules: Rules = "2026") -> float | None:
    """Return log10 of the number of training words after which a model has acquired a word.

    Return None if this number is unknown, or outside the range of the checkpoints. With BabyLM's rules of 2026, the
    curve is fitted to the mean surprisal at each checkpoint, and a checkpoint with a NaN surprisal is ignored. With the
    rules of 2025, the curve is fitted to all single surprisals that are not NaN.
    """
    if len(learning.surprisals) < FEWEST_POINTS:
        return None
    points = [
        (math.log10(seen + 1), value)
        for seen, values in sorted(learning.surprisals.items())
        for value in ([float(np.mean(values))] if rules == "2026" else values)
    ]
    known = np.array([point for point in points if not math.isnan(point[1])]).reshape(-1, 2)
    if not len(known):
        return None
    x, y = known[:, 0], -known[:, 1]
    low, high = float(y.min()), float(y.max())
    threshold = -(learning.chance(vocabulary_size, rules) - high) / 2
    curve = fit(x, y, *_search(x, low, high, rules))
    if curve is None or curve.height <= SMALLEST or curve.slope <= SMALLEST:
        return None
    at = curve.where(threshold)
    return at if at is not None and x.min() <= at <= x.max() else None


def _search(x: np.ndarray, low: float, high: float, rules: Rules) -> tuple[Bounds, int]:
    """Return the start values and limits for the fit of a model's curve to a word's negative surprisals, and the
    largest number of evaluations of the curve. `x` are the numbers of training words on a log10 scale; `low` and `high`
    are the smallest and the largest negative surprisal.
    """
    span, middle = high - low, float(x.mean())
    start = Sigmoid(span, 1, middle, low)
    if rules == "2025":
        return Bounds(start), 1000
    lowest = Sigmoid(0, 0, float(x.min()) - 1, low - 2 * span - 1)
    highest = Sigmoid(10 * span + 1, 100, float(x.max()) + 1, high + 1)
    return Bounds(start, lowest, highest), 20_000


class Acquisition(NamedTuple):
    """A model's score, its p-value, and the ages of acquisition. The score is the correlation between children's and
    the model's ages of acquisition. The score is 0 if the correlation is not significant or undefined, or if fewer than
    FEWEST_WORDS words have both ages. `p` is None if the correlation is undefined or is not computed because of too few
    words.

    `ages` maps each word to (children's age in months, log10 of the number of words that the model had read).
    """

    score: float
    p: float | None
    ages: Mapping[str, tuple[float, float]]


def acquisition(
    children: Mapping[str, Mapping[float, float]],
    learnt: Mapping[str, Learning],
    vocabulary_size: int,
    rules: Rules = "2026",
) -> Acquisition:
    """Return the score of a model. `children` is the fraction of children who say a word, by word and age; `learnt`
    contains the model's surprisals by word.
    """
    from scipy.stats import pearsonr

    ages = {}
    for word, shares in children.items():
        if word not in learnt:
            continue
        child, model = child_age(shares), model_age(learnt[word], vocabulary_size, rules)
        if child is not None and model is not None:
            ages[word] = child, model
    if len(ages) < FEWEST_WORDS:
        return Acquisition(0.0, None, ages)
    both = np.array(list(ages.values()))
    with warnings.catch_warnings():
        # If all ages are equal, the correlation is undefined. SciPy then warns and returns NaN.
        warnings.simplefilter("ignore")
        score, p = map(float, pearsonr(both[:, 0], both[:, 1]))
    if math.isnan(score):
        return Acquisition(0.0, None, ages)
    return Acquisition(score if p <= LEAST_SIGNIFICANT else 0.0, p, ages)


def added_pieces(backend: Backend, word: str, spaces: bool = True) -> int:
    """Return the number of tokens (at least 1) that a word adds to the text "The", or to "。" if `spaces` is False."""
    texts = ("The", f"The {word}") if spaces else ("。", f"。{word}")
    alone, longer = (len(backend.encode(text, add_special_tokens=False).ids) for text in texts)
    return max(1, longer - alone)


def surprisals_behind(
    model: Model,
    words: Sequence[tuple[str, str]],
    scoring: str = "auto",
    tokens_per_batch: int | None = None,
    spaces: bool = True,
) -> list[float]:
    """Return for each pair (context, word) the surprisal of the word after the context, in nats: the sum over the
    tokens of `<context> <word>` that overlap the word.

    If `spaces` is False, no space separates context and word. The surprisal is NaN for a word without tokens, and for a
    text that is longer than the model's maximum input.
    """
    given = [context.strip() + (" " if spaces else "") for context, _ in words]
    texts = [context + word for context, (_, word) in zip(given, words, strict=True)]
    encoded = model.encode(texts, given=[len(context) for context in given])
    longest = None if model.longest_input is None else model.longest_input - len(model.frame.before + model.frame.after)
    scored = [
        index for index, one in enumerate(encoded) if one.scored > 0 and (longest is None or len(one.ids) <= longest)
    ]
    values = sentence_scores(token_scores(model, [encoded[index] for index in scored], scoring, tokens_per_batch))
    found = dict(zip(scored, (-values).tolist(), strict=True))
    return [found.get(index, math.nan) for index in range(len(words))]
