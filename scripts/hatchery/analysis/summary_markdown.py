"""The summary as a Markdown document: one table per section with models as rows, then the published values and notes.

Every table cell says mean, deviation and number of runs, and the notes define them, so that the document can be read
without this code.
"""

from collections.abc import Sequence

from hatchery.analysis.published import DEVIATIONS, TOLERANCE_WITHOUT_DEVIATION
from hatchery.analysis.summary import Summary, SummaryRow
from hatchery.analysis.summary_layout import Section, cell_text, failure_text, readable, sections, verdict_counts

UNMATCHED_SHOWN = 10


def markdown_summary(summary: Summary) -> str:
    """The whole document."""
    blocks = [f"# Summary of {summary.experiment}"]
    for section in sections(summary):
        blocks += [f"## {section.title}", section.note, _section_table(summary, section)]
    blocks += _published(summary)
    blocks += ["## Notes", "\n".join(f"- {note}" for note in _notes(summary))]
    return "\n\n".join(blocks) + "\n"


def _section_table(summary: Summary, section: Section) -> str:
    header = ["model", *(measure.label for measure in section.measures)]
    body = [
        [model, *(_cell(summary.row(model, m.suite, m.task, m.metric)) for m in section.measures)]
        for model in summary.models
    ]
    return _table(header, body, left=1)


def _cell(row: SummaryRow | None) -> str:
    if row is None:
        return "-"
    failed = f", {row.n_failed} failed" if row.n_failed else ""
    return f"{cell_text(row, '± ').rstrip('*')} (n={row.n}{failed})"


def _published(summary: Summary) -> list[str]:
    compared = [row for row in summary.rows if row.verdict]
    if not compared:
        return []
    header = ["model", "suite", "task", "metric", "ours", "published", "difference", "verdict", "source", "note"]
    body = []
    for row in compared:
        deviation = "" if row.published_std is None else f" ± {row.published_std:.1f}"
        body.append(
            [
                row.model,
                row.suite,
                readable(row.task),
                readable(row.metric),
                _cell(row),
                f"{row.published_mean:.1f}{deviation}",
                "" if row.difference is None else f"{row.difference:+.1f}",
                row.verdict,
                row.published_source,
                summary.published_notes.get((row.model, row.suite, row.task, row.metric), ""),
            ]
        )
    return ["## Beside the published values", f"In all: {verdict_counts(summary)}.", _table(header, body, left=4)]


def _notes(summary: Summary) -> list[str]:
    notes = [
        "mean ± standard deviation over n runs. A run is one pretraining seed and, in fine-tuning, one fine-tuning "
        "seed. The deviation is the sample standard deviation (divided by n - 1); it is empty when n = 1.",
        "A failed run (only one class predicted, MCC 0, or not a number) is counted and named, and left out of mean, "
        "deviation and n. Published means may well contain such runs.",
        "`phenomenon average` weighs phenomena equally, `paradigm average` weighs paradigms equally.",
        "`fine-tuning, tasks` is the mean of the task means (first metric of each task), with the root mean square of "
        "their deviations, as papers print it; `fine-tuning, runs` averages the tasks within each run first.",
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
    notes += [f"Failed run: {failure_text(failure)}." for failure in summary.failures]
    return notes


def _table(header: Sequence[str], body: Sequence[Sequence[str]], left: int) -> str:
    """A Markdown table whose first `left` columns are flush left and the others flush right."""
    rule = [":--" if column < left else "--:" for column in range(len(header))]
    return "\n".join(
        "| " + " | ".join(text.replace("|", "\\|") for text in row) + " |" for row in [header, rule, *body]
    )
