"""Settings of a figure, and the contents of a figure read back from its axes."""

from collections.abc import Iterable
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from hatchery.analysis.settings import FigureSettings
from hatchery.typed import build, stage_body

WHITE = "#ffffff"
ROWS = {"ltg": "ltg_bert_base", "elc": "elc_bert_base"}
"""The rows of ELC-BERT that models of these names repeat."""
PRINTED = "config/published/values/elc_bert.csv"
STRICT = {"paper": "elc_bert", "track": "strict", "rows": ROWS}


def typed(experiment: Any, published: dict[str, Any] | None = None, **style: Any) -> FigureSettings:
    """The settings of a figure of an experiment."""
    return build(FigureSettings, stage_body(experiment.figure_settings(**style) | {"published": published}))


def dots(axes: Axes, marker: str, failed: bool) -> list[tuple[float, float]]:
    """Return the positions of all dots with this marker: hollow if `failed`, else filled."""
    return [place for line in _lines(axes, marker) if (_face(line) == WHITE) == failed for place in _places(line)]


def published(axes: Axes) -> list[tuple[float, float]]:
    return [place for line in _lines(axes, "D") for place in _places(line)]


def legend(figure: Figure) -> set[str]:
    return {text.get_text() for text in figure.legends[0].get_texts()}


def row_names(axes: Axes) -> list[str]:
    """Labels of the rows, each on one line."""
    return [label.get_text().replace("_\n", "_").replace("\n", " ") for label in axes.get_yticklabels()]


def _tick_labels(axes: Axes) -> Iterable[Any]:
    """Yield the labels of visible ticks; Matplotlib also has ticks beyond the axis limits."""
    for place, (low, high), labels in (
        (0, sorted(axes.get_xlim()), axes.get_xticklabels()),
        (1, sorted(axes.get_ylim()), axes.get_yticklabels()),
    ):
        yield from (label for label in labels if low <= label.get_position()[place] <= high)


def assert_nothing_overlaps(figure: Figure) -> None:
    """Check that no two texts of a figure overlap and that all texts are inside the figure."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    renderer = canvas.get_renderer()
    boxes = []
    for axes in figure.axes:
        if not axes.axison:
            continue
        texts: Iterable[Any] = [
            *axes.texts,
            *_tick_labels(axes),
            axes.xaxis.label,
            axes.yaxis.label,
            axes.title,
            axes._left_title,  # type: ignore[attr-defined]
        ]
        boxes += [(text.get_text(), text.get_window_extent(renderer)) for text in texts if text.get_text()]
    boxes += [
        (text.get_text(), text.get_window_extent(renderer)) for item in figure.legends for text in item.get_texts()
    ]
    width, height = canvas.get_width_height()
    for index, (name, box) in enumerate(boxes):
        assert box.x0 >= -1 and box.y0 >= -1 and box.x1 <= width + 1 and box.y1 <= height + 1, f"{name!r} is cut off"
        for other, covered in boxes[index + 1 :]:
            width_shared = min(box.x1, covered.x1) - max(box.x0, covered.x0)
            height_shared = min(box.y1, covered.y1) - max(box.y0, covered.y0)
            assert width_shared <= 1 or height_shared <= 1.5, f"{name!r} covers {other!r}"


def _lines(axes: Axes, marker: str) -> list[Line2D]:
    return [line for line in axes.lines if line.get_marker() == marker]


def _face(line: Line2D) -> str:
    return to_hex(line.get_markerfacecolor())  # type: ignore[arg-type]


def _places(line: Line2D) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)]  # type: ignore[arg-type]
