"""Learning curves: training and development loss of each model against the number of tokens that the model has seen.

The training loss of single steps is noisy. Steps are therefore grouped into at most 200 equal intervals, and the mean
of each interval is drawn. Development losses are drawn as measured. A model with several pretraining seeds is one line,
the mean over seeds, with a band for the spread.
"""

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator

from hatchery.analysis.read_tables import CurvePoint, read_curves, read_runs
from hatchery.analysis.settings import (
    FigureSettings,
    models_in_order,
    models_with_counts,
)
from hatchery.evaluation.basis import differing
from hatchery.rendering.drawing import (
    MUTED,
    Keywords,
    abbreviated,
    is_narrow,
    legend_below,
    legend_columns,
    line_handles,
    no_measurements,
    wrapped,
)
from hatchery.rendering.escaping import readable
from hatchery.views.figures.marks import Point, draw_band, point_of
from hatchery.views.figures.registry import Declaration, Tables

FIGURE = Declaration(
    title="Learning curves",
    needs=("curves", "runs"),
    by_set=True,
    version=1,
    caption="Loss per predicted token against the number of tokens seen: training loss, and development loss, "
    "measured on the same sequences at each evaluation. A line is the mean over pretraining seeds, "
    "and its band is the standard deviation.",
    explanation="""
There is one line per model, the mean over its pretraining seeds. The legend gives the number of seeds, and the band is
their sample standard deviation. Where some seeds ended earlier, the mean is over the remaining seeds. Bands are omitted
if the colour of a model shows its grid set (its entry of `sets` in the experiment's grid).

The left panel shows the training loss in nats per predicted token, averaged over at most 200 equal intervals of
optimiser steps. Masked models predict masked tokens, causal models predict the next token, and translation models
predict the tokens of the target. Losses of different objectives are not comparable. The right panel shows the loss on
the development split at each evaluation.

In both panels, the dashed grey line is the development loss of the unigram distribution of the training tokens. A model
above this line does not even know how frequent words are. A model that stays on this line has learnt nothing else.

The lower axes count tokens since the start of training. The upper axes count optimiser steps; they are omitted if the
models see different numbers of tokens per step. Untrained models have no line.

Source: `curves.parquet`, `runs.parquet`.
""",
)

INTERVALS = 200
# The upper axis shows steps if the token counts grow linearly with the steps. Batches of real text differ slightly in
# their number of tokens, so a deviation is accepted up to this fraction of the largest token count.
STEP_TOLERANCE = 0.02
UNIGRAM: Keywords = {"color": MUTED, "linestyle": (0, (4, 2)), "linewidth": 1.0, "zorder": 1}


@dataclass(frozen=True)
class Curve:
    """Training and development curve of one model. The points of each curve are (tokens, mean loss in nats per
    predicted token, standard deviation of the loss over seeds), in the order of the steps.
    """

    model: str
    training: list[Point]
    development: list[Point]


def draw(settings: FigureSettings, tables: Tables) -> Figure:
    """Return the figure. Raises ManifestError for an altered table."""
    rows = read_runs(tables["runs"], settings.runs)
    unigram = {row["unigram_loss"] for row in rows} - {None}
    different = differing(row["development_basis"] or "" for row in rows if row["development_loss"] is not None)
    points = read_curves(tables["curves"], settings.runs)
    curves = [
        curve_of(model, [points[run.name] for run in settings.runs if run.model == model])
        for model in models_in_order(settings.runs)
    ]
    return draw_learning_curves(
        settings, curves, tokens_per_step(list(points.values())), sorted(unigram), list(different)
    )


def curve_of(model: str, seeds: Sequence[Sequence[CurvePoint]]) -> Curve:
    """Return a model's curves of training loss and development loss, from the points of each seed. The training loss is
    averaged over intervals of steps.
    """
    training = [[(each.step, each.tokens, each.loss) for each in seed if each.loss is not None] for seed in seeds]
    width = interval_width([row for rows in training for row in rows])
    development = [
        {each.step: (each.tokens, each.development_loss) for each in seed if each.development_loss is not None}
        for seed in seeds
    ]
    return Curve(model, _over_seeds([interval_means(rows, width) for rows in training]), _over_seeds(development))


def _over_seeds(seeds: Sequence[Mapping[int, tuple[float, float]]]) -> list[Point]:
    """Return the mean curve over seeds. Each of `seeds` maps steps, or indices of intervals of steps, to (tokens,
    loss). A step or interval at which only some seeds have a loss is averaged over these seeds.
    """
    points = []
    for key in sorted({key for seed in seeds for key in seed}):
        tokens, losses = zip(*(seed[key] for seed in seeds if key in seed), strict=True)
        points.append(point_of(math.fsum(tokens) / len(tokens), losses))
    return points


def interval_width(rows: Sequence[tuple[int, int, float]], intervals: int = INTERVALS) -> int:
    """Return the number of steps per interval, such that `rows` (step, tokens, loss) form at most `intervals`
    intervals.
    """
    return max(1, math.ceil((max((step for step, _, _ in rows), default=0) + 1) / intervals))


def interval_means(rows: Sequence[tuple[int, int, float]], width: int) -> dict[int, tuple[float, float]]:
    """Return (mean tokens, mean loss) of `rows` (step, tokens, loss), by index of the interval of `width` steps."""
    groups: dict[int, list[tuple[int, int, float]]] = {}
    for row in rows:
        groups.setdefault(row[0] // width, []).append(row)
    return {
        place: (sum(tokens for _, tokens, _ in group) / len(group), math.fsum(loss for *_, loss in group) / len(group))
        for place, group in groups.items()
    }


def tokens_per_step(runs: Sequence[Sequence[CurvePoint]]) -> float | None:
    """Return the number of tokens per optimiser step if it is constant, else None. The number is computed from the last
    point of all runs.

    It is constant if, at every point, the number of tokens differs from steps times this number by at most 2 % of the
    largest number of tokens.
    """
    points = [point for run in runs for point in run]
    last = max(points, key=lambda point: point.step, default=None)
    if last is None or last.step <= 0 or last.tokens <= 0:
        return None
    slope = last.tokens / last.step
    tolerance = STEP_TOLERANCE * max(point.tokens for point in points)
    return slope if all(abs(point.tokens - slope * point.step) <= tolerance for point in points) else None


def draw_learning_curves(
    settings: FigureSettings,
    curves: Sequence[Curve],
    step_tokens: float | None,
    unigram: Sequence[float] = (),
    different: Sequence[str] = (),
) -> Figure:
    """Return the figure: training loss on the left, development loss on the right, and one legend. On phones, the
    training loss is above the development loss.

    If `step_tokens`, the number of tokens per step, is not None, a second axis shows steps. Each number in `unigram`,
    the loss of a unigram distribution, is drawn as a line. `different` contains the differences because of which the
    models' development losses are not comparable.
    """
    untrained = {curve.model for curve in curves if not curve.training and not curve.development}
    labels, group = _groups(settings, untrained)
    models = list(labels)
    styles = settings.looks(models)
    width, size = settings.style.width_inches, settings.style.font_size
    legend_rows = -(-(len(models) + bool(unigram)) // legend_columns(list(labels.values()), settings.style))
    stacked = is_narrow(settings.style)
    height = width * (1.2 if stacked else 0.36) + (9 + 9 * stacked + 1.6 * legend_rows) * size / 72
    figure = Figure(figsize=(width, height), layout="constrained")
    rows, columns = (2, 1) if stacked else (1, 2)
    left, right = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).flat
    dots: Keywords = {"marker": "o", "markersize": size * 0.3}
    for curve in curves:
        look = styles[group[curve.model]]
        for axes, points, marks in (
            (left, curve.training, {}),
            (right, curve.development, dots),
        ):
            if settings.sets:
                plain = [(place, mean, 0.0) for place, mean, _ in points]
                draw_band(axes, plain, look, linewidth=0.7)
            else:
                draw_band(axes, points, look, **marks)
    left.set_title("Training", loc="left")
    right.set_title("Development", loc="left")
    if different:
        text = f"not comparable: models differ in {', '.join(different)}"
        panel = settings.style.width_inches * 72 * (0.7 if stacked else 0.28)
        right.set_title(wrapped(text, panel, size * 0.8), loc="right", fontsize=size * 0.8, color=MUTED)
    for axes in (left, right):
        _finish_axes(axes, step_tokens)
        for loss in unigram:
            axes.axhline(loss, **UNIGRAM)
        axes.set_ylabel("loss (nats per predicted token)")
        axes.tick_params(labelbottom=True)
    if not stacked:
        right.set_ylabel("")
        right.tick_params(labelleft=False)
    texts = {model: f"{label}, not trained" if model in untrained else label for model, label in labels.items()}
    handles = line_handles(texts, styles, linewidth=1.6)
    if unigram:
        handles.append(Line2D([], [], **UNIGRAM, label="word frequencies alone"))
    legend_below(figure, handles, settings.style)
    return figure


def _groups(settings: FigureSettings, untrained: Collection[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return two mappings: from the name of each group of models to its label in the legend, and from each model to its
    group. All lines of a group have the same colour.

    If `settings.sets` maps models to grid sets (groups of models that a grid defines), the groups are the grid sets.
    Otherwise, each model is a group of its own.
    """
    if not settings.sets:
        return models_with_counts(settings.runs), {model: model for model in models_in_order(settings.runs)}
    trained = Counter(name for model, name in settings.sets.items() if model not in untrained)
    named = dict.fromkeys(settings.sets[model] for model in models_in_order(settings.runs))
    return {
        name: f"{readable(name)} ({trained[name]} model{'s' * (trained[name] != 1)})" for name in named
    }, settings.sets


def _finish_axes(axes: Axes, step_tokens: float | None) -> None:
    axes.grid(visible=True)
    axes.set_xlabel("tokens seen")
    axes.xaxis.set_major_formatter(FuncFormatter(abbreviated))
    axes.xaxis.set_major_locator(MaxNLocator(5))
    if not axes.has_data() or not any(len(line.get_xdata()) for line in axes.lines):  # type: ignore[arg-type]
        no_measurements(axes)
    if step_tokens is not None:
        functions = (lambda tokens: np.asarray(tokens) / step_tokens, lambda steps: np.asarray(steps) * step_tokens)
        steps = axes.secondary_xaxis("top", functions=functions)
        steps.set_xlabel("optimiser steps")
        steps.xaxis.set_major_formatter(FuncFormatter(abbreviated))
        steps.xaxis.set_major_locator(MaxNLocator(5))
        steps.spines["top"].set_visible(True)
