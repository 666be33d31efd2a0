"""Settings of a vocabulary, and settings of a selection of text, such as sentences with only words of a vocabulary."""

from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import MinLen

from hatchery.corpora.raw_texts import RawTextOptions
from hatchery.settings.base import Count, Natural, ReadingName, Settings, conflict


@dataclass(frozen=True, kw_only=True)
class VocabularySettings(Settings):
    """Settings of a vocabulary: content of its source, and processing of its words."""

    kind: Literal["transcripts", "word_list"]
    """Content of the source: CHILDES tables with one utterance per row, or a list of words with frequencies."""
    reading: ReadingName = "corrected"
    """Version of the processing of words. `as_published` reproduces the errors of the reduced-vocabulary study
    (compounds are joined, TRUE and FALSE are in capital letters, the word nan is lost); `corrected` fixes these errors.
    hatchery/vocabulary/word_lists.py lists the errors.
    """
    files: Annotated[tuple[str, ...], MinLen(1)] = ("*.csv",)
    """Shell patterns of the files to read from the source."""
    encoding: str = "utf-8"
    """Character encoding of the source, the dictionary, and the list that the reduced-vocabulary study published."""
    appended_words: tuple[str, ...] = ()
    """Words that are added at the end of the vocabulary without a check against the dictionary; only for transcripts.
    """
    word_column: str = "word"
    """Name of the column that contains the words, if the source is a word list."""
    frequency_column: str | None = "frequency"
    """Name of the column that contains the frequencies, if the source is a word list; `null` if the list has no
    frequencies.
    """

    def __post_init__(self) -> None:
        if self.kind == "word_list" and self.appended_words:
            reason = "words are only added to the words of transcripts"
            raise conflict("appended_words", list(self.appended_words), "`kind: word_list`", reason)


@dataclass(frozen=True, kw_only=True)
class SelectionKeys(Settings):
    """Settings of a selection of text: unit of the selected texts (sentences, spans or windows), and the rule by which
    texts are accepted.
    """

    options: RawTextOptions | None = None
    """Files to read and their format; `null` reads the documents of a corpus."""
    level: Literal["sentences", "spans", "windows"]
    """Unit of selection. `sentences`: sentences within the vocabulary; a sentence is a unit that Punkt finds in raw
    texts, or a line of a corpus. `spans`: windows of words within the vocabulary, which may overlap. `windows`:
    randomly drawn windows with any words, for comparison.
    """
    reading: ReadingName = "corrected"
    """Version of the comparison with the vocabulary: how a text is divided into words, and how words are looked up (see
    hatchery/vocabulary/comparison.py).
    """
    lower_case: bool = True
    """If true, documents are lower-cased before all other steps, as in the papers, so that the selected texts are in
    lower case.
    """
    minimum_counted_words: Natural | None = None
    """Minimum number of words in a text that are compared with the vocabulary; `null` means 6 for sentences, 41 for
    spans and 0 for windows.
    """
    window_words: Count = 110
    """Maximum number of words in a span or window."""
    stride_words: Count = 30
    """Number of words between the starts of two consecutive spans or windows."""
    documents_per_unit: Count | None = None
    """Number of consecutive documents of a file among which equal texts are kept only once. `null`: equal texts are
    kept only once in the whole corpus.
    """
    documents_per_text: Count | None = 1
    """Number of documents that are joined to one text, from which windows are drawn; `null` joins the whole corpus."""
    windows_per_text: Count = 1
    """Number of windows drawn from a text; if a text has fewer windows, all its windows are used."""
    seed: Natural = 0
    """Random seed of the selection of windows."""
    rows_per_shard: Count = 500_000
    """Number of selected texts in a Parquet file."""

    def __post_init__(self) -> None:
        if self.minimum_counted_words is None:
            least = {"sentences": 6, "spans": 41, "windows": 0}
            object.__setattr__(self, "minimum_counted_words", least[self.level])


@dataclass(frozen=True, kw_only=True)
class SelectionSettings(SelectionKeys):
    """Settings of a selection of text: its name, the model that splits sentences, the unit of the selected texts
    (sentences, spans or windows), and the rule by which texts are accepted.
    """

    name: str
    """Name of the selection."""
    sentence_model: str | None = None
    """Name of the raw input with the parameters of Punkt, the sentence splitter; `null` uses the parameters in
    Hatchery.
    """
