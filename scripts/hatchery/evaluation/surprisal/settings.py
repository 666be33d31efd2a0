"""Settings of surprisals of words; part of a result's identity."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from hatchery.evaluation.settings import ScoringName
from hatchery.settings.base import Count, RefusedError, Settings, omitted_at_default
from hatchery.settings.fields import ABSENT, DataName, NotEmpty, OneOfKeys, SomeNames

MISSING = ("NA", "N/A", "#N/A", "<NA>", "NaN", "nan", "NULL")
"""Cells that R, spreadsheets and pandas write for a missing value, in addition to an empty cell."""


@dataclass(frozen=True, kw_only=True)
class SurprisalSettings(Settings):
    """The layout of texts in their files, their words, and the scoring."""

    files: NotEmpty = "*"
    """Shell pattern of the files inside the source. Text files (.txt, .md) have a text on every line; tables with a
    header (.csv, .tsv), JSON (lines or one list) and Parquet files have it in a column. `*` leaves out
    README, LICENSE and hidden files and, if `column` is set and there are tables, all other files."""
    column: str | None = None
    """Column, or field, that holds the text, in tables, JSON and Parquet files; with `text`, one word of it."""
    text: NotEmpty | SomeNames | None = None
    """Column, or columns, for tables with one word in each row: rows with the same value there are the words of one
    text, such as `item`, or `[participant, item]`. null: each row has a whole text."""
    order: NotEmpty | None = None
    """Column with the numbers that order the words of a text; null: the order of the rows. Needs `text`."""
    joined_by: str = " "
    """Characters between two words of a text whose words are rows; "" for languages that write no spaces."""
    missing: tuple[str, ...] = MISSING
    """Cells that mean a missing text, in addition to empty ones. Their number is reported, and they are not scored."""
    cleaning: Literal["none", "encoding", "minimal", "full"] = "none"
    """How texts are cleaned before they are scored, as readers of corpora clean: encoding undoes wrong decodings;
    minimal also makes curly quotes straight, and ligatures, widths and accents uniform; full also makes dashes and
    no-break spaces plain, and joins words that are written apart. Set the cleaning of the model's corpus."""
    separator: NotEmpty | None = None
    """What stands between words and is taken out; null: words stand between white space, which belongs to the text. For
    languages that write no spaces, and for words of one's own cutting: then write blanks beside it (`the| cat|'s`)."""
    scoring: ScoringName = "auto"
    """auto is left_to_right for causal models, where a word has seen those before it, and pll for masked ones, where it
    has seen all others; hybrid models can be asked in both ways, or for the sum of the two (fused)."""
    leading_blank: bool = False
    """Put a blank before every text, so that its first word has the same tokens as further in, where a tokenizer tells
    them apart."""
    drawn: Count = 1
    """The text that the figure shows, by its number, from 1."""

    @property
    def text_columns(self) -> tuple[str, ...]:
        """The columns whose values identify texts; empty if each row is a whole text."""
        return (self.text,) if isinstance(self.text, str) else self.text or ()

    def __post_init__(self) -> None:
        if self.text is not None and self.column is None:
            raise RefusedError("text", "needs `column`, the column with the words")
        if self.text is not None and self.separator is not None:
            raise RefusedError("separator", "cannot be set with `text`, where each row is one word")
        if self.order is not None and self.text is None:
            raise RefusedError("order", "needs `text`, the column that identifies texts")


@dataclass(frozen=True, kw_only=True)
class SurprisalTexts(SurprisalSettings, OneOfKeys):
    """Texts of which every word is asked for."""

    ONE_OF: ClassVar[dict[tuple[str, ...], str]] = {
        ("data",): "data: my_sentences",
        ("embedded",): "embedded: minimal_pairs",
    }

    data: DataName = ABSENT
    """A raw input of config.yaml: a file, a folder or an archive."""
    embedded: Literal["minimal_pairs"] = ABSENT
    """A folder of the generated sources."""


@dataclass(frozen=True, kw_only=True)
class NamedTexts(SurprisalSettings):
    """The settings of the stage."""

    name: str
    """Name of the texts in the experiment."""


@dataclass(frozen=True, kw_only=True)
class ReadingSettings(Settings):
    """Words that people have read, with the times that it took them."""

    files: NotEmpty = "*full_eval/reading/reading_data.csv"
    """Shell pattern of the one file inside the source: a table with the columns of BabyLM's."""
    scoring: Literal["auto", "pll", "left_to_right"] = "auto"
    """auto asks causal models behind the last token (left_to_right), and others at a mask (pll); hybrid models can be
    asked in both ways."""
    official: bool = False
    """Repeat two slips of the official code: models of others are given the types of tokens where their tokenizer
    returns them (GPT-2 adds an embedding then), and the text before the previous word is missing where it is None."""


@dataclass(frozen=True, kw_only=True)
class ReadingTimes(ReadingSettings, OneOfKeys):
    """Reading times that the surprisal of words is to explain."""

    ONE_OF: ClassVar[dict[tuple[str, ...], str]] = {
        ("data",): "data: babylm_2026_evaluation",
        ("embedded",): "embedded: babylm_evaluation",
    }

    data: DataName = ABSENT
    """A raw input of config.yaml."""
    embedded: Literal["babylm_evaluation"] = ABSENT
    """A folder of the generated sources."""


@dataclass(frozen=True, kw_only=True)
class AcquisitionSettings(Settings):
    """Words that children learn, in contexts, and when they say them."""

    contexts: NotEmpty = "*full_eval/aoa/cdi_childes.json"
    """Shell pattern of the one file of contexts inside the source."""
    children: NotEmpty = "*full_eval/aoa/cdi_human.csv"
    """Shell pattern of the one table of children: a column `word`, and a column for each month with the share that says
    it."""
    scoring: ScoringName = "auto"
    """auto is left_to_right for causal models and pll for others."""
    edition: Literal[2025, 2026] = 2026
    """Whose rules of BabyLM hold: how curves are fitted, and what a blind guess is."""
    spaces: bool = omitted_at_default(True)
    """Whether the language separates words by spaces. false, such as for Mandarin, puts nothing between a context and
    its word, and keeps words of one character."""


@dataclass(frozen=True, kw_only=True)
class MarkedAcquisition(AcquisitionSettings):
    """The settings of the stage."""

    words: dict[str, int]
    """Words that each checkpoint has seen, by its name."""


@dataclass(frozen=True, kw_only=True)
class AgeOfAcquisition(AcquisitionSettings, OneOfKeys):
    """When children say words, beside when the checkpoints of a budget of words know them."""

    ONE_OF: ClassVar[dict[tuple[str, ...], str]] = {
        ("data",): "data: babylm_2026_evaluation",
        ("embedded",): "embedded: babylm_evaluation",
    }

    data: DataName = ABSENT
    """A raw input of config.yaml."""
    embedded: Literal["babylm_evaluation"] = ABSENT
    """A folder of the generated sources."""
