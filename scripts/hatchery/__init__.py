"""Hatchery's library, for all steps from raw corpora to result tables. The folder `scripts/` is the import root.

The functions in `__all__` are the interface for users (docs/python.md). Each function is imported when it is first
used, so an import of one module of the library does not import all functions.
"""

from typing import TYPE_CHECKING, Any

from hatchery.errors import HatcheryError

if TYPE_CHECKING:
    from hatchery.public import evaluate, export, job, model, reading, results, suites, surprisals, train

__all__ = [
    "HatcheryError",
    "evaluate",
    "experiment",
    "export",
    "job",
    "model",
    "reading",
    "results",
    "suites",
    "surprisals",
    "train",
]


def __getattr__(name: str) -> Any:
    from pkgutil import resolve_name

    if name in ("experiment", "export"):
        # Return the package, which is callable and calls the function of the same name.
        return resolve_name(f"hatchery.{name}")
    if name in __all__:
        return resolve_name(f"hatchery.public:{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return all names, including names that are not yet imported, for tab completion and the documentation."""
    return sorted({*globals(), *__all__})
