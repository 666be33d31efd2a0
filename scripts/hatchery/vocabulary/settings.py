"""Settings of a vocabulary and of a selection of text with it."""

from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import MinLen

from hatchery.corpora.raw_texts import RawTextOptions
from hatchery.settings.base import Count, Natural, ReadingName, Settings


@dataclass(frozen=True, kw_only=True)
class VocabularySettings(Settings):
    """Settings of a vocabulary."""

    kind: Literal["transcripts", "word_list"]
    """Content of the source: CHILDES tables with one utterance per row, or a list of words with frequencies."""
    reading: ReadingName = "corrected"
    """as_published reproduces the authors' errors (glued compounds, TRUE and FALSE in capitals, the lost word nan);
    corrected does not. hatchery/vocabulary/word_lists.py lists the errors."""
    files: Annotated[tuple[str, ...], MinLen(1)] = ("*.csv",)
    """Shell patterns of the files inside the source."""
    encoding: str = "utf-8"
    """Encoding of the source, the dictionary and the released list."""
    appended_words: tuple[str, ...] = ()
    """Words that are added without any test, after all others."""
    word_column: str = "word"
    """Name of the column of words in a word list."""
    frequency_column: str | None = "frequency"
    """Name of the column of frequencies in a word list; null if there is no such column."""


@dataclass(frozen=True, kw_only=True)
class SelectionKeys(Settings):
    """The selected texts, and the rule of the selection."""

    options: RawTextOptions | None = None
    """The files to read and their format; null reads the documents of a corpus."""
    level: Literal["sentences", "spans", "windows"]
    """Unit of selection. sentences: sentences within the vocabulary, split by Punkt in raw texts, or line by line in a
    corpus. spans: windows of words within the vocabulary, including overlaps. windows: randomly drawn windows, the
    unconstrained comparison set."""
    reading: ReadingName = "corrected"
    """Version of the comparison between words and vocabulary; see hatchery/vocabulary/comparison.py."""
    lower_case: bool = True
    """Convert documents to lower case before all other steps, as the papers do; the selected text is then in lower
    case."""
    minimum_counted_words: Natural | None = None
    """Minimum number of counted words in a text; null is 6 for sentences, 41 for spans and 0 for windows."""
    window_words: Count = 110
    """Number of words in a span or window."""
    stride_words: Count = 30
    """Number of words between the starts of two consecutive spans."""
    documents_per_unit: Count | None = None
    """Number of documents of a file within which equal texts count once; null uses the whole corpus."""
    documents_per_text: Count | None = 1
    """Number of documents that are joined before windows are drawn; null joins the whole corpus."""
    windows_per_text: Count = 1
    """Number of windows drawn from a text; a text with fewer windows contributes all of them."""
    seed: Natural = 0
    """Random seed of the draw of windows."""
    rows_per_shard: Count = 500_000
    """Number of texts in one Parquet file."""

    def __post_init__(self) -> None:
        if self.minimum_counted_words is None:
            least = {"sentences": 6, "spans": 41, "windows": 0}
            object.__setattr__(self, "minimum_counted_words", least[self.level])


@dataclass(frozen=True, kw_only=True)
class SelectionSettings(SelectionKeys):
    """The texts that are selected from a source, and the rule of the selection."""

    name: str
    """Name of the selection."""
    sentence_model: str | None = None
    """Name of the source of Punkt parameters that replace our own."""
