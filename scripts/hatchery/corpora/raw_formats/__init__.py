"""Raw formats, a file each, for every way in which corpora are handed out; none is imported before it is asked for."""

from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING

from hatchery.corpora.text_files import Lines
from hatchery.folders import names_beside

if TYPE_CHECKING:
    from hatchery.corpora.raw_texts import RawText

FORMATS = names_beside(__file__)


def texts_of(name: str, lines: Lines, field: str) -> "Iterator[RawText]":
    """The texts in what is given of a file of this format; `field` is the field or column that has them."""
    found: Iterator[RawText] = import_module(f"{__name__}.{name}").read(lines, field)
    return found
