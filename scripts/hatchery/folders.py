"""Names that follow from folders. This module imports the standard library only.

Registries by folder: every module of a package is an entry with the name of its file, so no list of entries is needed.
The package's `__init__.py` is the registry and defines what an entry contains. Helpers of the entries are outside of
the folder.
"""

from pathlib import Path


def names_in_folder(registry: str) -> tuple[str, ...]:
    """Return the sorted names of the modules in the folder of a package's `__init__.py` (its `__file__`), without
    importing them.
    """
    return tuple(sorted(path.stem for path in Path(registry).parent.glob("*.py") if path.stem != "__init__"))


UNDECLARED = ("checkpoints", "finetuning_runs", "benchmarks", "settings")
"""Folders of `results/` that no stage declares. They hold no manifests of finished stages, but possibly many files."""
