"""What stands below the tables: whose numbers, which deviation, how many runs, what is bold, what is not comparable."""

from collections.abc import Sequence

from hatchery.analysis.published_values import PAPERS
from hatchery.views.paper_tables.layout import ScoreLayout
from hatchery.views.paper_tables.settings import PaperTablesSettings
from hatchery.views.score_table import PUBLISHED, Line, remarks

SAMPLE_DEVIATION = (
    "± is the sample standard deviation over n runs (divided by n - 1); a run is one pretraining seed and, in"
    " fine-tuning, one fine-tuning seed and one learning rate, and none is selected"
)
AVERAGE_DEVIATION = (
    "± of an average over tasks is the root mean square of the deviations of the tasks, as the papers have it, and not"
    " the deviation of the average"
)
FAILED = (
    "(1 failed): one of the n runs failed (one class only, MCC 0, or constant output); as in the papers, its number is"
    " in mean and deviation (summary.csv has the mean without it). (1 without a number): besides the n runs, one"
    " diverged and is in no mean. Of averages, the fewest runs of a task are counted, and the others of all tasks"
)

DASH = (
    "A dash stands where there is no number: in a published line the paper prints none; in one of ours the experiment"
    " has no such evaluation, no complete average, or no run with a number"
)


def score_notes(
    layout: ScoreLayout, settings: PaperTablesSettings, lines: Sequence[Line], headings: Sequence[str]
) -> tuple[str, ...]:
    """The notes of a table of scores, as sentences without a final stop."""
    paper = PAPERS[settings.published.paper]
    ours = [line for line in lines if line.source != PUBLISHED]
    values = [value for line in ours for value in line.values if value is not None]
    below = "printed lines and ours stand below each other"
    notes = [f"Published: as printed in the {paper} paper; ours: experiment {settings.experiment}; {below}"]
    if any(value.deviation_text for value in values):
        notes.append(SAMPLE_DEVIATION)
        if any("average" in column.task or column.suite == "leaderboard" for column in layout.resolved_columns()):
            notes.append(AVERAGE_DEVIATION)
    if values:
        notes.append("n counts the runs behind the numbers of a line; two counts are the fewest and the most")
    if any(value.failures_text for value in values):
        notes.append(FAILED)
    if layout.change_from:
        notes.append("The first row is absolute; the others are changes from it, with the deviation of the row itself")
    # Which digits are compared matters: equal as shown is equal.
    where = "the table" if layout.best_over == "table" else "its block"
    among = "rows" if layout.models == "columns" else "columns"
    if any(value is not None and value.best for line in lines for value in line.values):
        best = "the best" if layout.bold == "best" else "all within one standard deviation of the best"
        apart = "printed numbers and ours judged apart, ties all bold"
        notes.append(f"Bold: {best} of {where} in each of the {among}, {apart}")
    return (*notes, *common_notes(settings, lines, headings, layout.remark))


def common_notes(
    settings: PaperTablesSettings, lines: Sequence[Line], headings: Sequence[str], remark: str
) -> list[str]:
    """The remark of the layout, the caveat of the experiment, and the remarks on printed numbers."""
    notes = [remark] if remark else []
    if any(value is None or value.mean is None for line in lines for value in line.values):
        notes.append(DASH)
    if rest := len(settings.models) - len(settings.shown):
        notes.append(f"Of our models {len(settings.shown)} are shown; {rest:,} more are in summary.csv")
    if settings.caveat:
        notes.append(f"† No number of ours is comparable with a printed one: {settings.caveat}")
    if reasons := remarks(lines, headings, comparable=False):
        title = "Remarks on printed numbers" if settings.caveat else "† Not comparable with ours"
        notes.append(f"{title}: {'; '.join(reasons)}")
    if about := remarks(lines, headings, comparable=True):
        notes.append(f"Remarks on printed numbers: {'; '.join(about)}")
    return notes
