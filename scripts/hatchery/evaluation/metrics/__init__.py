"""Metrics of labelled tasks: the functions marked `@metric` in the files of this folder.

A task lists metrics by name; the first metric in the list is its primary metric. A metric is computed from the rows of
one scored set (`scored.Scored`).
"""

import re
from pathlib import Path
from typing import Literal

_MARKED = re.compile(r"^@metric\ndef (\w+)\(", re.MULTILINE)
# Read the names from the source text. Importing the metrics would import NumPy, which planning must not do.
FILES = {
    name: path.stem
    for path in Path(__file__).parent.glob("*.py")
    for name in _MARKED.findall(path.read_text(encoding="utf-8"))
}
METRICS = tuple(sorted(FILES))
Failure = Literal["", "majority_class", "nan", "zero_mcc", "constant"]
"""Kind of a run's failure, empty for a successful run; see `finetuning.scored_sets.failure`."""
