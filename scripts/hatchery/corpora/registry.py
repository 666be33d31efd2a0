"""The readers by name: what a corpus configuration may say under `reader`.

A reader is a function from a raw source to documents and a dataclass of its options; adding one means one file with
both and one line here.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hatchery.corpora import bnc_xml, plain_text
from hatchery.corpora.babylm import reader as babylm
from hatchery.corpora.documents import RawDocument, Rejections
from hatchery.errors import ConfigError
from hatchery.storage.sources import RawSource
from hatchery.typed import build


@dataclass(frozen=True)
class Reader:
    """A registered reader: its options and the function that yields documents."""

    options: type
    read: Callable[[RawSource, str, Any, Rejections], Iterator[RawDocument]]


READERS: dict[str, Reader] = {
    "babylm": Reader(babylm.BabylmOptions, babylm.read),
    "bnc_xml": Reader(bnc_xml.BncOptions, bnc_xml.read),
    "plain_text": Reader(plain_text.PlainTextOptions, plain_text.read),
}


def reader_and_options(name: str, options: Mapping[str, Any], where: str) -> tuple[Reader, Any]:
    """The reader called `name` and its checked options. Raises ConfigError, beginning with `where`."""
    if name not in READERS:
        raise ConfigError(f"{where}.reader: there is no reader {name!r}; there are: {', '.join(sorted(READERS))}")
    try:
        return READERS[name], build(READERS[name].options, options)
    except ConfigError as error:
        raise ConfigError(f"{where}.options.{error}") from error
