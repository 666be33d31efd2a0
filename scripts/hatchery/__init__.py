"""Hatchery's library: raw corpora in, result tables out. The folder `scripts/` is the import root.

`hatchery.results`, `hatchery.experiment` and `hatchery.model` are for people (docs/python.md); they are read when they
are first asked for, so that the library's own modules are imported without them.
"""

from typing import TYPE_CHECKING, Any

from hatchery.errors import HatcheryError

if TYPE_CHECKING:
    from hatchery.public import job, model, results, train

__all__ = ["HatcheryError", "experiment", "job", "model", "results", "train"]


def __getattr__(name: str) -> Any:
    from pkgutil import resolve_name

    if name == "experiment":
        return resolve_name("hatchery.experiment")
    if name in __all__:
        return resolve_name(f"hatchery.public:{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
