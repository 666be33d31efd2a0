"""The published measurements that a sweep is set beside: Table 6 of the reduced-vocabulary study, LTG-BERT's 166.

The table is a data file, `config/published/tokenizer_selection.csv`; `size` is a number or `pretrained` for the
reference tokenizer of a type. A cell is empty where the source prints nothing.
"""

from collections.abc import Mapping
from pathlib import Path

from hatchery.storage.records import read_rows

PRETRAINED = "pretrained"
VALUES = ("word_split_ratio", "esms", "frequency_at_95_percent", "selected_within_type", "final_choice")
COLUMNS = ("type", "size", *VALUES, "source", "note")

Published = Mapping[tuple[str, str], dict[str, str]]


def read_published_selection(path: str | Path) -> Published:
    """The printed values, as printed, by (type, size). Raises EvaluationError naming file and line."""
    return {
        (texts["type"], texts["size"]): {column: texts[column] for column in VALUES}
        for _, texts in read_rows(path, COLUMNS, COLUMNS[:2])
    }
