"""The chart of an experiment's averages, drawn in HTML and CSS, with a row for each average and a dot for each model.

Positions of dots, ranges and markers are in percent of a row's width. The chart thus fits every window, follows light
and dark mode, and can be printed. Screen readers read the same numbers in the table below the chart.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from hatchery.analysis.scores import Measure, Scores
from hatchery.analysis.summary_rows import SummaryRow, decimals_of, summarised_text

MOST_MODELS, MOST_LINES = 12, 20
"""MOST_MODELS is the maximum number of models of a chart; pages of larger experiments have no chart. If there are more
than MOST_LINES dots, the dots of an average share one line, and a legend names the models."""
MOST_TICKS = 6
NO_COLOUR = "currentColor"
"""Colour of models without a colour in figures."""


@dataclass(frozen=True)
class Dot:
    """The mean of one model: its label and colour, the mean as text, and positions in percent of the row's width.

    `place` is the position of the mean, `published` is the position of the published mean. `low` and `high` are the
    ends of the error bar: mean minus and plus the standard deviation over runs. For a single run, they are the ends of
    the 95 % confidence interval due to the sampling of the test items. Missing positions are None.
    """

    model: str
    colour: str
    text: str
    place: float
    low: float | None
    high: float | None
    published: float | None


@dataclass(frozen=True)
class ChartRow:
    """A row of the chart: one dot per model for an average over tasks. `guess` is the position of the score of a blind
    guess (a guess without seeing the test items), or None if this score is unknown, differs between models, or is
    outside the axis.
    """

    label: str
    dots: tuple[Dot, ...]
    guess: float | None


@dataclass(frozen=True)
class Panel:
    """Rows of the chart that share an axis; `ticks` are pairs of position and text."""

    rows: tuple[ChartRow, ...]
    ticks: tuple[tuple[float, str], ...]


@dataclass(frozen=True)
class Chart:
    """The panels, and the legend: the colour of each model, by label. The legend is empty if each dot is on a separate
    line.
    """

    panels: tuple[Panel, ...]
    legend: Mapping[str, str]

    @property
    def has_guess(self) -> bool:
        """Return True if a row marks the score of a blind guess (without seeing the test items)."""
        return any(row.guess is not None for panel in self.panels for row in panel.rows)

    @property
    def has_published(self) -> bool:
        """Return True if a published mean is marked."""
        return any(dot.published is not None for panel in self.panels for row in panel.rows for dot in row.dots)


def score_chart(scores: Scores, headline: Sequence[Measure], colours: Mapping[str, str]) -> Chart | None:
    """Return the chart of the averages `headline`. Consecutive averages in percent share one axis, and each other
    average has its own axis.

    `colours` are colours by label of the model. An average with only one model is drawn only if no average has several
    models. Return None if there are no averages, or more than MOST_MODELS models.
    """
    known = [measure for measure in scores.present(headline) if scores.with_means(measure)]
    measures = [measure for measure in known if len(scores.with_means(measure)) > 1] or known
    models = scores.with_numbers(measures)
    if not measures or len(models) > MOST_MODELS:
        return None
    dots = sum(len(scores.with_means(measure)) for measure in measures)
    panels = []
    for (shares, _), group in groupby(enumerate(measures), key=lambda item: _axis(*item)):
        own = [measure for _, measure in group]
        rows = {measure: scores.with_means(measure) for measure in own}
        low, high, ticks = axis(_extent(rows.values(), shares))
        panels.append(
            Panel(
                tuple(_row(scores, measure, rows[measure], colours, (low, high)) for measure in own),
                tuple((_place(tick, low, high), f"{tick:,g}") for tick in ticks),
            )
        )
    labels = map(scores.label, models) if dots > MOST_LINES else ()
    return Chart(tuple(panels), {label: colours.get(label, NO_COLOUR) for label in labels})


def _axis(index: int, measure: Measure) -> tuple[bool, int]:
    """Return a key for grouping: consecutive measures with equal keys share an axis. All measures in percent have the
    same key, and every other measure has a key of its own, which contains its index `index`.
    """
    percent = measure.metric.endswith("_percent")
    return percent, -1 if percent else index


def _extent(rows: Iterable[Mapping[str, SummaryRow]], shares: bool) -> list[float]:
    """Return all values that an axis must contain: the ends of error bars, published means that are compared with our
    means and, on an axis in percent, scores of blind guesses.

    `rows` are summary rows by model, one mapping per average. `shares` is True for an axis in percent.
    """
    found: list[float] = []
    for row in (row for models in rows for row in models.values()):
        assert row.mean is not None
        noise = 0.0 if row.noise == math.inf else row.noise
        found += [row.mean - noise, row.mean + noise]
        found += [value for value in (row.published_mean,) if value is not None and row.verdict]
        found += [row.blind_guess] if shares and row.blind_guess is not None else []
    return [min(max(value, 0.0), 100.0) for value in found] if shares else found


def axis(values: Sequence[float]) -> tuple[float, float, list[float]]:
    """Return (low end, high end, ticks) of an axis that contains all values.

    There are at most MOST_TICKS ticks, the first and last at the ends; their distance is 1, 2 or 5 times 10^k.
    """
    low, high = min(values), max(values)
    span = (high - low) or abs(high) or 1.0
    exponent = math.floor(math.log10(span / (MOST_TICKS - 1)))
    for step in (factor * 10.0**power for power in (exponent, exponent + 1) for factor in (1, 2, 5)):
        first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
        last = max(last, first + 1)
        if last - first < MOST_TICKS:
            break
    return first * step, last * step, [round(number * step, 10) for number in range(first, last + 1)]


def _place(value: float, low: float, high: float) -> float:
    return round(100 * (min(max(value, low), high) - low) / (high - low), 2)


def _row(
    scores: Scores,
    measure: Measure,
    rows: Mapping[str, SummaryRow],
    colours: Mapping[str, str],
    ends: tuple[float, float],
) -> ChartRow:
    guesses = {row.blind_guess for row in rows.values()}
    (guess,) = guesses if len(guesses) == 1 else (None,)
    dots = []
    for model, row in rows.items():
        assert row.mean is not None
        known = row.noise != math.inf and row.noise > 0
        compared = row.published_mean if row.verdict else None
        dots.append(
            Dot(
                scores.label(model),
                colours.get(scores.label(model), NO_COLOUR),
                summarised_text(row.mean, decimals_of(measure.metric)),
                _place(row.mean, *ends),
                _place(row.mean - row.noise, *ends) if known else None,
                _place(row.mean + row.noise, *ends) if known else None,
                None if compared is None else _place(compared, *ends),
            )
        )
    inside = guess is not None and ends[0] <= guess <= ends[1]
    return ChartRow(measure.label, tuple(dots), _place(guess, *ends) if guess is not None and inside else None)
