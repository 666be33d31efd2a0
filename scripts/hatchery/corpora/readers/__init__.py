"""The readers of raw corpora, with one file per reader. The names of these files are the allowed values of the key
`reader` of a corpus.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from hatchery.corpora.documents import Reader
from hatchery.errors import ConfigError
from hatchery.folders import names_in_folder
from hatchery.settings.fields import ChosenBy
from hatchery.typed import build

READERS: dict[str, Reader] = {name: import_module(f"{__name__}.{name}").READER for name in names_in_folder(__file__)}

if TYPE_CHECKING:
    CorpusSource = Any
else:
    CorpusSource = ChosenBy("reader").among(reader.source for reader in READERS.values())
    """A source in the file of a corpus."""


def reader_and_options(name: str, options: Mapping[str, Any], where: str) -> tuple[Reader, Any]:
    """Return the reader called `name` and its checked options. Raises ConfigError for an unknown reader or invalid
    options. The message begins with `where`, the position of the source.
    """
    if name not in READERS:
        raise ConfigError(f"{where}.reader: there is no reader {name!r}; there are: {', '.join(READERS)}")
    try:
        return READERS[name], build(READERS[name].options, options)
    except ConfigError as error:
        raise ConfigError(f"{where}.options.{error}") from error
