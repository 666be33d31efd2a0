"""Reader of the BNC XML Edition; `bnc_text.py` converts each text to a document."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Literal

from hatchery.corpora.documents import CorpusSourceKeys, RawDocument, Reader, ReaderContext
from hatchery.corpora.raw_files import matching_names
from hatchery.errors import SourceError
from hatchery.raw.registration import RawSource
from hatchery.settings.base import ReadingName, Settings


@dataclass(frozen=True)
class BncOptions(Settings):
    """Options of the reader `bnc_xml`: the files to read, and the version of the converter (published or corrected)."""

    reading: ReadingName = "corrected"
    """Version of the conversion. `as_published` reproduces the published converter; `corrected` fixes the errors of
    this converter that damage text.
    """
    files: str = "*.xml"
    """Shell pattern of the texts in the source. If the source contains a folder `Texts`, only files below this folder
    are read.
    """


@dataclass(frozen=True, kw_only=True)
class BncSource(CorpusSourceKeys):
    """Source with the XML files of the BNC."""

    reader: Literal["bnc_xml"]
    """Reader of the BNC XML Edition."""
    options: BncOptions = field(default_factory=BncOptions)
    """Options of the reader."""


def files(source: RawSource, options: BncOptions) -> list[str]:
    """Return the sorted names of the texts. Raises SourceError if there is no text.

    Only files below a folder `Texts` are texts, because the released archive has further XML files outside this folder.
    If the source is the unpacked `Texts` folder itself, all files are texts.
    """
    names = [name for name in matching_names(source, (options.files,)) if not PurePosixPath(name).name.startswith(".")]
    texts = [name for name in names if "Texts" in PurePosixPath(name).parts[:-1]] or names
    if not texts:
        raise SourceError(f"{source.root}: no file matches {options.files}")
    return texts


def read(source: RawSource, file: str, context: ReaderContext) -> Iterator[RawDocument]:
    """Yield the document of one file. Raises SourceError, naming file and line, for a text that cannot be converted."""
    # Import lxml here, because planning does not need it.
    from hatchery.corpora.bnc_text import read_text

    yield read_text(source, file, context)


READER = Reader(BncSource, files, read)
