"""Options for reading files of the user's own text."""

import dataclasses
from dataclasses import dataclass
from typing import Annotated, Literal

from hatchery.corpora.prose import ProseOptions
from hatchery.corpora.raw_texts import Patterns
from hatchery.settings.base import conflict, omitted_at_default
from hatchery.settings.fields import Text, Unique

SentencesName = Annotated[
    str, Text("^(line|none|punkt:[a-z]+)$", "line, none, or punkt: and a language, such as punkt:english")
]
Delimiter = Annotated[str, Text('^[^"\r\n]$', 'one character, such as ";" or "\\t"')]


@dataclass(frozen=True)
class PlainTextOptions(ProseOptions):
    """Format of your own files. The keys from `paragraphs` to `encoding`, and `tagged`, apply to files of text and to
    tables (.csv, .tsv, .jsonl, .parquet); `cut_files` applies only to files of text. The keys from `delimiter` to
    `numeric_columns`, and `punctuation_column` and `punctuation`, apply only to tables. Most files of text need no key;
    a table needs `column` unless the column's name is `text`.
    """

    cleaning: Literal["none", "encoding", "minimal", "full"] = "encoding"
    """Cleaning of the text. `encoding` only repairs wrongly decoded characters. `minimal` also makes quotes straight,
    and unifies ligatures, widths, accents and entities, as the papers do. `full` also repairs the spaces and quotes of
    text whose tokens are separated by spaces.
    """
    sentences: SentencesName | None = None
    """Sentence splitting. `line` keeps every line unchanged as a sentence; `none` joins the lines of a paragraph;
    `punkt:<language>` also splits the paragraph into sentences. `null` recognises the role of the lines in each file:
    wrapped lines are joined into paragraphs, and all other lines are kept; if the corpus's `languages` contain only
    `en`, paragraphs are split into sentences as English.
    """
    files: str | Patterns = ("*.txt", "*.md", "*.markdown", "*.csv", "*.tsv", "*.jsonl", "*.json", "*.parquet")
    """Shell patterns that select the files of the source."""
    exclude: tuple[str, ...] = ("README*", "LICENSE*", "LICENCE*", "dataset_infos.json")
    """Shell patterns of files to skip; the default skips files that describe the data."""
    format: Literal["text", "csv", "jsonl", "parquet"] | None = None
    """Format of all files. `null` derives the format of each file from its suffix; a suffix such as .gz is ignored."""
    encoding: str = "utf-8"
    """Encoding of all files."""
    cut_files: Literal["auto", "always", "never"] = "auto"
    """Division of text files into documents, at blank lines or else at line ends, if `lines_per_document` is `null`.
    `auto` divides files larger than 1 MiB, or all files if the source has fewer than 20 files. Tagged text (`tagged`)
    is never divided.
    """
    delimiter: Delimiter | None = None
    r"""Column separator of a table, such as ";" or "\t"; `null` is a tab for .tsv files, otherwise a comma."""
    column: str = "text"
    """Column of a table, or field of a JSON object, that contains the text."""
    document_column: str | None = None
    """Column that identifies documents: rows of a file with the same value form one document. `null` makes each row a
    document.
    """
    keep: dict[str, Patterns] = dataclasses.field(default_factory=dict)
    """Rows to keep, as lists of values by column: a kept row has one of the listed values in every listed column."""
    leave_out: dict[str, Patterns] = omitted_at_default({})
    """Rows to drop, as lists of values by column: a row with a listed value in any listed column is dropped. In a
    value, * matches any text, as in category: ["padding*"].
    """
    licence_column: str | None = omitted_at_default(None)
    """Column with the licence of each row. The licence is recorded with the document and summarised on the corpus card;
    `null` records no licences.
    """
    numeric_columns: Annotated[tuple[str, ...], Unique()] = omitted_at_default(())
    """Numeric columns that are kept with each document, such as a reading level, so that training can be ordered by one
    of these columns (`order: {by: column}`).
    """
    tagged: bool = False
    """True if the text is written as word/TAG, one sentence per line, as in the Brown corpus."""
    punctuation_column: str | None = None
    """Column that determines the punctuation mark that is added to a row without final punctuation mark, for
    transcripts; `null` adds no marks.
    """
    punctuation: dict[str, str] = dataclasses.field(default_factory=lambda: {"question": "?"})
    """Mapping from values of `punctuation_column` to the added punctuation mark; for all other values, a full stop is
    added.
    """

    @property
    def punkt_language(self) -> str | None:
        """Return the language of the sentence model that the options select, or None."""
        return self.sentences.removeprefix("punkt:") if self.sentences and ":" in self.sentences else None

    def __post_init__(self) -> None:
        for key, value in (("licence_column", self.licence_column), ("numeric_columns", self.numeric_columns)):
            if value and (self.document_column or self.lines_per_document):
                other = "document_column" if self.document_column else "lines_per_document"
                raise conflict(key, value, f"`{other}`", "a document then consists of several rows")
        if self.sentences is not None and self.tagged:
            raise conflict("sentences", self.sentences, "`tagged`", "each line of a tagged text is a sentence")
        if self.punctuation_column and self.tagged:
            reason = "a tagged text has its own punctuation"
            raise conflict("punctuation_column", self.punctuation_column, "`tagged`", reason)
