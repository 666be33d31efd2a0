"""Layouts, one per file: conversions of a record's fields to the inputs of a model."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hatchery.evaluation.tasks.layout import Layout


def layout_called(name: str) -> "Layout":
    """Return the layout called `name`, from its file in this folder."""
    found: Layout = import_module(f"{__name__}.{name}").LAYOUT
    return found
