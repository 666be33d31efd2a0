"""Settings of a vocabulary and of a selection of text with it."""

from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import MinLen

from hatchery.corpora.raw_texts import RawTextOptions
from hatchery.settings.base import Count, Natural, ReadingName, Settings


@dataclass(frozen=True, kw_only=True)
class VocabularySettings(Settings):
    """Settings that build a vocabulary."""

    kind: Literal["transcripts", "word_list"]
    """What the source holds: CHILDES tables with one utterance per row, or a list of words with frequencies."""
    reading: ReadingName = "corrected"
    """Whether the authors' slips are repeated (glued compounds, TRUE and FALSE in capitals, the lost word nan) or not;
    hatchery/vocabulary/word_lists.py says which."""
    files: Annotated[tuple[str, ...], MinLen(1)] = ("*.csv",)
    """Shell patterns of the files inside the source."""
    encoding: str = "utf-8"
    """Encoding of source, dictionary and released list."""
    appended_words: tuple[str, ...] = ()
    """Words that enter without any test, after all others."""
    word_column: str = "word"
    """Column of the words, in a word list."""
    frequency_column: str | None = "frequency"
    """Column of the frequencies, in a word list; null where there is none."""


@dataclass(frozen=True, kw_only=True)
class SelectionKeys(Settings):
    """The selected texts, and the rule of the selection."""

    options: RawTextOptions | None = None
    """The files to read and their format; null reads the documents of a corpus."""
    level: Literal["sentences", "spans", "windows"]
    """sentences: those within the vocabulary, as Punkt splits raw texts, or line by line in a corpus. spans: windows of
    words within the vocabulary, overlaps kept. windows: windows drawn at random, the unconstrained comparison set."""
    reading: ReadingName = "corrected"
    """How words are compared with the vocabulary; hatchery/vocabulary/comparison.py has the two side by side."""
    lower_case: bool = True
    """Lower-case documents before anything else, as the papers do; the selected text is lower case then."""
    minimum_counted_words: Natural | None = None
    """Texts with fewer counted words are too short; null is 6 for sentences, 41 for spans and 0 for windows."""
    window_words: Count = 110
    """Words of a span or window."""
    stride_words: Count = 30
    """Words from the start of one span to that of the next."""
    documents_per_unit: Count | None = None
    """Documents of a file among which equal texts count once; null takes the whole corpus together."""
    documents_per_text: Count | None = 1
    """Documents that are joined before windows are drawn; null joins the whole corpus."""
    windows_per_text: Count = 1
    """Windows drawn from a text, or all it has."""
    seed: Natural = 0
    """Seed of the draw of windows."""
    rows_per_shard: Count = 500_000
    """Texts per Parquet file."""

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
