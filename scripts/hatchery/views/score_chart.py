"""The chart of an experiment's averages: a row for each measure, a dot for each model, drawn by the page itself.

Dots, ranges and marks are placed in percent of the width of their row, so the chart fits every window, follows the
colours of the window's mode, and prints. The table below the chart has the same numbers for screen readers.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from hatchery.analysis.scores import Measure, Scores
from hatchery.analysis.summary_rows import SummaryRow, decimals_of, summarised_text

MOST_MODELS, MOST_LINES = 12, 20
"""An experiment with more models has no chart; its figures show them. With more dots than lines, the dots of a measure
share one line, and a legend names the models."""
MOST_TICKS = 6
NO_COLOUR = "currentColor"
"""Colour of models without a colour in figures."""


@dataclass(frozen=True)
class Dot:
    """One number: the model's name and colour, the mean as text and its place; places are percent of the row.

    `low` and `high` bound the deviation over runs or, for a single run, the 95 % interval over its items; `published`
    is the place of the published mean. A missing value is None.
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
    """The dots of one measure; `guess` is the place of a blind guess, if all models share one."""

    label: str
    dots: tuple[Dot, ...]
    guess: float | None


@dataclass(frozen=True)
class Panel:
    """Rows that share an axis, whose `ticks` are places with their texts."""

    rows: tuple[ChartRow, ...]
    ticks: tuple[tuple[float, str], ...]


@dataclass(frozen=True)
class Chart:
    """The panels, and the legend of a chart whose dots share lines: names and colours of models."""

    panels: tuple[Panel, ...]
    legend: Mapping[str, str]

    @property
    def has_guess(self) -> bool:
        """Return whether a row marks a blind guess."""
        return any(row.guess is not None for panel in self.panels for row in panel.rows)

    @property
    def has_published(self) -> bool:
        """Return whether a dot has a published mean."""
        return any(dot.published is not None for panel in self.panels for row in panel.rows for dot in row.dots)


def score_chart(scores: Scores, headline: Sequence[Measure], colours: Mapping[str, str]) -> Chart | None:
    """Return the chart: percentages share one axis, every other measure has its own.

    `colours` are those of models by label. Measures of a single model are left out if there are others. Return None
    without numbers, and for more than MOST_MODELS models.
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
    """Return whether a measure is in percent, and the index of one that shares no axis."""
    percent = measure.metric.endswith("_percent")
    return percent, -1 if percent else index


def _extent(rows: Iterable[Mapping[str, SummaryRow]], shares: bool) -> list[float]:
    """Return all numbers that an axis must hold: ends of ranges, published means, and guesses among percentages."""
    found: list[float] = []
    for row in (row for models in rows for row in models.values()):
        assert row.mean is not None
        noise = 0.0 if row.noise == math.inf else row.noise
        found += [row.mean - noise, row.mean + noise]
        found += [value for value in (row.published_mean,) if value is not None and row.verdict]
        found += [row.blind_guess] if shares and row.blind_guess is not None else []
    return [min(max(value, 0.0), 100.0) for value in found] if shares else found


def axis(values: Sequence[float]) -> tuple[float, float, list[float]]:
    """Return the ends and the ticks of an axis that holds all values: at most MOST_TICKS ticks, 1, 2 or 5 times 10^k
    apart, of which the first and the last are the ends."""
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
