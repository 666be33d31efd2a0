"""The summary for a terminal: plain ASCII, aligned, at most 100 columns wide.

Measures are rows and models are columns, section by section; when the models do not fit side by side, they continue in
a further block. Only first metrics are shown: summary.md has the others.
"""

import textwrap
from collections.abc import Mapping, Sequence

from hatchery.analysis.summary import Summary
from hatchery.analysis.summary_layout import (
    Measure,
    Section,
    cell_text,
    failure_texts,
    incomplete_texts,
    models_of,
    sections,
    starred,
    verdict_counts,
)
from hatchery.rendering.table import GAP, table

WIDTH = 100
LABEL_WIDTHS = (34, 42)
INDENT = 2
FAILURES_SHOWN = 8
# Between the parts of a name that a sweep made.
NAME_SEPARATOR = ", "
MODELS_SHOWN, MODELS_OF_MANY = 24, 8
"""Models on a terminal; of more than that only the first few, since the rest would scroll away."""


def text_summary(summary: Summary) -> str:
    """The whole text, with a final newline."""
    lines = [f"Hatchery summary: {summary.experiment}", "=" * min(WIDTH, 18 + len(summary.experiment))]
    shown = [section for section in sections(summary) if not section.detail]
    longest = max((len(measure.label) + INDENT for section in shown for measure in section.measures), default=0)
    label_width = min(max(longest + GAP, LABEL_WIDTHS[0]), LABEL_WIDTHS[1])
    room = WIDTH - label_width
    models_shown = _shown(summary)
    with_stars = {row.model for row in summary.rows if starred(row)}
    widths = {model: min(room, _width(summary, shown, model, model in with_stars)) for model in models_shown}
    for section in shown:
        for models in _blocks([model for model in models_of(summary, section) if model in widths], widths, room):
            rows = [
                [" " * INDENT + measure.label, *(_cell(summary, measure, m, m in with_stars) for m in models)]
                for measure in section.measures
            ]
            heads = _heads(section.title, label_width, [summary.label(model) for model in models])
            drawn = table([""] * (1 + len(models)), [*heads, *rows])
            title = [section.title] if len(section.title) >= label_width else []
            lines += ["", *title, *drawn.text([label_width, *(widths[model] for model in models)])[1:]]
    lines.append("")
    for note in _notes(summary):
        lines += textwrap.wrap(note, WIDTH, subsequent_indent="    ")
    return "\n".join(line.rstrip() for line in "\n".join(lines).splitlines()) + "\n"


def _heads(title: str, label_width: int, names: Sequence[str]) -> list[list[str]]:
    """The title of a section and the models, a line for each part of their names.

    A title wider than the labels has a line of its own.
    """
    parts = [name.split(NAME_SEPARATOR) for name in names]
    first = "" if len(title) >= label_width else title
    lines = range(max(map(len, parts)))
    return [[first if line == 0 else "", *("".join(part[line : line + 1]) for part in parts)] for line in lines]


def _cell(summary: Summary, measure: Measure, model: str, with_star: bool) -> str:
    text = cell_text(measure.row(summary, model), "+-")
    # Room for the star of other cells keeps the digits below each other.
    return text + " " if with_star and not text.endswith("*") else text


def _width(summary: Summary, shown: list[Section], model: str, with_star: bool) -> int:
    """Width of a model's column, with the gap before it."""
    cells = [_cell(summary, measure, model, with_star) for section in shown for measure in section.measures]
    return GAP + max(len(text) for text in [*summary.label(model).split(NAME_SEPARATOR), *cells])


def _blocks(models: list[str], widths: Mapping[str, int], width: int) -> list[list[str]]:
    """The models, cut into runs that fit side by side in `width` columns."""
    blocks: list[list[str]] = []
    room = 0
    for model in models:
        if widths[model] > room:
            blocks.append([])
            room = width
        blocks[-1].append(model)
        room -= widths[model]
    return blocks


def _shown(summary: Summary) -> list[str]:
    return summary.models if len(summary.models) <= MODELS_SHOWN else summary.models[:MODELS_OF_MANY]


def _notes(summary: Summary) -> list[str]:
    notes = ["Mean +-sample standard deviation over runs; percent unless a label says otherwise."]
    if rest := len(summary.models) - len(_shown(summary)):
        notes.insert(0, f"The first {MODELS_OF_MANY} models; {rest:,} more are in summary.csv and summary.md.")
    if texts := [*incomplete_texts(summary), *failure_texts(summary)]:
        notes.append(
            f"* Runs that failed, or gave no number ({len(summary.failures)}). Means are over every run with a number; "
            "those without failed runs are in summary.csv (mean_without_failed)."
        )
        notes += [f"  {text}" for text in texts[:FAILURES_SHOWN]]
        if (rest := len(texts) - FAILURES_SHOWN) > 0:
            notes.append(f"  and those of {rest} more tasks and models, named in summary.md")
    if counts := verdict_counts(summary):
        notes.append(f"Beside the published values: {counts} (rows in summary.csv).")
    return notes
