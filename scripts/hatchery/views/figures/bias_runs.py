"""Functions for the two figures of the Linguistic Bias Score: they read the runs, and draw the axis and a dot for each
run.

The score is the Matthews correlation with the linguistic label, on the disambiguating rows of an ambiguous task of MSGS
(docs/papers/babylm-evaluation.md, "MSGS"). Every run of a task is shown; no learning rate is selected
(docs/papers/elc-bert.md, "Fine-tuning").

Runs without a score are drawn in a separate column on the left. Overlapping dots are moved apart, perpendicular to the
axis of scores and without randomness.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl
from matplotlib.axes import Axes

from hatchery.analysis.read_tables import read_measurements
from hatchery.analysis.settings import FigureSettings
from hatchery.analysis.task_averages import LINGUISTIC_FEATURES, SURFACE_FEATURES, bias_features
from hatchery.errors import EvaluationError
from hatchery.rendering.drawing import GRID, MUTED
from hatchery.rendering.style import ModelStyle
from hatchery.views.figures.marks import Runs, has_failed, run_mark
from hatchery.views.figures.registry import Tables

METRIC = "mcc_percent"
NO_VALUE = "no\nvalue"
BIAS_LANE = -1.27
BIAS_TICKS = {-1.0: "\N{MINUS SIGN}1", -0.5: "\N{MINUS SIGN}0.5", 0.0: "0", 0.5: "+0.5", 1.0: "+1"}
BIAS_LABEL = "linguistic bias score (\N{MINUS SIGN}1 surface feature, +1 linguistic feature)"


@dataclass(frozen=True)
class BiasTask:
    """An ambiguous task: its suite, its name, and its two features as keys of LINGUISTIC_FEATURES and
    SURFACE_FEATURES.
    """

    suite: str
    task: str
    linguistic: str
    surface: str


BiasRuns = Mapping[BiasTask, Mapping[str, pl.DataFrame]]
"""Measurements of the runs by task and model. Tasks are sorted by suite and then as in ELC-BERT's Figure 3, and models
are in the configuration's order.
"""


def read_bias_runs(settings: FigureSettings, tables: Tables) -> dict[BiasTask, dict[str, pl.DataFrame]]:
    """Return the fine-tuning runs of the experiment by task and model.

    Raises ManifestError for an altered table, and EvaluationError for a task without Matthews correlation.
    """
    found: dict[BiasTask, dict[str, pl.DataFrame]] = {}
    measured = read_measurements(tables["measurements"], settings.runs, "finetuning").filter("main")
    for (suite, task, model), rows in measured.group_by("suite", "task", "model", maintain_order=True):
        if (features := bias_features(str(task))) is not None:
            models = found.setdefault(BiasTask(str(suite), str(task), *features), {})
            models[str(model)] = rows.filter(pl.col("metric") == METRIC)
    for task, models in found.items():
        if lacking := [model for model, runs in models.items() if runs.is_empty()]:
            raise EvaluationError(f"{tables['measurements']}: {lacking[0]}: the metric mcc of {task.task} is missing")
    order = list(found)
    return {task: found[task] for task in sorted(order, key=lambda task: _place(task, order))}


def suites_of(runs: BiasRuns) -> list[str]:
    """Return the suites of the tasks, without duplicates."""
    return list(dict.fromkeys(task.suite for task in runs))


def _place(task: BiasTask, tasks: Sequence[BiasTask]) -> tuple[int, int, int, str]:
    suites = list(dict.fromkeys(other.suite for other in tasks))
    rows, columns = list(LINGUISTIC_FEATURES), list(SURFACE_FEATURES)
    return suites.index(task.suite), rows.index(task.linguistic), columns.index(task.surface), task.task


@dataclass(frozen=True)
class DotScale:
    """Diameter of the dots of runs: `points` in typographic points, `scores` in units of the x axis, `rows` in rows of
    the y axis.

    A dot is at most `limit` rows above or below its model's row.
    """

    points: float
    scores: float
    rows: float
    limit: float


def draw_bias_runs(axes: Axes, runs: Runs, place: float, look: ModelStyle, scale: DotScale) -> None:
    """Draw runs as dots: x is the score as a fraction. y is `place`, the model's row, plus an offset that separates
    overlapping dots.

    Runs without a score are at x = BIAS_LANE.
    """
    values = [BIAS_LANE if value is None else value / 100 for value, _ in runs]
    offsets = swarm_offsets(values, scale.scores, scale.rows, scale.limit)
    for failed in (False, True):
        chosen = [index for index, run in enumerate(runs) if has_failed([run]) == failed]
        if chosen:
            axes.plot(
                [values[index] for index in chosen],
                [place + offsets[index] for index in chosen],
                **run_mark(look, scale.points, failed),
            )


def swarm_offsets(values: Sequence[float], diameter: float, step: float, limit: float) -> list[float]:
    """Return the vertical offset of each value's dot: if several values are in the same bin of width `diameter`, their
    dots alternate above and below the row.

    The distance between neighbouring dots is `step`, or smaller if the dots of a bin would exceed the range from
    -`limit` to `limit`.
    """
    bins = [round(value / diameter) for value in values]
    sizes = Counter(bins)
    used: Counter[int] = Counter()
    offsets = []
    for place in bins:
        # The ranks of the dots in a bin are 0, 1, -1, 2, -2, ...
        rank = (used[place] + 1) // 2 * (1 if used[place] % 2 else -1)
        used[place] += 1
        largest = sizes[place] // 2
        offsets.append(rank * min(step, limit / largest) if largest else 0.0)
    return offsets


def bias_axis(axes: Axes, lane: bool) -> None:
    """Draw an axis of Linguistic Bias Scores from -1 to 1, optionally with a column on the left for runs without a
    score.
    """
    names = list(BIAS_TICKS.values())
    axes.set_xlim(-1.42 if lane else -1.09, 1.09)
    axes.set_xticks([BIAS_LANE, *BIAS_TICKS] if lane else list(BIAS_TICKS), [NO_VALUE, *names] if lane else names)
    if lane:
        axes.axvline(-1.12, color=MUTED, linewidth=0.8, linestyle=":")
    axes.axvline(0.0, color=MUTED, linewidth=0.9, zorder=1)
    for tick in (-1.0, -0.5, 0.5, 1.0):
        axes.axvline(tick, color=GRID, linewidth=0.6, zorder=0)
    axes.tick_params(axis="y", length=0)
