"""The summary for a terminal: plain ASCII, aligned, at most 100 columns wide.

Measures are rows and models are columns; when the models do not fit side by side, they continue in a further block.
"""

import textwrap

from hatchery.analysis.summary import Summary
from hatchery.analysis.summary_layout import Measure, Section, cell_text, failure_text, sections, verdict_counts

WIDTH = 100
LABEL_WIDTH = 34
GAP = 2
FAILURES_SHOWN = 8


def text_summary(summary: Summary) -> str:
    """The whole text, with a final newline."""
    lines = [f"Hatchery summary: {summary.experiment}", "=" * min(WIDTH, 18 + len(summary.experiment))]
    shown = sections(summary)
    for models in _blocks(summary, shown):
        lines.append("")
        lines.append(" " * LABEL_WIDTH + "".join(_right(model, _width(summary, shown, model)) for model in models))
        for section in shown:
            lines.append(section.title)
            for measure in section.measures:
                label = _shortened("  " + measure.label, LABEL_WIDTH).ljust(LABEL_WIDTH)
                cells = (_right(_cell(summary, measure, model), _width(summary, shown, model)) for model in models)
                lines.append(label + "".join(cells))
    lines.append("")
    for note in _notes(summary):
        lines += textwrap.wrap(note, WIDTH, subsequent_indent="  ")
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _cell(summary: Summary, measure: Measure, model: str) -> str:
    text = cell_text(summary.row(model, measure.suite, measure.task, measure.metric), "+-")
    # Room for the star of other cells keeps the digits below each other.
    starred = any(row.model == model and row.n_failed for row in summary.rows)
    return text + " " if starred and not text.endswith("*") else text


def _width(summary: Summary, shown: list[Section], model: str) -> int:
    """Width of a model's column, with the gap before it."""
    cells = [_cell(summary, measure, model) for section in shown for measure in section.measures]
    return min(WIDTH - LABEL_WIDTH, GAP + max(len(text) for text in [model, *cells]))


def _blocks(summary: Summary, shown: list[Section]) -> list[list[str]]:
    """The models, cut into runs that fit side by side."""
    blocks: list[list[str]] = []
    room = 0
    for model in summary.models:
        width = _width(summary, shown, model)
        if width > room:
            blocks.append([])
            room = WIDTH - LABEL_WIDTH
        blocks[-1].append(model)
        room -= width
    return blocks


def _right(text: str, width: int) -> str:
    return _shortened(text, width - GAP).rjust(width)


def _shortened(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 2] + ".."


def _notes(summary: Summary) -> list[str]:
    notes = ["Mean +-sample standard deviation over runs; percent unless a label says otherwise."]
    if summary.failures:
        notes.append(f"* Failed runs, left out of the means ({len(summary.failures)}):")
        notes += [f"  {failure_text(failure)}" for failure in summary.failures[:FAILURES_SHOWN]]
        if (rest := len(summary.failures) - FAILURES_SHOWN) > 0:
            notes.append(f"  and {rest} more, named in summary.md")
    if counts := verdict_counts(summary):
        notes.append(f"Beside the published values: {counts} (rows in summary.csv).")
    return notes
