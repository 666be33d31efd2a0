"""Final BLEU of models whose first training steps had a penalty for predictions near the unigram distribution.

Source: "A Natural Bias for Language Generation Models", Appendix B.3 and Figure 9. The paper's BLEU is from 0 to 1,
ours from 0 to 100.
"""

from collections.abc import Iterable, Mapping

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from hatchery.analysis.aggregates import mean_and_error
from hatchery.analysis.settings import runs_by_name
from hatchery.analysis.tidy_tables import MEASUREMENTS, read_frame
from hatchery.evaluation.translation_settings import TRANSLATION_SUITE
from hatchery.rendering.drawing import MUTED, is_narrow, legend_below, legend_rows, no_measurements
from hatchery.rendering.style import ModelStyle, model_styles
from hatchery.translation.metrics import METRICS
from hatchery.views.figures.needs import RegularisedFigure, RegularisedStart
from hatchery.views.figures.registry import Declaration, Tables

FIGURE = Declaration(
    title="Training away from the unigram distribution",
    needs=("regularised_starts",),
    all_models=True,
    version=1,
    caption="BLEU on the test sets, in points, by strength of the penalty, and by number of steps with the penalty. "
    "In their first training steps, the models had a penalty for predictions near the unigram distribution. "
    "Points are means over seeds, with standard errors.",
    explanation="""
Each row of panels shows the scores on a test set. In the left panel the x axis is the strength of the penalty, and a
line joins models with the same number of steps with the penalty. In the right panel the x axis is this number of steps,
and a line joins models with the same strength. The dashed line is the score of a model with equal settings but without
the penalty. The range of each axis is the range of the scores in the panel.

Source: `measurements.parquet`.
""",
)

AXES = {"penalty": "strength of the penalty", "steps": "steps with the penalty"}

Scores = Mapping[RegularisedStart, tuple[float, float]]
"""Mean and standard error of BLEU by penalty strength and number of steps; the error is 0 for a single seed."""


def draw(settings: RegularisedFigure, tables: Tables) -> Figure:
    """Return the figure. Raises ManifestError for an altered table."""
    frame = read_frame(tables["measurements"], MEASUREMENTS, run=runs_by_name(settings.runs))
    chosen = frame.filter((pl.col("suite") == TRANSLATION_SUITE) & (pl.col("metric") == METRICS[0]))
    many = chosen["experiment"].n_unique() > 1
    # Experiments of a study may have test sets with equal names, so the key contains the experiment.
    found = {
        f"{experiment}, {test}" if many else str(test): scores_of(settings, part)
        for (experiment, test), part in chosen.group_by("experiment", "task", maintain_order=True)
    }
    starts = list(dict.fromkeys(start for start in settings.regularised.values() if start.penalty))
    # Assign colours to penalty strengths and to steps together. Otherwise, a colour could mean both a strength and a
    # number of steps.
    names = [_named(of, number) for of in ("steps", "penalty") for number in _numbers(of, starts)]
    style = settings.style
    looks = model_styles(names, style)
    handles = [Line2D([], [], color=look.colour, marker=look.marker, label=name) for name, look in looks.items()]
    handles.append(Line2D([], [], color=MUTED, linestyle="--", label="never"))
    columns = 1 if is_narrow(style) else 2
    rows = max(1, len(found)) * (3 - columns)
    height = (rows * 16 + 1.5 * legend_rows(handles, style)) * style.font_size / 72
    figure = Figure(figsize=(style.width_inches, height), layout="constrained")
    panels = iter(figure.subplots(rows, columns, squeeze=False).flat)
    for test, scores in (found or {"": {}}).items():
        for along, other in (("penalty", "steps"), ("steps", "penalty")):
            axes = next(panels)
            _draw(axes, starts, scores, along, other, looks)
            axes.set_title(test, loc="left")
    legend_below(figure, handles, style)
    return figure


def scores_of(settings: RegularisedFigure, frame: pl.DataFrame) -> Scores:
    """Return the mean BLEU (0 to 100) over seeds, with its standard error, on the test set of `frame`. The keys are the
    strength of the unigram penalty and the number of steps with this penalty.
    """
    values: dict[RegularisedStart, list[float]] = {}
    for row in frame.filter(pl.col("value").is_not_null()).iter_rows(named=True):
        values.setdefault(settings.regularised[row["model"]], []).append(row["value"])
    found = {start: mean_and_error(numbers) for start, numbers in values.items()}
    return {start: (mean, error or 0.0) for start, (mean, error) in found.items()}


def _numbers(of: str, starts: Iterable[RegularisedStart]) -> list[float]:
    return sorted({getattr(start, of) for start in starts})


def _named(of: str, number: float) -> str:
    return f"{number:,} steps" if of == "steps" else f"penalty {number:g}"


def _draw(
    axes: Axes,
    starts: Iterable[RegularisedStart],
    scores: Scores,
    along: str,
    other: str,
    looks: Mapping[str, ModelStyle],
) -> None:
    """Draw one panel: the values of `along` ("penalty" or "steps") on the x axis, and a line for each value of `other`,
    the other of these two keys. `looks` are the styles of the lines.
    """
    places, lines = _numbers(along, starts), _numbers(other, starts)
    for index, number in enumerate(lines):
        name = _named(other, number)
        measured = [start for start in starts if getattr(start, other) == number and start in scores]
        measured.sort(key=lambda start: float(getattr(start, along)))
        # Shift the lines slightly along x, so that error bars do not cover each other.
        offset = 0.06 * (index - (len(lines) - 1) / 2)
        axes.errorbar(
            [places.index(getattr(start, along)) + offset for start in measured],
            [scores[start][0] for start in measured],
            yerr=[scores[start][1] for start in measured],
            color=looks[name].colour,
            marker=looks[name].marker,
            capsize=2,
        )
    for start, (mean, _) in scores.items():
        if not start.penalty:
            axes.axhline(mean, color=MUTED, linestyle="--")
    axes.set_xticks(range(len(places)), [f"{number:,g}" for number in places])
    axes.set(xlim=(-0.5, len(places) - 0.5), xlabel=AXES[along], ylabel="BLEU")
    axes.grid(visible=True, axis="y")
    if not scores:
        no_measurements(axes)
