"""Sections of a summary for suites of minimal pairs."""

from collections.abc import Sequence

from hatchery.analysis.scores import Measure
from hatchery.analysis.summary import Summary
from hatchery.analysis.summary_rows import SummaryRow
from hatchery.evaluation.evaluation import Evaluation
from hatchery.evaluation.minimal_pairs.measurements import (
    ACCURACY,
    ACCURACY_TIES_CORRECT,
    AT_BEST_TEMPERATURE,
    CORRELATION,
    PAIR_AVERAGE,
    PARADIGM_AVERAGE,
    PHENOMENON_AVERAGE,
)
from hatchery.rendering.escaping import readable
from hatchery.views.summary_sections import Section, range_of_guesses, suite_title, with_settings

AVERAGES = (PHENOMENON_AVERAGE, PARADIGM_AVERAGE, PAIR_AVERAGE)


def sections(summary: Summary, kind: str, evaluation: Evaluation) -> list[Section]:
    """Return a section for each suite of minimal pairs."""
    return [
        _suite_section(
            summary, suite, suite_title(evaluation, kind, suite), with_settings(_scores_of(rows), summary, suite)
        )
        for suite in summary.pair_suites
        if (rows := [row for row in summary.rows if row.suite == suite])
    ]


def _scores_of(rows: Sequence[SummaryRow]) -> str:
    """Return a sentence with the metric of a suite of minimal pairs and the score of a blind guess."""
    is_correlation = all(row.metric == CORRELATION for row in rows)
    what = "Spearman's correlation with human preferences" if is_correlation else "Accuracy"
    of_phenomena = [row for row in rows if row.metric in (ACCURACY, CORRELATION) and row.task not in AVERAGES]
    chance = range_of_guesses(of_phenomena)
    return f"{what} in percent by phenomenon{chance and f'; chance is {chance}'}."


def _suite_section(summary: Summary, suite: str, title: str, note: str) -> Section:
    tasks = {row.task for row in summary.rows if row.suite == suite}
    measures = [Measure(readable(task), suite, task, ACCURACY) for task in sorted(tasks.difference(AVERAGES))]
    correlated = sorted(row.task for row in summary.rows if (row.suite, row.metric) == (suite, CORRELATION))
    measures += [
        Measure(f"{readable(task)}, correlation with human preferences", suite, task, CORRELATION)
        for task in dict.fromkeys(correlated)
    ]
    for task in (PHENOMENON_AVERAGE, PARADIGM_AVERAGE):
        if task == PHENOMENON_AVERAGE or not _averages_agree(summary, suite):
            label = f"{readable(task)}, ties correct"
            measures.append(Measure(label, suite, task, ACCURACY_TIES_CORRECT))
            # The score at the best temperature exists only if an option of the experiment requests it.
            label = f"{readable(task)}, best temperature"
            measures.append(Measure(label, suite, task, AT_BEST_TEMPERATURE))
    if any((row.suite, row.metric) == (suite, AT_BEST_TEMPERATURE) for row in summary.rows):
        note += " The best of 61 temperatures is selected on the evaluated pairs, so the score is an upper bound."
    return Section(title, note, measures)


def _averages_agree(summary: Summary, suite: str) -> bool:
    """Return True if the averages over phenomena and over paradigms are equal for all models, for example if each
    phenomenon has one paradigm.
    """
    for model in summary.models:
        by_phenomenon, by_paradigm = (summary.row(model, suite, task, ACCURACY) for task in AVERAGES[:2])
        if by_phenomenon and by_paradigm and by_phenomenon.mean != by_paradigm.mean:
            return False
    return True
