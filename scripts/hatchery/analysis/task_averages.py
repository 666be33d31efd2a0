"""Averages over the fine-tuning tasks of a suite, for the summary.

Four averages are published: over eleven tasks of BabyLM's GLUE, over the six ambiguous tasks of MSGS, over LTG-BERT's
fourteen tasks (after averaging the metrics of each task), and over LTG-BERT's five probes. If a suite has all tasks of
its published average, `average` is computed like the published average. If tasks are missing, `average_of_<n>_tasks` is
the unweighted mean over the measured tasks (for MSGS, the measured ambiguous tasks). For all other suites, `average` is
the unweighted mean. A prefix of the suite's name is allowed: `my_msgs` with the tasks `my_msgs_...` is averaged like
`msgs`. Each average has two rows, with different deviations: the root mean square of the tasks' standard deviations,
and the standard deviation of the runs' averages (`aggregates`).

Sources: docs/papers/elc-bert.md, "Averages"; docs/papers/babylm-evaluation.md, "Statistics".
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hatchery.analysis.aggregates import Aggregate, aggregate_runs, average_of_tasks, average_per_run, first_failure
from hatchery.evaluation.basis import joined

if TYPE_CHECKING:
    import polars as pl

# Number of paradigms of each phenomenon of BLiMP, 67 in total (docs/papers/babylm-evaluation.md, "Phenomena of BLiMP").
PARADIGMS_OF_PHENOMENON = {
    "anaphor_agreement": 2,
    "argument_structure": 9,
    "binding": 7,
    "control_raising": 5,
    "determiner_noun_agreement": 8,
    "ellipsis": 2,
    "filler_gap": 7,
    "irregular_forms": 2,
    "island_effects": 8,
    "npi_licensing": 7,
    "quantifiers": 4,
    "subject_verb_agreement": 6,
}
SUPPLEMENT_FILES = (
    "hypernym",
    "qa_congruence_easy",
    "qa_congruence_tricky",
    "subject_aux_inversion",
    "turn_taking",
)
BABYLM_GLUE_TASKS = tuple(
    f"babylm_{task}"
    for task in ("cola", "sst2", "mrpc", "qqp", "mnli", "mnli_mm", "qnli", "rte", "boolq", "multirc", "wsc")
)
MSGS_AMBIGUOUS_TASKS = (
    "msgs_main_verb_lexical_content_the",
    "msgs_main_verb_relative_token_position",
    "msgs_control_raising_lexical_content_the",
    "msgs_control_raising_relative_token_position",
    "msgs_syntactic_category_lexical_content_the",
    "msgs_syntactic_category_relative_position",
)
EDGE_PROBING_TASKS = ("probe_pos", "probe_dp", "probe_srl", "probe_ner", "probe_coref")
# The metrics of each GLUE task in LTG-BERT, Table 6. The metrics of a task are averaged first, then the tasks. HANS is
# not included.
LTG_GLUE_METRICS: tuple[tuple[tuple[str, str], ...], ...] = (
    (("superglue_boolq", "accuracy"),),
    (("superglue_cb", "accuracy"), ("superglue_cb", "macro_f1")),
    (("glue_cola", "mcc"),),
    (("superglue_copa", "accuracy"),),
    (("glue_mnli", "accuracy"), ("glue_mnli_mismatched", "accuracy")),
    (("glue_mrpc", "accuracy"), ("glue_mrpc", "f1")),
    (("superglue_multirc", "answer_f1"), ("superglue_multirc", "question_exact_match")),
    (("glue_qnli", "accuracy"),),
    (("glue_qqp", "accuracy"), ("glue_qqp", "f1")),
    (("glue_sst2", "accuracy"),),
    (("glue_stsb", "pearson"), ("glue_stsb", "spearman")),
    (("superglue_record", "record_f1"), ("superglue_record", "record_exact_match")),
    (("glue_rte", "accuracy"),),
    (("superglue_wic", "accuracy"),),
)
# The four accuracies that LTG-BERT Table 3 averages as "GLUE".
LTG_GLUE_SUBSET = (
    ("glue_mnli", "accuracy"),
    ("glue_mrpc", "accuracy"),
    ("glue_qnli", "accuracy"),
    ("glue_sst2", "accuracy"),
)
# Weights of the leaderboard's total score. The weights are not published, so they were fitted to the ten rows of the
# printed leaderboard (docs/papers/babylm-evaluation.md, "Leaderboard").
DYNABENCH_WEIGHTS = {"blimp": 0.5, "glue": 0.3, "msgs": 0.2}


def dynabench_score(averages: Mapping[str, float]) -> float:
    """Return the total score of the BabyLM 2023 leaderboard: the weighted mean of `blimp` (17 files), `glue` and `msgs`
    in percent, with the weights 0.5, 0.3 and 0.2.
    """
    return math.fsum(weight * averages[name] for name, weight in DYNABENCH_WEIGHTS.items())


# Features of MSGS, in the order of ELC-BERT's Figure 3. The figure shows linguistic features as rows and surface
# features as columns.
LINGUISTIC_FEATURES = {
    "main_verb": "main verb",
    "syntactic_category": "syntactic category",
    "control_raising": "control raising",
}
SURFACE_FEATURES = {"lexical_content": "lexical content", "relative_position": "relative token position"}

_PREFIX = "msgs_"
_STEMS = tuple(task.removeprefix(_PREFIX) for task in MSGS_AMBIGUOUS_TASKS)
_TASK = re.compile(rf"(?:^|_){_PREFIX}({'|'.join(_STEMS)})$")
_SURFACE_ENDINGS = {
    "_lexical_content_the": "lexical_content",
    "_relative_token_position": "relative_position",
    "_relative_position": "relative_position",
}


def bias_features(task: str) -> tuple[str, str] | None:
    """Return (linguistic feature, surface feature) of an ambiguous MSGS task; None for any other task.

    Both features (docs/papers/babylm-evaluation.md, "MSGS"; ELC-BERT, Figure 3) are derived from the task's name. Names
    are irregular: two contain `relative_token_position`, and one contains `relative_position`. A name may have a
    prefix, as in `demo_msgs_main_verb_lexical_content_the`.
    """
    found = _TASK.search(task)
    if found is None:
        return None
    stem = found.group(1)
    ending = next(ending for ending in _SURFACE_ENDINGS if stem.endswith(ending))
    return stem.removesuffix(ending), _SURFACE_ENDINGS[ending]


AVERAGE = "average"
AVERAGE_METRIC = "score_percent"
RUN_AVERAGE_METRIC = "run_score_percent"
WITHOUT_WSC = "average_without_wsc"
LTG_TABLE_3 = "average_of_ltg_bert_table_3"

# One term of an average: pairs (task, metric) whose values are averaged first. The empty metric "" is the task's first
# metric.
Member = tuple[tuple[str, str], ...]


def _first_metrics(tasks: Iterable[str]) -> tuple[Member, ...]:
    return tuple(((task, ""),) for task in tasks)


PUBLISHED_AVERAGES: dict[str, dict[str, tuple[Member, ...]]] = {
    "babylm_glue": {
        AVERAGE: _first_metrics(BABYLM_GLUE_TASKS),
        WITHOUT_WSC: _first_metrics(task for task in BABYLM_GLUE_TASKS if task != "babylm_wsc"),
    },
    "msgs": {AVERAGE: _first_metrics(MSGS_AMBIGUOUS_TASKS)},
    "probing": {AVERAGE: _first_metrics(EDGE_PROBING_TASKS)},
    "glue": {
        AVERAGE: LTG_GLUE_METRICS,
        LTG_TABLE_3: tuple((key,) for key in LTG_GLUE_SUBSET),
    },
    # The paper on reduced vocabulary does not name the metrics of its average, nor MNLI-mm. So all tasks, MNLI-mm
    # included, are averaged with equal weights.
    "rv_glue": {},
}


@dataclass(frozen=True)
class TaskAverage:
    """One average over tasks: its name (column `task`), its metric, and its aggregated value (mean and deviation). The
    metric determines how the deviation was computed.

    `manifests` are the manifests from which the average was computed. `without_number` lists tasks for which no run has
    a score; the average then has no value. The list is empty for the metric `run_score_percent`.
    """

    task: str
    metric: str
    aggregate: Aggregate
    manifests: tuple[str, ...]
    without_number: tuple[str, ...] = ()


def task_averages(suite: str, measured: "pl.DataFrame") -> list[TaskAverage]:
    """Return the averages of one model over its fine-tuning tasks of one suite. `measured` contains the measurements of
    these tasks.

    There is no average over fewer than two tasks.
    """
    import polars as pl

    named = measured.with_columns(pl.col("metric").str.strip_suffix("_percent"))
    numbers = pl.concat([named, named.filter("primary").with_columns(metric=pl.lit(""))])
    present = set(numbers.select("task", "metric").iter_rows())
    averages = []
    for name, members in _averages(suite, measured, present).items():
        runs = _runs_of(members, numbers)
        aggregates = [aggregate_runs(task) for task in runs.partition_by("task", maintain_order=True)]
        lacking = tuple(member[0][0] for member, task in zip(members, aggregates, strict=True) if task.mean is None)
        by_task = average_of_tasks(aggregates)
        by_run = average_per_run(runs, len(members), by_task.blind_guess)
        manifests = tuple(runs["manifest"].explode().unique())
        basis = joined((members[place], text) for place, texts in runs.select("task", "basis").rows() for text in texts)
        by_task, by_run = (replace(each, seeds=runs["seed"].n_unique(), basis=basis) for each in (by_task, by_run))
        averages.append(TaskAverage(name, AVERAGE_METRIC, by_task, manifests, lacking))
        averages.append(TaskAverage(name, RUN_AVERAGE_METRIC, by_run, manifests))
    return averages


def _runs_of(members: Sequence[Member], numbers: "pl.DataFrame") -> "pl.DataFrame":
    """Return one row for each term of an average and each run. A term is one metric of a task, or several metrics that
    are averaged first. The column `task` is the index of the term, and `value` is the mean of its metrics.

    A row counts as failed if any task of the term failed. A row has no value if any metric of the term is missing.
    """
    import polars as pl

    parts = [(place, len(member), *key) for place, member in enumerate(members) for key in member]
    wanted = pl.DataFrame(parts, ["member", "parts", "task", "metric"], orient="row")
    rows = wanted.join(numbers, on=["task", "metric"], maintain_order="left_right")
    # Polars may compute these means: with at most two values, the order of the summation has no effect.
    means = [
        pl.when(pl.col(column).count() == pl.col("parts").first()).then(pl.col(column).mean()).alias(column)
        for column in ("value", "blind_guess")
    ]
    run = ("seed", "finetuning_seed", "learning_rate")
    return rows.group_by(pl.col("member").alias("task"), *run, maintain_order=True).agg(
        *means, first_failure(), pl.col("sampling_deviation").first(), "manifest", pl.col("basis").fill_null("")
    )


def _averages(
    suite: str, measured: "pl.DataFrame", present: Iterable[tuple[str, str]]
) -> dict[str, tuple[Member, ...]]:
    """Return the terms of each average of a suite's tasks, by name of the average. `present` contains the measured
    pairs (task, metric).

    The result contains each published average of the suite whose terms are all in `present`. If none of these averages
    is named `average`, and if at least two tasks were measured, a mean over the measured tasks of the suite is added
    (for MSGS, over the measured ambiguous tasks). Its name is `average_of_<n>_tasks`, or `average` if the suite has no
    published average.
    """
    original = original_suite(suite)
    prefix = suite.removesuffix(original)
    published = {
        name: tuple(tuple((prefix + task, metric) for task, metric in member) for member in members)
        for name, members in PUBLISHED_AVERAGES.get(original, {}).items()
    }
    keys = set(present)
    complete = {
        name: members for name, members in published.items() if all(key in keys for member in members for key in member)
    }
    if AVERAGE in complete:
        return complete
    tasks = sorted(measured.filter("main")["task"].unique())
    if original == "msgs":
        # Control tasks measure generalisation, and ambiguous tasks measure bias. A mean of both has no meaning, so
        # average only the ambiguous tasks.
        tasks = [task for task in tasks if task.removeprefix(prefix) in MSGS_AMBIGUOUS_TASKS]
    if len(tasks) < 2:
        return complete
    return {**complete, f"average_of_{len(tasks)}_tasks" if published else AVERAGE: _first_metrics(tasks)}


def original_suite(suite: str) -> str:
    """Return the name of the published suite that `suite` equals after removing a prefix such as `my_`. If there is no
    such published suite, return `suite` itself.
    """
    named = [name for name in PUBLISHED_AVERAGES if f"_{suite}".endswith(f"_{name}")]
    return max(named, key=len, default=suite)
