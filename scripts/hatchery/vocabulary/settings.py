"""Settings of a vocabulary, and settings of a selection of text by a vocabulary."""

from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import MinLen

from hatchery.corpora.raw_texts import RawTextOptions
from hatchery.settings.base import Count, Natural, ReadingName, Settings


@dataclass(frozen=True, kw_only=True)
class VocabularySettings(Settings):
    """Source of a vocabulary, and processing of its words."""

    kind: Literal["transcripts", "word_list"]
    """Content of the source: CHILDES tables with one utterance per row, or a list of words with frequencies."""
    reading: ReadingName = "corrected"
    """Version of the word processing. as_published reproduces the authors' errors (joined compounds, TRUE and FALSE in
    capitals, the lost word nan); corrected fixes these errors. hatchery/vocabulary/word_lists.py lists the errors."""
    files: Annotated[tuple[str, ...], MinLen(1)] = ("*.csv",)
    """Shell patterns of the files to read from the source."""
    encoding: str = "utf-8"
    """Encoding of the source, the dictionary and the released list."""
    appended_words: tuple[str, ...] = ()
    """Words that are added at the end of the vocabulary without any test."""
    word_column: str = "word"
    """Name of the column with the words of a word list."""
    frequency_column: str | None = "frequency"
    """Name of the column with the frequencies of a word list; null if there is no such column."""


@dataclass(frozen=True, kw_only=True)
class SelectionKeys(Settings):
    """Unit of the selected texts, and the rule of their selection."""

    options: RawTextOptions | None = None
    """Files to read and their format; null reads the documents of a corpus."""
    level: Literal["sentences", "spans", "windows"]
    """Unit of selection. sentences: sentences within the vocabulary; Punkt splits raw texts, and a line of a corpus is
    a sentence. spans: windows of words within the vocabulary, which may overlap. windows: randomly drawn windows with
    any words, for comparison."""
    reading: ReadingName = "corrected"
    """Version of the division into words and of their look-up; see hatchery/vocabulary/comparison.py."""
    lower_case: bool = True
    """Convert documents to lower case before all other steps, as in the papers; the selected texts are then in lower
    case."""
    minimum_counted_words: Natural | None = None
    """Minimum number of counted words in a text; null means 6 for sentences, 41 for spans and 0 for windows."""
    window_words: Count = 110
    """Maximum number of words in a span or window."""
    stride_words: Count = 30
    """Number of words between the starts of two consecutive spans or windows."""
    documents_per_unit: Count | None = None
    """Number of consecutive documents of a file within which equal texts count once; null means the whole corpus."""
    documents_per_text: Count | None = 1
    """Number of documents that are joined to a text from which windows are drawn; null joins the whole corpus."""
    windows_per_text: Count = 1
    """Number of windows drawn from a text; of a text with fewer windows, all are used."""
    seed: Natural = 0
    """Random seed with which windows are drawn."""
    rows_per_shard: Count = 500_000
    """Number of texts in a Parquet file."""

    def __post_init__(self) -> None:
        if self.minimum_counted_words is None:
            least = {"sentences": 6, "spans": 41, "windows": 0}
            object.__setattr__(self, "minimum_counted_words", least[self.level])


@dataclass(frozen=True, kw_only=True)
class SelectionSettings(SelectionKeys):
    """Settings of a selection of text: unit and rule, name, and sentence model."""

    name: str
    """Name of the selection."""
    sentence_model: str | None = None
    """Name of the source with Punkt parameters; null uses the Punkt parameters of this project."""
