"""The summary as a Markdown document: a section per suite with models as rows, then the published values and notes.

A section of many measures is several tables below each other, so that each fits a page. Every table cell says mean,
deviation and number of runs, and the notes define them, so that the document can be read without this code.
"""

from collections.abc import Iterator
from dataclasses import replace

from hatchery.analysis.summary import Summary
from hatchery.rendering.escaping import readable
from hatchery.rendering.table import Content, divided, table
from hatchery.views.score_table import Block, Score, score_of
from hatchery.views.summary_notes import general_notes
from hatchery.views.summary_sections import Section, sections
from hatchery.views.summary_tables import (
    COMPARED,
    SIDE_BY_SIDE,
    blind_guesses,
    compared_cells,
    table_of,
    verdict_counts,
)


def markdown_summary(summary: Summary) -> str:
    """The whole document in Markdown."""
    blocks = [f"# Summary of {summary.experiment}"]
    for section in sections(summary):
        blocks += [f"## {section.title}", section.note, *_section_tables(summary, section)]
    compared = summary.compared()
    blocks += ["## Beside the published values", f"In all: {verdict_counts(summary)}."] if compared else []
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
    """The number with the interval of a single run, and the runs behind it."""
    if score.row is None:
        return score.words
    interval = score.row.interval()
    return replace(score.cell(), remark=f"{interval}{', ' * bool(interval)}n={score.row.runs()}")
