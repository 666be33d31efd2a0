"""What the summaries for people show, in which order and under which names; Markdown and plain text share it.

A section is a list of measures, and a measure picks one row of the summary per model. How the sections are drawn
(models as rows, or as columns) is up to each writer.
"""

from collections import Counter
from dataclasses import dataclass

from hatchery.analysis.aggregates import AVERAGE, AVERAGE_METRIC, RUN_AVERAGE_METRIC
from hatchery.analysis.measurements import (
    FINETUNING_SUITE,
    PARADIGM_AVERAGE,
    PHENOMENON_AVERAGE,
    PRETRAINING_SUITE,
    Measurement,
)
from hatchery.analysis.summary import Summary, SummaryRow

ACCURACY = "accuracy_percent"
AVERAGES = (PHENOMENON_AVERAGE, PARADIGM_AVERAGE)


@dataclass(frozen=True)
class Measure:
    """One number per model: the row of `suite`, `task` and `metric`, shown as `label`."""

    label: str
    suite: str
    task: str
    metric: str


@dataclass(frozen=True)
class Section:
    """Measures that are shown together; `note` says what they are."""

    title: str
    note: str
    measures: list[Measure]


def sections(summary: Summary) -> list[Section]:
    """The sections of an experiment: an overview, every suite of minimal pairs, the fine-tuning tasks.

    Measures without any row are left out, and so are sections without measures.
    """
    present = {(row.suite, row.task, row.metric) for row in summary.rows}
    candidates = [
        Section("Overview", "Averages in percent; perplexity per masked token.", _overview(summary)),
        *(_suite_section(summary, suite) for suite in summary.suites),
        Section("Fine-tuning", "Percent, over pretraining seeds x fine-tuning seeds.", _tasks(summary)),
    ]
    kept = [
        Section(s.title, s.note, [m for m in s.measures if (m.suite, m.task, m.metric) in present]) for s in candidates
    ]
    return [section for section in kept if section.measures]


def _overview(summary: Summary) -> list[Measure]:
    suites = [
        measure
        for suite in summary.suites
        for measure in (
            Measure(f"{readable(suite)}, phenomena", suite, PHENOMENON_AVERAGE, ACCURACY),
            Measure(f"{readable(suite)}, paradigms", suite, PARADIGM_AVERAGE, ACCURACY),
        )
        if measure.task == PHENOMENON_AVERAGE or not _averages_agree(summary, suite)
    ]
    return [
        Measure("development perplexity", PRETRAINING_SUITE, "development", "perplexity"),
        *suites,
        Measure("fine-tuning, tasks", FINETUNING_SUITE, AVERAGE, AVERAGE_METRIC),
        Measure("fine-tuning, runs", FINETUNING_SUITE, AVERAGE, RUN_AVERAGE_METRIC),
    ]


def _averages_agree(summary: Summary, suite: str) -> bool:
    """Whether the two averages are equal for every model, as they are where each phenomenon has one paradigm."""
    for model in summary.models:
        by_phenomenon, by_paradigm = (summary.row(model, suite, task, ACCURACY) for task in AVERAGES)
        if by_phenomenon and by_paradigm and by_phenomenon.mean != by_paradigm.mean:
            return False
    return True


def _suite_section(summary: Summary, suite: str) -> Section:
    tasks = {row.task for row in summary.rows if row.suite == suite}
    measures = [Measure(readable(task), suite, task, ACCURACY) for task in sorted(tasks.difference(AVERAGES))]
    title = f"Minimal pairs: {readable(suite)}"
    return Section(title, "Accuracy in percent by phenomenon; chance is 50.", measures)


def _tasks(summary: Summary) -> list[Measure]:
    """Per task the primary metric, named with the task, then its other metrics."""
    measures = []
    for task in summary.tasks:
        metrics = {row.metric for row in summary.rows if (row.suite, row.task) == (FINETUNING_SUITE, task)}
        primary = summary.primary_metrics.get(task)
        for metric in sorted(metrics, key=lambda metric: (metric != primary, metric)):
            label = f"{readable(task)} {readable(metric.removesuffix('_percent'))}"
            measures.append(Measure(label, FINETUNING_SUITE, task, metric))
    return measures


def readable(name: str) -> str:
    """A name of the configuration as words."""
    return name.replace("_", " ")


def cell_text(row: SummaryRow | None, plus_minus: str = "±") -> str:
    """`mean ± std` with one decimal (two for perplexity); a dash where there is no row, `failed` where no run is left.

    A star marks a mean from which failed runs were left out.
    """
    if row is None:
        return "-"
    if row.mean is None:
        return "failed"
    decimals = 1 if row.metric.endswith("_percent") else 2
    deviation = "" if row.std is None else f" {plus_minus}{row.std:.{decimals}f}"
    return f"{row.mean:.{decimals}f}{deviation}{'*' if row.n_failed else ''}"


def failure_text(failure: Measurement) -> str:
    """Which run failed, and how."""
    seed = "" if failure.finetuning_seed is None else f", seed {failure.finetuning_seed}"
    return f"{failure.cell.cell}, {failure.task}{seed}: {readable(failure.failed)}"


def verdict_counts(summary: Summary) -> str:
    """How many rows have which verdict, such as `3 within, 1 above`; empty without published values."""
    counts = Counter(row.verdict for row in summary.rows if row.verdict)
    return ", ".join(
        f"{counts[verdict]} {verdict}" for verdict in ("within", "above", "below", "not comparable") if counts[verdict]
    )
