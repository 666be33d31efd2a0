"""The tables of `summary.md` as LaTeX for a paper, each as a `table` environment."""

from collections.abc import Iterator
from dataclasses import replace

from hatchery.analysis.summary import Summary
from hatchery.rendering.table import divided
from hatchery.views.score_table import SIDE_BY_SIDE, Score, table_of
from hatchery.views.summary_sections import sections

HEAD = r"""% The tables of {experiment}: \input this file, or copy a table.
% A mean is followed by the sample standard deviation over its runs; summary.csv gives the number of runs.
% Bold: the best number of a column, and numbers within noise of the best, if the noise is known.
"""


def latex_summary(summary: Summary) -> str:
    """Return the text of `summary.tex`: tables with models as rows. Cells contain the mean and the standard deviation
    over runs, and the number of failed runs.
    """
    return "\n".join([HEAD.format(experiment=summary.experiment), *_tables(summary)])


def _tables(summary: Summary) -> Iterator[str]:
    number = 0
    for section in sections(summary):
        models = summary.with_numbers(section.measures)
        for measures in divided(section.measures, SIDE_BY_SIDE):
            number += 1
            made = table_of(summary, measures, models, section.title, best=True)
            label = f"{summary.experiment}-{number:02}".replace("_", "-")
            shown = replace(made, notes=(section.note,)).shown(Score.cell)
            yield shown.latex_or_reason(summary.experiment, label)
