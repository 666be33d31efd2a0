"""The figures of an experiment on its page, each with the caption that its registry declares."""

from pathlib import Path

from markupsafe import Markup

from hatchery.artifacts.checksums import vouched
from hatchery.rendering.svg import embedded_figure, read_text
from hatchery.views.figures.registry import FAILED_LABEL, PUBLISHED_LABEL, declared_figures

# Said only of a drawing whose legend says it, too.
MARKS = {PUBLISHED_LABEL: "Open diamonds are published values.", FAILED_LABEL: "Hollow marks are failed runs."}


def figure_of(path: Path) -> Markup:
    """The figure with its caption, a sentence for every mark that it has, and its explanation.

    Raises ManifestError when it was altered.
    """
    drawing = read_text(vouched(path))
    # Matplotlib writes every text of a drawing, whose letters are paths, into a comment beside it.
    marks = [sentence for label, sentence in MARKS.items() if f"<!-- {label} -->" in drawing]
    declared = declared_figures()[path.stem]
    return embedded_figure(path, " ".join([declared.caption, *marks]), declared.paragraphs)
