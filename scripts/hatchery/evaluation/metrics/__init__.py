"""The metrics that a task chooses from by name: the functions marked `@metric` in the files of this folder.

A metric looks at the rows of one scored set (`scored.Scored`). The first one that a task names stands for it.
"""

import re
from pathlib import Path
from typing import Literal

_MARKED = re.compile(r"^@metric\ndef (\w+)\(", re.MULTILINE)
# Whoever plans knows the names, and imports no NumPy for them.
FILES = {
    name: path.stem
    for path in Path(__file__).parent.glob("*.py")
    for name in _MARKED.findall(path.read_text(encoding="utf-8"))
}
METRICS = tuple(sorted(FILES))
Failure = Literal["", "majority_class", "nan", "zero_mcc", "constant"]
"""Why a run failed, empty for one that did not; `finetuning.scored_sets.failure` says when."""
