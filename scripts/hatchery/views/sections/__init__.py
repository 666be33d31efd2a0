"""Sections of a summary for kinds of evaluation that need a special layout. Each kind is one file with the kind's name
and a function `sections(summary, kind, evaluation)`, which returns the sections.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from hatchery.folders import names_in_folder

KINDS = names_in_folder(__file__)


def own_sections(kind: str) -> Callable[..., list[Any]] | None:
    """Return the function `sections` of a kind of evaluation; None if this folder has no file for the kind."""
    return import_module(f"{__name__}.{kind}").sections if kind in KINDS else None
