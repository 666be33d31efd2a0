"""The surprisal of each word of a text, in text order, with one panel for each set of texts."""

from collections.abc import Sequence
from statistics import fmean

from matplotlib.figure import Figure
from matplotlib.font_manager import findfont, get_font
from matplotlib.lines import Line2D

from hatchery.analysis.comparability import distinguishing_labels
from hatchery.analysis.settings import FigureSettings, models_in_order, models_with_counts, runs_by_name
from hatchery.analysis.tidy_tables import MEASUREMENTS, read_frame
from hatchery.rendering.drawing import entry_rows, is_narrow, legend_below, no_measurements
from hatchery.views.figures.registry import Declaration, Tables

FIGURE = Declaration(
    title="Surprisal of words",
    needs=("surprisals",),
    version=1,
    caption="Surprisal in bits of each word of a text, in the order of the words. A high surprisal means that the "
    "model did not expect the word.",
    explanation="""
The figure shows the first 40 words of one text of each set of texts. The key `drawn` names this text; by default, it is
the first. Words are separated by white space, or by the key `separator`, and include their punctuation. The surprisal
of a word is the sum over its tokens of -log2 of the token's probability. Causal models see the words before the word,
and masked models see all other tokens of the text.

Models whose surprisals are not comparable have separate panels. Imported models are also drawn, each with the tokens of
its own tokenizer. A point is the mean over the seeds of a model. If the figure's font lacks the script of a word, such
as Chinese, the word is shown by its position.

`surprisals.csv` and `surprisals.parquet` contain all words of all texts and models, with the columns of the supplied
table of texts.

Source: `measurements.parquet`.
""",
)

Words = dict[str, dict[tuple[int, str], dict[str, float]]]
"""Surprisals, averaged over seeds, by set of texts, then by (position, word), then by model."""


def draw(settings: FigureSettings, tables: Tables) -> Figure:
    """Return the figure: one panel for each set of texts, from top to bottom, and one line for each model. Raises
    ManifestError for an altered table.
    """
    frame = read_frame(tables["measurements"], MEASUREMENTS, run=runs_by_name(settings.runs), level=("word",))
    found = words_by_text(panel_rows(frame.select("model", "task", "value", "basis").rows()))
    models, style = models_in_order(settings.runs), settings.style
    looks, labels, size = settings.looks(models), models_with_counts(settings.runs), settings.style.font_size
    handles = [
        Line2D([], [], color=looks[m].colour, linestyle=looks[m].dashes, marker=looks[m].marker, label=label)
        for m, label in labels.items()
    ]
    texts = list(found) or [""]
    legend = entry_rows(list(labels.values()), style)
    height = style.width_inches * (0.75 if is_narrow(style) else 0.42) * len(texts) + (4 + 1.6 * legend) * size / 72
    figure = Figure(figsize=(style.width_inches, height), layout="constrained")
    grid = figure.subplots(len(texts), 1, squeeze=False)
    for axes, text in zip(grid.flat, texts, strict=True):
        words = found.get(text, {})
        for model in models:
            points = [(x, by_model[model]) for x, by_model in enumerate(words.values()) if model in by_model]
            if points:
                look = looks[model]
                axes.plot(
                    *zip(*points, strict=True),
                    color=look.colour,
                    linestyle=look.dashes,
                    linewidth=1.4,
                    marker=look.marker,
                    markersize=size * 0.5,
                )
        axes.set_ylabel("surprisal (bits)")
        axes.set_ylim(bottom=0)
        axes.grid(visible=True, axis="y")
        if len(texts) > 1:
            axes.set_title(text, loc="left")
        if axes.lines:
            many = len(words) > (6 if is_narrow(style) else 12)
            turned = {"rotation": 60, "ha": "right", "rotation_mode": "anchor"} if many else {}
            axes.set_xticks(range(len(words)), [written(*place) for place in words], **turned)
        else:
            no_measurements(axes)
    legend_below(figure, handles, style)
    return figure


def written(position: int, word: str) -> str:
    """Return a word if the figure's font contains its letters. Otherwise, return the word's position as text."""
    font = get_font(findfont("DejaVu Sans"))
    return word if all(font.get_char_index(ord(letter)) for letter in word) else str(position)


def panel_rows(rows: Sequence[tuple[str, str, float, str | None]]) -> list[tuple[str, str, float]]:
    """Return (model, task, surprisal) of each row. In `rows`, a fourth component states the conditions of the
    measurement (its comparison basis).

    If surprisals were measured under different conditions, the values of the conditions that differ are appended to the
    name of the set of texts, so that each panel shows comparable surprisals.
    """
    bases: dict[str, list[str]] = {}
    for _, task, _, basis in rows:
        bases.setdefault(task.partition("/")[0], []).append(basis or "")
    labels = {text: distinguishing_labels(of_text) for text, of_text in bases.items()}
    found = []
    for model, task, value, basis in rows:
        text, _, word = task.partition("/")
        found.append((model, f"{', '.join(filter(None, (text, labels[text][basis or ''])))}/{word}", value))
    return found


def words_by_text(rows: Sequence[tuple[str, str, float]]) -> Words:
    """Return the surprisals of the words of each text in reading order, averaged over seeds. Rows are (model, task,
    surprisal) for single runs.
    """
    values: dict[str, dict[tuple[int, str], dict[str, list[float]]]] = {}
    for model, task, value in rows:
        text, position, word = task.split("/", 2)
        values.setdefault(text, {}).setdefault((int(position), word), {}).setdefault(model, []).append(value)
    return {
        text: {
            place: {model: fmean(seeds) for model, seeds in by_model.items()}
            for place, by_model in sorted(words.items())
        }
        for text, words in values.items()
    }
