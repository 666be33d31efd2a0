"""Names that follow from folders, or that folders have: it needs the standard library alone.

Registries by folder: every module of a package is an entry, called like its file; there is no list to enter it in. The
`__init__.py` of the package is the registry, which knows what the module of an entry holds. What only helps entries
lies beside the folder.
"""

from pathlib import Path


def names_in_folder(registry: str) -> tuple[str, ...]:
    """The names of the modules beside a package's `__init__.py` (its `__file__`), sorted; none of them is imported."""
    return tuple(sorted(path.stem for path in Path(registry).parent.glob("*.py") if path.stem != "__init__"))


UNDECLARED = ("checkpoints", "finetuning_runs", "benchmarks", "settings")
"""Folders of `results/` that no stage declares. They hold no manifest of a finished stage, and may hold many files."""
