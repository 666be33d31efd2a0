"""Sections of a summary for suites of fine-tuned tasks."""

from hatchery.analysis.scores import Measure, average_name
from hatchery.analysis.summary import Summary
from hatchery.analysis.summary_rows import SummaryRow
from hatchery.analysis.task_averages import AVERAGE_METRIC, RUN_AVERAGE_METRIC
from hatchery.evaluation.evaluation import Evaluation
from hatchery.rendering.escaping import readable
from hatchery.views.summary_sections import Section, suite_title, with_settings


def sections(summary: Summary, kind: str, evaluation: Evaluation) -> list[Section]:
    """Return two sections for each suite of fine-tuned tasks. The first has the averages over tasks and the first
    metric of each task, and the second has the other metrics of each task.
    """
    suites = dict.fromkeys(task.suite for task in summary.finetuned)
    return [
        section
        for suite in suites
        for section in _tuned_suite_sections(summary, suite, suite_title(evaluation, kind, suite), evaluation.note)
    ]


def _tuned_suite_sections(summary: Summary, suite: str, title: str, over: str) -> list[Section]:
    """Return two sections of a suite of fine-tuned tasks. The first has the averages over tasks and the first metric of
    each task, and the second has the other metrics. `over` names the runs over which scores are means.
    """
    tasks = [task for task in summary.finetuned if task.suite == suite]
    prefix = _common_word([task.task for task in tasks if task.main])
    metrics = {task.metric for task in tasks}
    measures = [
        Measure(average_name(row.task, row.metric), suite, row.task, row.metric)
        for row in _average_rows(summary, (AVERAGE_METRIC, RUN_AVERAGE_METRIC))
        if row.suite == suite
    ]
    for task in tasks:
        label = readable(task.task.removeprefix(prefix))
        label = label if len(metrics) == 1 else f"{label} {_metric_label(task.metric)}"
        measures.append(Measure(label, suite, task.task, task.metric))
    further = [
        Measure(f"{readable(task.task.removeprefix(prefix))} {_metric_label(metric)}", suite, task.task, metric)
        for task in tasks
        for metric in sorted({row.metric for row in summary.rows if (row.suite, row.task) == (suite, task.task)})
        if metric != task.metric
    ]
    what = f"{_metric_label(tasks[0].metric)} in percent" if len(metrics) == 1 else "Scores in percent"
    note = with_settings(f"{what[0].upper()}{what[1:]}, {over}.", summary, suite)
    return [
        Section(title, note, measures),
        Section(f"{title}, further metrics", "Scores are in percent.", further, detail=True),
    ]


def _average_rows(summary: Summary, metrics: tuple[str, ...] = (AVERAGE_METRIC,)) -> list[SummaryRow]:
    """Return one summary row (the first in the summary) for each average over tasks and each metric in `metrics`.
    Suites are in the order of the configuration.
    """
    found: dict[tuple[str, str, int], SummaryRow] = {}
    for row in summary.rows:
        if row.metric in metrics:
            found.setdefault((row.suite, row.task, metrics.index(row.metric)), row)
    suites = list(dict.fromkeys(task.suite for task in summary.finetuned))
    return [found[key] for key in sorted(found, key=lambda key: (suites.index(key[0]), *key[1:]))]


def _metric_label(metric: str) -> str:
    return readable(metric.removesuffix("_percent"))


def _common_word(tasks: list[str]) -> str:
    """Return the first word, with its underscore, that all task names share, such as `babylm_`; empty if they share no
    word.
    """
    beginnings = {task.partition("_")[0] for task in tasks}
    shared = beginnings.pop() + "_" if len(beginnings) == 1 and len(tasks) > 1 else ""
    return shared if all(task.startswith(shared) for task in tasks) else ""
