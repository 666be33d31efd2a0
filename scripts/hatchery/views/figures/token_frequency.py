"""Log-probability of correct tokens against the logarithm of their frequency, with and without the output bias.

Source: "A Natural Bias for Language Generation Models", Figure 4.
"""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from hatchery.analysis.aggregates import mean_and_error
from hatchery.analysis.settings import FigureSettings, models_in_order, models_with_counts, runs_by_name
from hatchery.analysis.tidy_tables import MEASUREMENTS, read_frame
from hatchery.evaluation.perplexity.rows import LOG_FREQUENCY, LOG_PROBABILITY, WITHOUT_BIAS, split_of_bin
from hatchery.rendering.drawing import entry_rows, is_narrow, legend_below, no_measurements
from hatchery.views.figures.registry import Declaration, Tables

FIGURE = Declaration(
    title="Probability of tokens by their frequency",
    needs=("frequencies",),
    version=1,
    caption="Mean log-probability that models give to correct tokens of held-out text, against the logarithm of the "
    "tokens' frequency in the training text: predictions of the whole model, and predictions without the bias"
    " of the output layer.",
    explanation="""
Each token has a log-frequency: the logarithm of its fraction of the targets in the training text, with one added to
each count. Tokens are grouped into bins of equal width by log-frequency. A point is the mean over the tokens of a bin;
bins with fewer than 20 tokens are not drawn.

Without the bias, the prediction is the softmax of the logits from the output matrix alone. If the line without the bias
still rises, the output matrix has learned token frequencies. If this line is flat, only the bias has learned them.
Points are means over the seeds of a model, and bars are their standard errors. With one seed, bars are the standard
error over tokens. Masked models predict only masked tokens, and causal models predict all tokens, so their
log-probabilities are not comparable.

The slopes of the least-squares lines over tokens are the metrics `frequency_slope` and `frequency_slope_without_bias`
of `summary.csv`.

Source: `measurements.parquet`.
""",
)

LEAST_TOKENS = 20
TITLES = {LOG_PROBABILITY: "whole model", WITHOUT_BIAS: "without the bias"}
Point = tuple[float, float, float]
"""(mean log-frequency of a bin, mean log-probability, standard error of the log-probability); the error is 0 if it is
unknown.
"""


def draw(settings: FigureSettings, tables: Tables) -> Figure:
    """Return the figure, a row of panels for each split. Raises ManifestError for an altered table."""
    frame = read_frame(tables["measurements"], MEASUREMENTS, run=runs_by_name(settings.runs), level=("bin",))
    lines = points(frame.select("model", "task", "metric", "value", "items", "sampling_deviation").rows())
    splits = sorted({split for split, _, _ in lines}) or [""]
    models, style = models_in_order(settings.runs), settings.style
    styles, labels, size = settings.looks(models), models_with_counts(settings.runs), settings.style.font_size
    stacked = is_narrow(style)
    panels = [(split, metric) for split in splits for metric in TITLES]
    shape = (len(panels), 1) if stacked else (len(splits), len(TITLES))
    handles = [
        Line2D([], [], color=styles[m].colour, linestyle=styles[m].dashes, marker=styles[m].marker, label=label)
        for m, label in labels.items()
    ]
    legend = entry_rows(list(labels.values()), style)
    height = style.width_inches * (0.8 if stacked else 0.45) * shape[0] + (4 + 1.6 * legend) * size / 72
    figure = Figure(figsize=(style.width_inches, height), layout="constrained")
    grid = figure.subplots(*shape, squeeze=False, sharex=True, sharey=True)
    for axes, (split, metric) in zip(grid.flat, panels, strict=True):
        for model in models:
            if found := lines.get((split, metric, model)):
                x, mean, error = zip(*found, strict=True)
                look = styles[model]
                axes.errorbar(
                    *(x, mean, error),
                    color=look.colour,
                    linestyle=look.dashes,
                    linewidth=1.4,
                    elinewidth=0.8,
                    marker=look.marker,
                    markersize=size * 0.4,
                )
        axes.set_title(f"{split}, {TITLES[metric]}".lstrip(", "), loc="left")
        axes.set_xlabel("log-frequency of the token (nats)")
        axes.set_ylabel("log-probability (nats)")
        axes.label_outer()
        axes.grid(visible=True)
        if not axes.lines:
            no_measurements(axes)
    legend_below(figure, handles, style)
    return figure


def points(
    rows: Sequence[tuple[str, str, str, float, int, float | None]],
) -> Mapping[tuple[str, str, str], list[Point]]:
    """Return points (log-frequency, log-probability, standard error), sorted from rare to frequent tokens, by split,
    metric (LOG_PROBABILITY, WITHOUT_BIAS) and model. Each point is a bin: a group of tokens with similar frequencies.
    Bins with fewer than LEAST_TOKENS tokens are omitted.

    Each of `rows` is a measurement of one run: (model, bin, metric, value, number of tokens, standard error over
    tokens).
    """
    bins: dict[tuple[str, str], dict[str, list[tuple[float, float]]]] = {}
    for model, task, metric, value, tokens, error in rows:
        if tokens >= LEAST_TOKENS:
            bins.setdefault((model, task), {}).setdefault(metric, []).append((value, error or 0.0))
    found: dict[tuple[str, str, str], list[Point]] = {}
    for (model, task), measured in bins.items():
        x, _ = mean_and_error([value for value, _ in measured[LOG_FREQUENCY]])
        for metric in TITLES:
            mean, error = mean_and_error([value for value, _ in measured[metric]])
            over_tokens = measured[metric][0][1]
            key = (split_of_bin(task), metric, model)
            found.setdefault(key, []).append((x, mean, over_tokens if error is None else error))
    return {key: sorted(line) for key, line in found.items()}
