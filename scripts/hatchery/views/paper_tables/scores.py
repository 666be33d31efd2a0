"""Our scores, read from `summary.parquet` under the paper's names, and the totals of the leaderboard computed of them.

A summary has no rows for what the organisers of BabyLM 2023 computed over suites (docs/papers/babylm-evaluation.md,
"Leaderboard"): the mean over 17 files of BLiMP and supplement, and the weighted total. They are added here under the
suite `leaderboard`.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from hatchery.analysis.aggregates import Aggregate, average_of_tasks
from hatchery.analysis.measurements import ACCURACY
from hatchery.analysis.suite_averages import PARADIGMS_OF_PHENOMENON, SUPPLEMENT_FILES, dynabench_score
from hatchery.analysis.summary_rows import read_summary
from hatchery.analysis.task_averages import AVERAGE, AVERAGE_METRIC
from hatchery.errors import EvaluationError
from hatchery.views.paper_tables.settings import PaperTablesSettings

LEADERBOARD = "leaderboard"
LEADERBOARD_FILES = (
    *(("blimp_filtered", phenomenon) for phenomenon in PARADIGMS_OF_PHENOMENON),
    *(("supplement_filtered", file) for file in SUPPLEMENT_FILES),
)
Measure = tuple[str, str, str]


Scores = Mapping[str, Mapping[Measure, Aggregate]]
"""Scores by model, then by (suite, task, metric) in the names of the paper."""


def read_scores(path: Path, settings: PaperTablesSettings) -> dict[str, dict[Measure, Aggregate]]:
    """The scores of all models of `settings`; a model without any has an empty mapping.

    Raises ManifestError for a summary that was altered or is none, EvaluationError naming the file for one of another
    experiment, a model that the settings do not list, and two rows that the paper would call the same.
    """
    scores: dict[str, dict[Measure, Aggregate]] = {model: {} for model in settings.models}
    for row in read_summary(path):
        if row.experiment != settings.experiment or row.model not in scores:
            raise EvaluationError(
                f"{path}: {row.model!r} of {row.experiment!r} is none of the models of {settings.experiment!r},"
                f" {', '.join(scores)}"
            )
        measure = (settings.papers_suite(row.suite), settings.papers_task(row.task), row.metric)
        own = scores[row.model]
        if measure in own:
            raise EvaluationError(f"{path}: {', '.join(measure)} stands there twice without {settings.prefix!r}")
        counts = row.n, row.n_failed, row.mean_without_failed, row.n_without_number
        own[measure] = Aggregate(row.mean, row.std, *counts)
    for own in scores.values():
        own |= leaderboard_scores(own)
    return scores


def leaderboard_scores(scores: Mapping[Measure, Aggregate]) -> dict[Measure, Aggregate]:
    """The columns of the leaderboard that one model's scores give; none where an ingredient is missing.

    BLiMP over 17 files, GLUE over eleven tasks, MSGS over the six ambiguous tasks (ELC-BERT's mean, not the
    unpublished scale of the board), and the total of 0.5, 0.3 and 0.2 of them. Deviations of the averages are the root
    mean squares of the deviations of what is averaged; the total has none.
    """
    found: dict[str, Aggregate] = {}
    files = [scores.get((suite, name, ACCURACY)) for suite, name in LEADERBOARD_FILES]
    known = [score for score in files if score is not None and score.mean is not None]
    if len(known) == len(files):
        found["blimp"] = average_of_tasks(known)
    for name, suite in (("glue", "babylm_glue"), ("msgs", "msgs")):
        if (average := scores.get((suite, AVERAGE, AVERAGE_METRIC))) is not None:
            found[name] = average
    averages = {name: score.mean for name, score in found.items() if score.mean is not None}
    if len(averages) == 3:
        total = average_of_tasks(list(found.values()))
        found[AVERAGE] = replace(total, mean=dynabench_score(averages), std=None)
    return {(LEADERBOARD, name, AVERAGE_METRIC): score for name, score in found.items()}
