"""The layouts, a file each: how the fields of a record become the inputs of a model."""

from importlib import import_module
from typing import TYPE_CHECKING

from hatchery.folders import names_in_folder

if TYPE_CHECKING:
    from hatchery.evaluation.tasks.layout import Layout

LAYOUTS = names_in_folder(__file__)


def layout_called(name: str) -> "Layout":
    """The layout of a name in LAYOUTS."""
    found: Layout = import_module(f"{__name__}.{name}").LAYOUT
    return found
