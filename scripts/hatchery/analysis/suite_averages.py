"""What the averages over tasks that the papers and the challenge print are over; `task_averages` takes them.

Which tasks enter, in which units and how several metrics of one task are joined first decides more than the models do
(docs/papers/elc-bert.md, "Averages"; docs/papers/babylm-evaluation.md, "Statistics"). The features behind the ambiguous
tasks of MSGS (docs/papers/babylm-evaluation.md, "MSGS"; ELC-BERT, Figure 3) are told from their names, which are
irregular: `relative_token_position` twice, `relative_position` once.
"""

import math
import re
from collections.abc import Mapping

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
# LTG-BERT Table 6: of each task, the metrics that are averaged before the tasks are; HANS is not among them.
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


def dynabench_score(averages: Mapping[str, float]) -> float:
    """The leaderboard's total of `blimp` (17 files), `glue` and `msgs`, all in percent: 0.5, 0.3 and 0.2 of them."""
    return math.fsum(weight * averages[name] for name, weight in DYNABENCH_WEIGHTS.items())


# In the order of ELC-BERT's Figure 3, rows from top to bottom, columns from left to right.
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
