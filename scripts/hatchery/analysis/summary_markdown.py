"""The summary as a Markdown document: a section per suite with models as rows, then the published values and notes.

A section of many measures is several tables below each other, so that each fits a page. Every table cell says mean,
deviation and number of runs, and the notes define them, so that the document can be read without this code.
"""

from collections.abc import Sequence
from itertools import pairwise

from hatchery.analysis.published import DEVIATIONS, TOLERANCE_WITHOUT_DEVIATION
from hatchery.analysis.summary import Summary, SummaryRow
from hatchery.analysis.summary_layout import (
    Measure,
    Section,
    cell_text,
    failure_texts,
    models_of,
    readable,
    sections,
    verdict_counts,
)

UNMATCHED_SHOWN = 10
# Measures side by side in one table.
COLUMNS_SHOWN = 6


def markdown_summary(summary: Summary) -> str:
    """The whole document."""
    blocks = [f"# Summary of {summary.experiment}"]
    for section in sections(summary):
        blocks += [f"## {section.title}", section.note, *_section_tables(summary, section)]
    blocks += _published(summary)
    blocks += ["## Notes", "\n".join(f"- {note}" for note in _notes(summary))]
    return "\n\n".join(blocks) + "\n"


def _section_tables(summary: Summary, section: Section) -> list[str]:
    models = models_of(summary, section)
    return [
        _table(
            ["model", *(measure.label for measure in measures)],
            [
                [summary.label(model), *(_cell(summary.row(model, m.suite, m.task, m.metric)) for m in measures)]
                for model in models
            ],
            left=1,
        )
        for measures in column_groups(section.measures)
    ]


def column_groups(measures: Sequence[Measure]) -> list[list[Measure]]:
    """The measures in their order, in as few tables of at most COLUMNS_SHOWN columns as do, of about equal width."""
    tables = -(-len(measures) // COLUMNS_SHOWN)
    bounds = [round(index * len(measures) / tables) for index in range(tables + 1)]
    return [list(measures[first:end]) for first, end in pairwise(bounds)]


def _cell(row: SummaryRow | None) -> str:
    if row is None:
        return "-"
    failed = f", {row.n_failed} failed" if row.n_failed else ""
    return f"{cell_text(row, '± ').rstrip('*')} (n={row.n}{failed})"


def _published(summary: Summary) -> list[str]:
    compared = [row for row in summary.rows if row.verdict]
    if not compared:
        return []
    header = ["model", "task", "metric", "ours", "published", "difference", "verdict", "source", "note"]
    blocks = ["## Beside the published values", f"In all: {verdict_counts(summary)}."]
    for suite in dict.fromkeys(row.suite for row in compared):
        body = [_compared(summary, row) for row in compared if row.suite == suite]
        blocks += [f"### {readable(suite)}", _table(header, body, left=3)]
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


def _notes(summary: Summary) -> list[str]:
    notes = [
        "mean ± standard deviation over n runs. A run is one pretraining seed and, in fine-tuning, one fine-tuning "
        "seed and one learning rate; none is selected. The deviation is the sample standard deviation (divided by "
        "n - 1); it is empty when n = 1.",
        "A failed run (only one class predicted, MCC 0, constant output, or not a number) is counted and named, and "
        "left out of mean, deviation and n. Published means may well contain such runs.",
        "`phenomenon average` weighs phenomena equally, `paradigm average` weighs paradigms equally. A tie is no right "
        "answer; with `ties correct` it is, as in the pipeline of BabyLM 2023.",
        "Averages of fine-tuned tasks stay within a suite. `by task` is the mean of the task means (first metric of "
        "each task), with the root mean square of their deviations, as papers print it; `by run` averages the tasks "
        "within each run first. `average` is the published one where its tasks are complete: BabyLM's GLUE over 11 "
        "tasks, MSGS over the six ambiguous tasks without controls, LTG-BERT's GLUE over 14 tasks whose metrics are "
        "joined first, edge probing over five tasks; `average of n tasks` is the plain mean of those that there are.",
    ]
    if any(row.verdict for row in summary.rows):
        notes.append(
            f"Verdict: within when ours differs from the published mean by at most {DEVIATIONS:g} x the combined "
            "standard deviation (root of the sum of squares of both; for a single run of minimal pairs the binomial "
            f"deviation stands in for ours), or by at most {TOLERANCE_WITHOUT_DEVIATION} points where there is none."
        )
    if summary.unmatched:
        shown = "; ".join(", ".join(key) for key in summary.unmatched[:UNMATCHED_SHOWN])
        rest = len(summary.unmatched) - UNMATCHED_SHOWN
        notes.append(
            f"{len(summary.unmatched)} published values have no counterpart here: {shown}"
            + (f"; and {rest} more." if rest > 0 else ".")
        )
    notes += [f"Failed runs: {text}." for text in failure_texts(summary)]
    return notes


def _table(header: Sequence[str], body: Sequence[Sequence[str]], left: int) -> str:
    """A Markdown table whose first `left` columns are flush left and the others flush right."""
    rule = [":--" if column < left else "--:" for column in range(len(header))]
    return "\n".join(
        "| " + " | ".join(text.replace("|", "\\|") for text in row) + " |" for row in [header, rule, *body]
    )
