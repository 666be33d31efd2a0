"""Names that follow from folders, or that folders have: it needs the standard library alone.

Registries by folder: every module of a package is an entry, called like its file; there is no list to enter it in. The
`__init__.py` of the package is the registry, which knows what the module of an entry holds. What only helps entries
lies beside the folder.
"""

import re
from pathlib import Path


def names_in_folder(registry: str) -> tuple[str, ...]:
    """The names of the modules beside a package's `__init__.py` (its `__file__`), sorted; none of them is imported."""
    return tuple(sorted(path.stem for path in Path(registry).parent.glob("*.py") if path.stem != "__init__"))


_RULES = Path(__file__).parents[2] / "workflow" / "rules"
RESERVED = (
    *sorted({name for path in _RULES.glob("*.smk") for name in re.findall(r"results/([a-z_]+)/", path.read_text())}),
    *("finetuning_runs", "settings", "checkpoints", "benchmarks"),
)
"""Names below `results/` that experiments share, so that no experiment may have one.

The folders in which rules write, and those that no rule declares.
"""
