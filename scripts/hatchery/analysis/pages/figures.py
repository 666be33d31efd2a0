"""Figures inside pages: the SVG files themselves, so that page and file cannot disagree, with what they show.

A file may hold a second drawing for phones (`drawing.save_drawings`); the page then shows the one that fits.
"""

import re
from pathlib import Path

from hatchery.analysis.cards.tables import html_text
from hatchery.analysis.figures.published_marks import PUBLISHED_LABEL
from hatchery.analysis.figures.run_dots import FAILED_LABEL
from hatchery.errors import EvaluationError
from hatchery.rendering.drawing import NARROW_ID, prefixed_ids
from hatchery.storage.verified import vouched

CAPTIONS = {
    "learning_curves": "Loss of masked language modelling per labelled token against the tokens seen: training loss, "
    "and development loss on sequences with fixed masks.",
    "layer_weights": "Learned layer weights: the share with which each layer reads the outputs of the layers before "
    "it, times the number of those outputs, so that 1 is the even share; the plain model adds all with weight 1.",
    "phenomena": "Accuracy on minimal pairs by phenomenon, their average below; the dashed line at 50 % is chance.",
    "task_scores": "Scores of the fine-tuned tasks: means and deviations over runs, single runs as small marks; the "
    "dashed line is the score of always answering the most frequent label.",
    "bias_violins": "Linguistic Bias Score of every run on the ambiguous tasks of MSGS: +1 follows the linguistic "
    "feature, -1 the surface feature.",
    "feature_dots": "Linguistic Bias Score by pair of features, one dot per run.",
    "layer_contributions": "Weights of the layers in the probes, in percent: means over runs.",
}
# Said only of a drawing whose legend says it, too.
MARKS = {PUBLISHED_LABEL: "Open diamonds are published values.", FAILED_LABEL: "Hollow marks are failed runs."}
# Letters grow with a drawing: beyond this factor they would be larger than those of headings.
MOST_ENLARGED = 1.35
_POINTS = re.compile(r'<svg\b[^>]*?\bwidth="([\d.]+)pt"')
_SYMBOL = re.compile(rf'<symbol id="[^"]*{NARROW_ID}" (viewBox="[^"]*")>(.*?)</symbol>\n?', flags=re.DOTALL)


def figure_of(path: Path) -> str:
    """The figure with the caption that its name stands for, and a sentence for every mark that it has.

    Raises ManifestError when it was altered.
    """
    name = path.stem.replace("_", " ")
    drawing = read_text(vouched(path))
    # Matplotlib writes every text of a drawing, whose letters are paths, into a comment beside it.
    marks = [sentence for label, sentence in MARKS.items() if f"<!-- {label} -->" in drawing]
    return embedded_figure(path, " ".join([CAPTIONS.get(path.stem, name.capitalize() + "."), *marks]))


def embedded_figure(path: Path, caption: str) -> str:
    """The SVG file at `path` as a figure of an HTML page; its caption is also its text for those who cannot see it.

    Raises EvaluationError when the file is missing or not an SVG.
    """
    text = read_text(path)
    start = text.find("<svg")
    if start < 0 or "</svg>" not in text:
        raise EvaluationError(f"{path}: not an SVG drawing")
    # Ids are unique within one drawing only, and several drawings share the page.
    drawing = prefixed_ids(text[start:], f"{path.stem}-")
    name = html_text(path.stem.replace("_", " "))
    described = html_text(f"caption-{path.stem}")
    role = f'role="img" aria-label="{name}" aria-describedby="{described}"'
    symbol = _SYMBOL.search(drawing)
    narrow = ""
    if symbol is not None:
        drawing = drawing.replace(symbol[0], "")
        size = float(symbol[1].split()[2])
        narrow = f'<svg {role} class="narrow" {symbol[1]}{_limit(size)}>{symbol[2]}</svg>'
    kind = ' class="wide"' if narrow else ""
    points = _POINTS.search(drawing)
    most = "" if points is None else _limit(float(points[1]))
    drawing = drawing.replace("<svg", f"<svg {role}{kind}", 1)
    return (
        f'<figure>\n<div class="drawing" tabindex="0" role="region" aria-label="Figure: {name}"{most}>'
        f'{drawing}{narrow}</div>\n<figcaption id="{described}">{html_text(caption)}</figcaption>\n</figure>'
    )


def _limit(points: float) -> str:
    """The attribute that keeps a drawing of that width from growing too large."""
    return f' style="max-width: {points * 4 / 3 * MOST_ENLARGED:.0f}px"'


def read_text(path: Path) -> str:
    """The text of a file that a page shows. Raises EvaluationError when it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise EvaluationError(f"{path}: cannot be read: {error}") from error
