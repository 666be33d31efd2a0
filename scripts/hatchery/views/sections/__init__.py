"""Sections of a summary for kinds of evaluation that show more than a line for each number, one file per kind.

A file has the name of its kind and a function `sections(summary, kind, evaluation)`.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from hatchery.folders import names_in_folder

KINDS = names_in_folder(__file__)


def own_sections(kind: str) -> Callable[..., list[Any]] | None:
    """Return the function that makes the sections of a kind; None for a kind without a file."""
    return import_module(f"{__name__}.{kind}").sections if kind in KINDS else None
