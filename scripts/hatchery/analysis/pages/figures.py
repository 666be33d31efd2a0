"""Figures inside pages: the SVG files themselves, so that page and file cannot disagree, with what they show."""

import re
from pathlib import Path

from hatchery.analysis.cards.tables import html_text
from hatchery.errors import EvaluationError
from hatchery.storage.verified import vouched

CAPTIONS = {
    "learning_curves": "Loss of masked language modelling per labelled token against the tokens seen: training loss, "
    "and development loss on sequences with fixed masks.",
    "layer_weights": "Learned layer weights: the share with which each layer reads the outputs of the layers before "
    "it, times the number of those outputs, so that 1 is the even share; the plain model adds all with weight 1.",
    "phenomena": "Accuracy on minimal pairs by phenomenon; the line at 50 % is chance, diamonds are published values.",
    "task_scores": "Scores of the fine-tuned tasks: means and deviations over runs, single runs as small marks, failed "
    "runs hollow; the dashed line is the most frequent label, the diamond the published mean.",
    "bias_violins": "Linguistic Bias Score of every run on the ambiguous tasks of MSGS: +1 follows the linguistic "
    "feature, -1 the surface feature; failed runs are hollow, the diamond is the published mean.",
    "feature_dots": "Linguistic Bias Score by pair of features, one dot per run; failed runs are hollow.",
    "layer_contributions": "Weights of the layers in the probes, in percent: means over runs.",
}


def figure_of(path: Path) -> str:
    """The figure with the caption that its name stands for. Raises ManifestError when it was altered."""
    name = path.stem.replace("_", " ")
    return embedded_figure(vouched(path), CAPTIONS.get(path.stem, name.capitalize() + "."))


def embedded_figure(path: Path, caption: str) -> str:
    """The SVG file at `path` as a figure of an HTML page; its caption is also its text for those who cannot see it.

    Raises EvaluationError when the file is missing or not an SVG.
    """
    text = read_text(path)
    start = text.find("<svg")
    if start < 0 or "</svg>" not in text:
        raise EvaluationError(f"{path}: not an SVG drawing")
    # Ids are unique within one drawing only, and several drawings share the page.
    drawing = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{path.stem}-", text[start:])
    name = html_text(path.stem.replace("_", " "))
    described = html_text(f"caption-{path.stem}")
    drawing = drawing.replace("<svg", f'<svg role="img" aria-label="{name}" aria-describedby="{described}"', 1)
    return (
        f'<figure>\n<div class="drawing" tabindex="0" role="region" aria-label="Figure: {name}">{drawing}</div>\n'
        f'<figcaption id="{described}">{html_text(caption)}</figcaption>\n</figure>'
    )


def read_text(path: Path) -> str:
    """The text of a file that a page shows. Raises EvaluationError when it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise EvaluationError(f"{path}: cannot be read: {error}") from error
