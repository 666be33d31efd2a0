"""The summary as text: in Markdown (`summary.md`), and as plain text for a terminal, at most 100 characters wide.

On a terminal, models are rows if there are ROWS_FROM or more models; with fewer models, measures are rows and models
are columns. The same holds on the page. In Markdown, models are always rows. Columns that do not fit side by side are
printed below the first columns. The terminal shows only the first metric of each task; summary.md contains all metrics.
"""

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from hatchery.analysis.summary import Summary
from hatchery.rendering.escaping import readable
from hatchery.rendering.table import GAP, Content, divided, table
from hatchery.views.score_table import (
    COMPARED,
    ROWS_FROM,
    SIDE_BY_SIDE,
    Block,
    Line,
    Score,
    blind_guesses,
    compared_cells,
    score_of,
    table_of,
    verdict_counts,
)
from hatchery.views.summary_notes import general_notes
from hatchery.views.summary_sections import Section, failure_texts, incomplete_texts, sections


def markdown_summary(summary: Summary) -> str:
    """Return the text of `summary.md`."""
    blocks = [f"# Summary of {summary.experiment}"]
    for section in sections(summary):
        blocks += [f"## {section.title}", section.note, *_section_tables(summary, section)]
    compared = summary.compared()
    blocks += ["## Comparison with published values", f"In all: {verdict_counts(summary)}."] if compared else []
    for suite, rows in compared.items():
        body = [compared_cells(summary, row, summary.published_notes, _cell(score_of(row)), 1) for row in rows]
        blocks += [f"### {readable(suite)}", table(COMPARED, body, words=3).markdown()]
    blocks += ["## Notes", "\n".join(f"- {note}" for note in general_notes(summary))]
    return "\n\n".join(blocks) + "\n"


def _section_tables(summary: Summary, section: Section) -> Iterator[str]:
    models = summary.with_numbers(section.measures)
    for measures in divided(section.measures, SIDE_BY_SIDE):
        made = table_of(summary, measures, models)
        guesses = blind_guesses(summary, measures, lambda found: " or ".join(sorted(found)))
        yield replace(made, blocks=(Block("", (*made.lines, *guesses)),)).shown(_cell).markdown()


def _cell(score: Score) -> Content:
    """Return the cell of a score: the number and, in brackets, the number of runs. For a single run, the brackets also
    contain the 95 % interval due to the choice of test items.
    """
    if score.row is None:
        return score.without_number
    interval = score.row.interval()
    return replace(score.cell(), remark=f"{interval}{', ' * bool(interval)}n={score.row.runs()}")


WIDTH = 100
LABEL_WIDTHS = (34, 42)
INDENT = 2
# Width in characters at which the heading of a measure is wrapped. Longer words are not split.
HEADING_WIDTH = 14
FAILURES_SHOWN = 8
# Separator between the parts of a model name that a sweep generated. Headings may be wrapped at a separator.
NAME_SEPARATOR = ", "
MODELS_SHOWN, MODELS_OF_MANY = 24, 8
"""MODELS_SHOWN is the maximum number of models on a terminal; if there are more models, only the first MODELS_OF_MANY
are shown.
"""


@dataclass(frozen=True)
class _Column:
    """A column on the terminal: the lines of its heading, its cells, and its width including the gap before it."""

    heading: Sequence[str]
    cells: Sequence[str]
    width: int


def text_summary(summary: Summary) -> str:
    """Return the text of `summary.txt`, with a final newline."""
    lines = [f"Hatchery summary: {summary.experiment}", "=" * min(WIDTH, 18 + len(summary.experiment))]
    shown = [section for section in sections(summary) if not section.detail]
    models_shown = _shown(summary)
    as_rows = len(models_shown) >= ROWS_FROM
    names = (
        [summary.label(model) for model in models_shown] if as_rows else [m.label for s in shown for m in s.measures]
    )
    longest = max((len(name) + INDENT for name in names), default=0)
    label_width = min(max(longest + GAP, LABEL_WIDTHS[0]), LABEL_WIDTHS[1])
    room = WIDTH - label_width
    starred = {row.model for row in summary.rows if row.starred}
    texts: dict[str, dict[str, list[str]]] = {}
    for section in shown:
        models = [model for model in summary.with_numbers(section.measures) if model in models_shown]
        made = table_of(summary, section.measures, models)
        texts[section.title] = {line.model: _texts(line, line.model in starred) for line in made.lines}
    widest: dict[str, int] = {}
    for cells in texts.values():
        widest |= {model: max(widest.get(model, 0), *map(len, found)) for model, found in cells.items()}
    for section in shown:
        cells = texts[section.title]
        if not cells:
            continue
        if as_rows:
            names = [summary.label(model) for model in cells]
            columns = [
                _column(textwrap.wrap(measure.label, HEADING_WIDTH, break_long_words=False), column, room)
                for measure, column in zip(section.measures, zip(*cells.values(), strict=True), strict=True)
            ]
        else:
            names = [measure.label for measure in section.measures]
            columns = [
                _column(summary.label(model).split(NAME_SEPARATOR), column, room, widest[model])
                for model, column in cells.items()
            ]
        lines += _section_lines(section.title, names, columns, label_width)
    lines.append("")
    for note in _notes(summary):
        lines += textwrap.wrap(note, WIDTH, subsequent_indent="    ")
    return "\n".join(line.rstrip() for line in "\n".join(lines).splitlines()) + "\n"


def _texts(line: Line, starred: bool) -> list[str]:
    """Return the scores of a model as texts. A star follows a score if some of its runs failed or have no number.

    `starred` is True if any score of the model has a star; then a space follows the scores without a star.
    """
    texts = ["-" if each is None else each.text("+-") + "*" * bool(each.failures_text) for each in line.values]
    # To align digits, append a space to cells without a star if another cell of the model has a star.
    return [text if text.endswith("*") or not starred else text + " " for text in texts]


def _section_lines(title: str, names: Sequence[str], columns: Sequence[_Column], label_width: int) -> list[str]:
    """Return the lines of a section: the title next to the column headings, then the rows.

    Columns that do not fit side by side are printed below the first columns. A title wider than the row names is on a
    separate line. A wide row name is wrapped.
    """
    lines: list[str] = []
    blanks = " " * INDENT
    wrapped = [
        textwrap.wrap(name, label_width - 1, initial_indent=blanks, subsequent_indent=2 * blanks) for name in names
    ]
    for block in _blocks(columns, WIDTH - label_width):
        own_line = len(title) >= label_width
        depth = max(len(column.heading) for column in block)
        first = [title if line == 0 and not own_line else "" for line in range(depth)]
        rows = [[text, *("".join(c.heading[line : line + 1]) for c in block)] for line, text in enumerate(first)]
        for index, name in enumerate(wrapped):
            rows.append([name[0], *(column.cells[index] for column in block)])
            rows += [[rest, *[""] * len(block)] for rest in name[1:]]
        drawn = table([""] * (1 + len(block)), rows)
        lines += ["", *([title] if own_line else []), *drawn.text([label_width, *(c.width for c in block)])[1:]]
    return lines


def _column(heading: Sequence[str], cells: Sequence[str], room: int, least: int = 0) -> _Column:
    return _Column(heading, cells, min(room, GAP + max([least, *map(len, [*heading, *cells])])))


def _blocks(columns: Sequence[_Column], width: int) -> list[list[_Column]]:
    """Split the columns into groups that fit side by side."""
    blocks: list[list[_Column]] = []
    room = 0
    for column in columns:
        if column.width > room:
            blocks.append([])
            room = width
        blocks[-1].append(column)
        room -= column.width
    return blocks


def _shown(summary: Summary) -> Sequence[str]:
    return summary.models if len(summary.models) <= MODELS_SHOWN else summary.models[:MODELS_OF_MANY]


def _notes(summary: Summary) -> list[str]:
    notes = ["Mean +-sample standard deviation over runs; in percent unless a label names another unit."]
    if rest := len(summary.models) - len(_shown(summary)):
        notes.insert(0, f"The first {MODELS_OF_MANY} models; {rest:,} more are in summary.csv and summary.md.")
    measures = [measure for section in sections(summary) if not section.detail for measure in section.measures]
    notes += summary.not_compared(measures)
    if texts := [*incomplete_texts(summary), *failure_texts(summary)]:
        notes.append(
            f"* Runs that failed, or have no score ({len(summary.failures)}). Means are over all runs with a score; "
            "means without failed runs are in summary.csv (mean_without_failed)."
        )
        notes += [f"  {text}" for text in texts[:FAILURES_SHOWN]]
        if (rest := len(texts) - FAILURES_SHOWN) > 0:
            notes.append(f"  and {rest} more, listed in summary.md")
    if counts := verdict_counts(summary):
        notes.append(f"Compared with published values: {counts} (rows in summary.csv).")
    return notes
