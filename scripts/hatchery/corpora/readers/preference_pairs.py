"""Preference pairs, read from the rows of a table, as documents of two lines, or of three lines with a prompt.

The lines of a document are the prompt (if there is one), the chosen text, and the rejected text. The rows are minimal
pairs, such as those of BLiMP (`sentence_good`, `sentence_bad`), or stories with a preferred and a rejected ending. As
in `parallel_text`, whose functions read the files, white space within a text becomes one space.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import MinLen

from hatchery.corpora.documents import CorpusSourceKeys, RawDocument, Reader, ReaderContext
from hatchery.corpora.readers import parallel_text
from hatchery.raw.registration import RawSource
from hatchery.settings.base import RefusedError, Settings
from hatchery.settings.fields import NotEmpty

EQUAL_TEXTS = "a chosen text that equals its rejected text"


@dataclass(frozen=True)
class PreferencePairsOptions(Settings):
    """Options of the reader `preference_pairs`: the files of each split, and the columns of the pairs."""

    files: Annotated[dict[Literal["train", "dev", "test", "any"], NotEmpty], MinLen(1)]
    """Shell pattern of the tables (.jsonl, .json, .csv, .tsv, .parquet) of each split. Tables under the key `any`
    belong to no split; their pairs are divided into splits according to the corpus's key `split`.
    """
    chosen: NotEmpty = "sentence_good"
    """Column or field of the preferred text; `answers.best` is a field of an object."""
    rejected: NotEmpty = "sentence_bad"
    """Column or field of the rejected text."""
    prompt: NotEmpty | None = None
    """Column or field of the text that precedes the preferred and the rejected text; a row without text in this column
    has no prompt. `null`: no pair has a prompt.
    """
    encoding: str = "utf-8"
    """Encoding of all files; Parquet is always UTF-8."""

    def __post_init__(self) -> None:
        if len({self.chosen, self.rejected, self.prompt}) < 3:
            raise RefusedError("rejected", f"got {self.rejected!r}, expected different columns for all texts of a pair")

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the prompt (if any), the chosen and the rejected text, in the order of a document's lines."""
        return (*(() if self.prompt is None else (self.prompt,)), self.chosen, self.rejected)

    @property
    def as_tables(self) -> parallel_text.ParallelTextOptions:
        """Return the options of the reader `parallel_text` for the same tables. With these options, functions of
        `parallel_text` list the tables and find the split of a table.
        """
        columns = self.chosen, self.rejected
        return parallel_text.ParallelTextOptions(
            {split: (of,) for split, of in self.files.items()}, columns, self.encoding
        )


@dataclass(frozen=True, kw_only=True)
class PreferencePairsSource(CorpusSourceKeys):
    """Source of pairs of a preferred and a rejected text."""

    reader: Literal["preference_pairs"]
    """Reader of preference pairs in the columns of a table; every pair becomes a document of two lines, or of three
    lines with a prompt."""
    options: PreferencePairsOptions
    """Options of the reader."""


def files(source: RawSource, options: PreferencePairsOptions) -> list[str]:
    """Return the names of the tables, in the order of the splits in the option `files`. Raises SourceError if a pattern
    matches no file, or if two patterns match the same file.
    """
    return parallel_text.files(source, options.as_tables)


def read(source: RawSource, file: str, context: ReaderContext) -> Iterator[RawDocument]:
    """Yield the pairs of one table. Pairs with an empty text or with two equal texts are counted as rejected.

    Raises SourceError naming file and line for a row that lacks one of the columns, or has a value that is not text.
    """
    options: PreferencePairsOptions = context.options
    split = parallel_text.split_of(source, file, options.as_tables)
    for document in parallel_text.documents_of(_pairs(source, file, options), file, split, context):
        *_, chosen, rejected = document.text.split("\n")
        if chosen == rejected:
            context.rejections.count(EQUAL_TEXTS, sample=chosen)
        else:
            yield document


def _pairs(source: RawSource, file: str, options: PreferencePairsOptions) -> parallel_text.Pairs:
    for texts in parallel_text.rows(source, file, options.columns, options.encoding):
        # Omit a prompt without text, because `documents_of` rejects a pair with an empty line.
        yield texts[1:] if options.prompt is not None and not texts[0].split() else texts


READER = Reader(PreferencePairsSource, files, read, holds="preferences")
