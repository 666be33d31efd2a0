"""The summary as a Markdown document: a section per suite with models as rows, then the published values and notes.

A section of many measures is several tables below each other, so that each fits a page. Every table cell says mean,
deviation and number of runs, and the notes define them, so that the document can be read without this code.
"""

from collections.abc import Sequence

from hatchery.analysis.scores import Measure
from hatchery.analysis.summary import Summary
from hatchery.analysis.summary_rows import SummaryRow
from hatchery.rendering.escaping import readable
from hatchery.rendering.table import Table, divided, table
from hatchery.views.score_tables import BLIND_GUESS, COMPARED, SIDE_BY_SIDE, compared_cells, verdict_counts
from hatchery.views.summary_notes import general_notes
from hatchery.views.summary_sections import Section, sections


def markdown_summary(summary: Summary) -> str:
    """The whole document."""
    blocks = [f"# Summary of {summary.experiment}"]
    for section in sections(summary):
        blocks += [f"## {section.title}", section.note, *_section_tables(summary, section)]
    blocks += _published(summary)
    blocks += ["## Notes", "\n".join(f"- {note}" for note in general_notes(summary))]
    return "\n\n".join(blocks) + "\n"


def _section_tables(summary: Summary, section: Section) -> list[str]:
    models = summary.with_numbers(section.measures)
    return [_table(summary, models, shown).markdown() for shown in divided(section.measures, SIDE_BY_SIDE)]


def _table(summary: Summary, models: Sequence[str], measures: Sequence[Measure]) -> Table:
    rows = [[summary.label(model), *(_cell(summary.of(measure, model)) for measure in measures)] for model in models]
    guesses = [" or ".join(sorted(summary.blind_guesses(measure))) for measure in measures]
    rows += [[BLIND_GUESS, *(guess or "-" for guess in guesses)]] if any(guesses) else []
    return table(["model", *(measure.label for measure in measures)], rows)


def _cell(row: SummaryRow | None) -> str:
    if row is None:
        return "-"
    interval = row.interval()
    return f"{row.number()} ({interval}{', ' * bool(interval)}n={row.runs()})"


def _published(summary: Summary) -> list[str]:
    compared = summary.compared()
    blocks = ["## Beside the published values", f"In all: {verdict_counts(summary)}."] if compared else []
    for suite, rows in compared.items():
        body = [compared_cells(summary, row, summary.published_notes, _cell(row), decimals=1) for row in rows]
        blocks += [f"### {readable(suite)}", table(COMPARED, body, words=3).markdown()]
    return blocks
