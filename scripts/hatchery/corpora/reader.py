"""What a reader is: a record in its own file (`READER`) of `readers/`, beside its options and what a corpus says of it.

A reader says which files of a source it reads and turns one file into documents, streaming. Files are read in different
processes, so a document depends on nothing but its file. Whoever plans imports the file too, so what is slow to import
(lxml, pyarrow) waits inside the functions or in modules that they import.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from hatchery.corpora.cutting import Piece
from hatchery.corpora.documents import RawDocument, ReaderContext
from hatchery.raw.registration import RawSource
from hatchery.raw.settings import SourceKeys as RawInput
from hatchery.settings.fields import ABSENT, BlockName, DataName, NameOr, OneOfKeys, hints_of


@dataclass(frozen=True, kw_only=True)
class SourceKeys(OneOfKeys):
    """A raw source of a corpus."""

    ONE_OF: ClassVar[dict[tuple[str, ...], str]] = {("data",): "data: my_text", ("embedded",): "embedded: text"}

    name: BlockName
    """Appears in the documents and the statistics."""
    data: Annotated[DataName | RawInput, NameOr()] = ABSENT
    """Name of a raw input in config.yaml, or the keys that it would have there. Then it is called like the corpus, and
    one source alone may say it so."""
    embedded: Literal["bnc", "babylm", "text", "childes", "c4", "wikipedia", "bookcorpus", "cbt", "parallel"] = ABSENT
    """Folder of the generated miniature sources."""


@dataclass(frozen=True)
class Reader:
    """A reader: its source in a corpus's file, the files that it reads, and the documents of one of them."""

    source: Any
    """What a corpus says of a source with this reader: its `reader` is the name of the reader's file."""
    files: Callable[[RawSource, Any], list[str]]
    """Names of the members that are read, in reading order. Raises SourceError when there is none."""
    read: Callable[[RawSource, str, ReaderContext], Iterator[RawDocument]]
    """The documents of one file, or of its piece. Raises SourceError or CorpusError naming file and place."""
    divide: Callable[[RawSource, str, Any, int], Iterator[Piece]] | None = None
    """The pieces of one of so many files of a source, with the documents of the whole; none where it is not divided."""
    beside: Callable[[RawSource, str, Any], list[str]] | None = None
    """Files that are read together with one of those that are listed, such as its translation."""
    skipped: Callable[[RawSource, Any], Counter[str]] | None = None
    """Files that nobody chose to leave out and that are not read, by the ending of their names."""

    @property
    def options(self) -> Any:
        """The class of its options."""
        return hints_of(self.source)["options"]
