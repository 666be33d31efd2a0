"""Lists of names that are read from the files of a folder. This module imports only the standard library.

Some packages are registries: each module of the package is an entry, and the file name of the module is the name of the
entry. The package's `__init__.py` finds the entries by listing the folder, and defines the content that each module
must have. Helper modules are in other packages.
"""

from pathlib import Path


def names_in_folder(registry: str) -> tuple[str, ...]:
    """Return the sorted names of a package's modules without importing the modules.

    `registry` is the path of the package's `__init__.py`.
    """
    return tuple(sorted(path.stem for path in Path(registry).parent.glob("*.py") if path.stem != "__init__"))


UNDECLARED = ("checkpoints", "finetuning_runs", "benchmarks", "settings")
"""Folders of `results/` that are not outputs of a stage. They contain no manifests, but may contain many files."""
