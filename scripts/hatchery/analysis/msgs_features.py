"""The features behind the ambiguous tasks of MSGS, told from the names of the tasks.

Source: docs/papers/babylm-evaluation.md, "MSGS"; ELC-BERT, Figure 3: three linguistic by two surface features, six
tasks, whose names are irregular (`relative_token_position` twice, `relative_position` once). Controls have no pair of
features.
"""

import re

from hatchery.analysis.suite_averages import MSGS_AMBIGUOUS_TASKS

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
