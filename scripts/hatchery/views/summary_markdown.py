"""The summary as a Markdown document: a section per suite with models as rows, then the published values and notes.

A section of many measures is several tables below each other, so that each fits a page. Every table cell says mean,
deviation and number of runs, and the notes define them, so that the document can be read without this code.
"""

from collections.abc import Sequence

from hatchery.analysis.summary import Summary
from hatchery.analysis.summary_layout import (
    Section,
    cell_text,
    models_of,
    readable,
    sections,
    verdict_counts,
)
from hatchery.analysis.summary_rows import BLIND_GUESS, SummaryRow, decimals_of, interval_text, runs_text
from hatchery.rendering.table import divided, table
from hatchery.views.summary_notes import general_notes

# Measures side by side in one table.
COLUMNS_SHOWN = 6


def markdown_summary(summary: Summary) -> str:
    """The whole document."""
    blocks = [f"# Summary of {summary.experiment}"]
    for section in sections(summary):
        blocks += [f"## {section.title}", section.note, *_section_tables(summary, section)]
    blocks += _published(summary)
    blocks += ["## Notes", "\n".join(f"- {note}" for note in general_notes(summary))]
    return "\n\n".join(blocks) + "\n"


def _section_tables(summary: Summary, section: Section) -> list[str]:
    models = models_of(summary, section)
    return [
        table(
            ["model", *(measure.label for measure in measures)],
            [
                *(
                    [summary.label(model), *(_cell(measure.row(summary, model)) for measure in measures)]
                    for model in models
                ),
                *_blind_guesses([[measure.row(summary, model) for model in models] for measure in measures]),
            ],
        ).markdown()
        for measures in divided(section.measures, COLUMNS_SHOWN)
    ]


def _blind_guesses(columns: Sequence[Sequence[SummaryRow | None]]) -> list[list[str]]:
    """What a blind guess has, a line of one cell per column; none where it is known of no column."""
    found = [
        {f"{row.blind_guess:.{decimals_of(row.metric)}f}" for row in rows if row and row.blind_guess is not None}
        for rows in columns
    ]
    return [[BLIND_GUESS, *(" or ".join(sorted(texts)) or "-" for texts in found)]] if any(found) else []


def _cell(row: SummaryRow | None) -> str:
    if row is None:
        return "-"
    counts = row.n, row.n_failed, row.n_without_number
    runs = runs_text(*counts, row.mean_without_failed, decimals_of(row.metric))
    interval = "" if row.mean is None else interval_text(row.mean, row.sampling_deviation, row.metric)
    return f"{cell_text(row, '± ').rstrip('*')} ({interval}{', ' * bool(interval)}n={runs})"


def _published(summary: Summary) -> list[str]:
    compared = [row for row in summary.rows if row.verdict]
    if not compared:
        return []
    header = ["model", "task", "metric", "ours", "published", "difference", "verdict", "source", "note"]
    blocks = ["## Beside the published values", f"In all: {verdict_counts(summary)}."]
    for suite in dict.fromkeys(row.suite for row in compared):
        body = [_compared(summary, row) for row in compared if row.suite == suite]
        blocks += [f"### {readable(suite)}", table(header, body, words=3).markdown()]
    return blocks


def _compared(summary: Summary, row: SummaryRow) -> list[str]:
    deviation = "" if row.published_std is None else f" ± {row.published_std:.1f}"
    return [
        summary.label(row.model),
        readable(row.task),
        readable(row.metric),
        _cell(row),
        f"{row.published_mean:.1f}{deviation}",
        "" if row.difference is None else f"{row.difference:+.1f}",
        row.verdict,
        row.published_source,
        summary.published_notes.get((row.model, row.suite, row.task, row.metric), ""),
    ]
