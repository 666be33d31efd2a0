"""The averages over tasks that the papers and the challenge print, as named functions over the values of tasks.

Which tasks enter, in which units and how several metrics of one task are joined first decides more than the models do
(docs/papers/elc-bert.md, "Averages"; docs/papers/babylm-evaluation.md, "Statistics"). Values keep the unit in which
they come; a task that is missing is an error, never a smaller average. The features behind the ambiguous tasks of MSGS
(docs/papers/babylm-evaluation.md, "MSGS"; ELC-BERT, Figure 3) are told from their names, which are irregular:
`relative_token_position` twice, `relative_position` once.
"""

import math
import re
from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

from hatchery.errors import EvaluationError

Key = TypeVar("Key", bound=Hashable)

# (task, metric) -> value; the names are those of `config/tasks/`, the metrics those of `evaluation.metrics`.
TaskValues = Mapping[str, float]
MetricValues = Mapping[tuple[str, str], float]

# Phenomena of BLiMP with the number of their paradigms, 67 in all (docs/papers/babylm-evaluation.md, "Phenomena of
# BLiMP").
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
# LTG-BERT Table 6: the metrics that are averaged inside a task before the tasks are; HANS is not among them.
LTG_GLUE_METRICS: dict[str, tuple[tuple[str, str], ...]] = {
    "BoolQ": (("superglue_boolq", "accuracy"),),
    "CB": (("superglue_cb", "accuracy"), ("superglue_cb", "macro_f1")),
    "CoLA": (("glue_cola", "mcc"),),
    "COPA": (("superglue_copa", "accuracy"),),
    "MNLI": (("glue_mnli", "accuracy"), ("glue_mnli:mismatched", "accuracy")),
    "MRPC": (("glue_mrpc", "accuracy"), ("glue_mrpc", "f1")),
    "MultiRC": (("superglue_multirc", "answer_f1"), ("superglue_multirc", "question_exact_match")),
    "QNLI": (("glue_qnli", "accuracy"),),
    "QQP": (("glue_qqp", "accuracy"), ("glue_qqp", "f1")),
    "SST-2": (("glue_sst2", "accuracy"),),
    "STS-B": (("glue_stsb", "pearson"), ("glue_stsb", "spearman")),
    "ReCoRD": (("superglue_record", "record_f1"), ("superglue_record", "record_exact_match")),
    "RTE": (("glue_rte", "accuracy"),),
    "WiC": (("superglue_wic", "accuracy"),),
}
# LTG-BERT Table 3, "GLUE": four accuracies.
LTG_GLUE_SUBSET = (
    ("glue_mnli", "accuracy"),
    ("glue_mrpc", "accuracy"),
    ("glue_qnli", "accuracy"),
    ("glue_sst2", "accuracy"),
)
# A fit to the ten printed rows of the leaderboard (docs/papers/babylm-evaluation.md, "Leaderboard"); the weights are
# published nowhere.
DYNABENCH_WEIGHTS = {"blimp": 0.5, "glue": 0.3, "msgs": 0.2}


def paradigm_mean(paradigms: TaskValues) -> float:
    """Mean over the 67 paradigms of BLiMP: LTG-BERT's "BLiMP"."""
    if len(paradigms) != (expected := sum(PARADIGMS_OF_PHENOMENON.values())):
        raise EvaluationError(f"BLiMP: got {len(paradigms)} paradigms, expected {expected}")
    return _mean(list(paradigms.values()))


def paradigm_mean_of_phenomena(phenomena: TaskValues) -> float:
    """The mean over the 67 paradigms where only the means of the 12 phenomena over their paradigms are printed."""
    values = _chosen(phenomena, tuple(PARADIGMS_OF_PHENOMENON), "BLiMP")
    weights = list(PARADIGMS_OF_PHENOMENON.values())
    return math.fsum(weight * value for weight, value in zip(weights, values, strict=True)) / sum(weights)


def phenomenon_mean(phenomena: TaskValues) -> float:
    """Mean over the 12 phenomena: "BLiMP" in the tables of BabyLM and ELC-BERT."""
    return _mean(_chosen(phenomena, tuple(PARADIGMS_OF_PHENOMENON), "BLiMP"))


def supplement_mean(files: TaskValues) -> float:
    """Mean over the five files of BabyLM's supplement."""
    return _mean(_chosen(files, SUPPLEMENT_FILES, "BLiMP supplement"))


def leaderboard_blimp_mean(files: TaskValues) -> float:
    """Mean over the 12 + 5 = 17 files of BLiMP and supplement: "BLiMP" on the leaderboard of BabyLM 2023."""
    return _mean(_chosen(files, (*PARADIGMS_OF_PHENOMENON, *SUPPLEMENT_FILES), "BLiMP and supplement"))


def babylm_glue_mean(tasks: TaskValues) -> float:
    """Mean over the 11 runs of BabyLM's (Super)GLUE, MNLI matched and mismatched both among them."""
    return _mean(_chosen(tasks, BABYLM_GLUE_TASKS, "BabyLM GLUE"))


def babylm_glue_mean_without_wsc(tasks: TaskValues) -> float:
    """The same without WSC, whose value is the constant answer's for many models."""
    kept = tuple(task for task in BABYLM_GLUE_TASKS if task != "babylm_wsc")
    return _mean(_chosen(tasks, kept, "BabyLM GLUE"))


def msgs_mean(tasks: TaskValues) -> float:
    """Mean Linguistic Bias Score over the six ambiguous tasks; controls do not enter."""
    return _mean(_chosen(tasks, MSGS_AMBIGUOUS_TASKS, "MSGS"))


def edge_probing_mean(tasks: TaskValues) -> float:
    """Mean over POS, DP, SRL, NER and coreference."""
    return _mean(_chosen(tasks, EDGE_PROBING_TASKS, "edge probing"))


def ltg_glue_mean(metrics: MetricValues) -> float:
    """LTG-BERT Table 6, "Average": first the mean of the metrics inside each task, then that of the 14 tasks.

    `("glue_mnli:mismatched", "accuracy")` is MNLI on its second scored set.
    """
    return _mean([_mean(_chosen(metrics, keys, "LTG-BERT GLUE")) for keys in LTG_GLUE_METRICS.values()])


def ltg_glue_subset_mean(metrics: MetricValues) -> float:
    """LTG-BERT Table 3, "GLUE": the accuracies on MNLI matched, MRPC, QNLI and SST-2."""
    return _mean(_chosen(metrics, LTG_GLUE_SUBSET, "LTG-BERT GLUE, Table 3"))


def dynabench_score(averages: TaskValues) -> float:
    """The leaderboard's total of `blimp` (17 files), `glue` and `msgs`, all in percent: 0.5, 0.3 and 0.2 of them."""
    values = _chosen(averages, tuple(DYNABENCH_WEIGHTS), "leaderboard")
    return math.fsum(weight * value for weight, value in zip(DYNABENCH_WEIGHTS.values(), values, strict=True))


def root_mean_square(deviations: Sequence[float]) -> float:
    """What both papers print behind an average over tasks: the root of the mean of the squared deviations of tasks.

    It is the deviation of a typical task, not that of the average (`deviation_of_run_averages`).
    """
    if not deviations:
        raise EvaluationError("average over tasks: got no deviations, expected one for each task")
    return math.sqrt(_mean([deviation**2 for deviation in deviations]))


def deviation_of_run_averages(runs_of_tasks: Sequence[Sequence[float]]) -> float:
    """Sample deviation (n - 1) over runs of the mean over tasks; run i of every task belongs together.

    Raises EvaluationError where tasks have different numbers of runs, or fewer than two.
    """
    counts = sorted({len(runs) for runs in runs_of_tasks})
    if len(counts) != 1 or counts[0] < 2:
        raise EvaluationError(f"average over tasks: tasks have {counts} runs, expected two or more, the same for all")
    averages = [_mean(values) for values in zip(*runs_of_tasks, strict=True)]
    mean = _mean(averages)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in averages) / (len(averages) - 1))


def _chosen(values: Mapping[Key, float], keys: Sequence[Key], average: str) -> list[float]:
    for key in keys:
        if key not in values:
            raise EvaluationError(f"average of {average}: {key!r} is missing, expected a value for each of {len(keys)}")
    return [values[key] for key in keys]


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


# In the order of Figure 3, rows from top to bottom, columns from left to right.
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
    """Linguistic and surface feature of an ambiguous task of MSGS, as keys of the tables above; None for any other.

    The task may stand in a suite of another name: `demo_msgs_main_verb_lexical_content_the` is one, too.
    """
    found = _TASK.search(task)
    if found is None:
        return None
    stem = found.group(1)
    ending = next(ending for ending in _SURFACE_ENDINGS if stem.endswith(ending))
    return stem.removesuffix(ending), _SURFACE_ENDINGS[ending]
