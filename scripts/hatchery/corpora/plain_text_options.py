"""Options for reading files of the user's own text."""

import dataclasses
from dataclasses import dataclass
from typing import Annotated, Literal

from hatchery.corpora.prose import ProseOptions
from hatchery.corpora.raw_texts import Patterns
from hatchery.settings.base import RefusedError, omitted_at_default
from hatchery.settings.fields import Text

SentencesName = Annotated[
    str, Text("^(line|none|punkt:[a-z]+)$", "line, none, or punkt: and a language, such as punkt:english")
]
Delimiter = Annotated[str, Text('^[^"\r\n]$', 'one character, such as ";" or "\\t"')]


@dataclass(frozen=True)
class PlainTextOptions(ProseOptions):
    """How files of one's own are read. The keys from `paragraphs` to `cut_files` are of running text, and `tagged`
    is, too; those from `delimiter` to `licence_column`, and both of punctuation, are of tables alone (.csv, .tsv,
    .jsonl, .parquet). For most text no key is needed; a table needs `column` if its text is not in `text`."""

    cleaning: Literal["none", "encoding", "minimal", "full"] = "encoding"
    """encoding undoes wrong decodings and changes nothing else; minimal also makes quotes straight and ligatures,
    widths, accents and entities uniform, as the papers do, full also the spaces and quotes of words written apart."""
    sentences: SentencesName | None = None
    """What becomes the sentences of the corpus: line keeps every line as it is; none joins the lines of a paragraph,
    punkt:<language> cuts it into sentences, too. null looks at each file: wrapped lines are joined, all others kept;
    paragraphs are cut as English where `languages` of the corpus says en alone."""
    files: str | Patterns = ("*.txt", "*.md", "*.markdown", "*.csv", "*.tsv", "*.jsonl", "*.json", "*.parquet")
    """Shell patterns of the files inside the source."""
    exclude: tuple[str, ...] = ("README*", "LICENSE*", "LICENCE*", "dataset_infos.json")
    """Shell patterns of files that are left out; by default what lies beside data to describe it."""
    format: Literal["text", "csv", "jsonl", "parquet"] | None = None
    """Format of all files; null takes it from the suffix, also before .gz and the like."""
    encoding: str = "utf-8"
    """Encoding of all files."""
    cut_files: Literal["auto", "always", "never"] = "auto"
    """Whether text files are cut into documents, at blank lines or else at line ends, where `lines_per_document` does
    not say how; auto cuts files of more than 1 MiB, and every file where there are fewer than 20."""
    delimiter: Delimiter | None = None
    """Separator of the columns of a table, such as ";" or "\\t"; null is a tab for .tsv files, otherwise a comma."""
    column: str = "text"
    """Column or field with the text."""
    document_column: str | None = None
    """Rows of a file with the same value here form one document; null makes each row one."""
    keep: dict[str, Patterns] = dataclasses.field(default_factory=dict)
    """Only rows with one of these values in each of these columns."""
    leave_out: dict[str, Patterns] = omitted_at_default({})
    """No rows with one of these values in one of these columns, where * is any text: category: ["padding*"]."""
    licence_column: str | None = omitted_at_default(None)
    """Column with the licence of each row, which is kept with the document and summed on the card of the corpus."""
    tagged: bool = False
    """Text written as word/TAG, one sentence per line, as in the Brown corpus."""
    punctuation_column: str | None = None
    """Column that decides the final mark of a row without one, for transcripts."""
    punctuation: dict[str, str] = dataclasses.field(default_factory=lambda: {"question": "?"})
    """Final mark by the value of that column; a full stop for other values."""

    @property
    def punkt_language(self) -> str | None:
        """Return the language whose sentence model the options select, if any."""
        return self.sentences.removeprefix("punkt:") if self.sentences and ":" in self.sentences else None

    def __post_init__(self) -> None:
        if self.licence_column is not None and (self.document_column or self.lines_per_document):
            key = "document_column" if self.document_column else "lines_per_document"
            raise RefusedError(
                "licence_column", f"cannot be set together with `{key}`, with which a document has several rows"
            )
        if self.sentences is not None and self.tagged:
            raise RefusedError("sentences", "cannot be set together with `tagged`, whose lines are sentences")
        if self.punctuation_column and self.tagged:
            raise RefusedError(
                "punctuation_column", "cannot be set together with `tagged`, whose text has its own punctuation"
            )
