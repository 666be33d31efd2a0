"""Settings of surprisals of words; all are part of a result's identity."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from hatchery.evaluation.settings import ScoringName
from hatchery.settings.base import Count, Settings, conflict, omitted_at_default, refused
from hatchery.settings.fields import ABSENT, DataName, NotEmpty, OneOfKeys, SomeNames

MISSING = ("NA", "N/A", "#N/A", "<NA>", "NaN", "nan", "NULL")
"""Cells that R, spreadsheets and pandas write for a missing value, in addition to an empty cell."""


@dataclass(frozen=True, kw_only=True)
class SurprisalSettings(Settings):
    """Settings of surprisals: the layout of texts in their files, their words, and the scoring."""

    files: NotEmpty = "*"
    """Shell pattern of the files in the source. Text files (.txt, .md) hold one text per line. Tables with a header
    (.csv, .tsv), JSON (lines or one list) and Parquet files hold texts in a column. `*` skips README, LICENSE and
    hidden files; if `column` is set and there are tables, it also skips all other files."""
    column: str | None = None
    """Column or field of the text in tables, JSON and Parquet files; with `text`, the column of single words. null
    reads text files."""
    text: NotEmpty | SomeNames | None = None
    """For tables with one word per row: column or columns that identify a text, such as `item` or `[participant,
    item]`. Rows with equal values are the words of one text. null means that each row has a whole text."""
    order: NotEmpty | None = None
    """Column of numbers that order the words of a text; requires `text`. null uses the order of the rows."""
    joined_by: str = " "
    """Characters inserted between the words of a text whose words are rows; "" for languages without spaces."""
    missing: tuple[str, ...] = MISSING
    """Cell values that mean a missing text, in addition to empty cells. Missing texts are not scored; their number is
    reported."""
    cleaning: Literal["none", "encoding", "minimal", "full"] = "none"
    """Cleaning of the texts before scoring, as in corpora; use the value of the model's corpus. encoding repairs wrong
    decodings. minimal also makes quotes straight, and unifies ligatures, widths and accents. full also simplifies
    dashes and no-break spaces, and removes spaces before contractions."""
    separator: NotEmpty | None = None
    """Separator of words, removed before scoring; null splits words at white space, which remains part of the text. Use
    a separator for languages without spaces and for your own word boundaries; then write spaces in addition to it
    (`the| cat|'s`)."""
    scoring: ScoringName = "auto"
    """Scoring method. auto is left_to_right for causal models, in which a word is predicted from earlier words, and pll
    for masked models, in which each token is predicted from all other tokens. Hybrid models support both methods, and
    their sum (fused)."""
    leading_blank: bool = False
    """Add a space before every text. If the tokenizer distinguishes words after a space, the first word then has the
    same tokens as in the middle of a text."""
    drawn: Count = 1
    """Number of the text that a figure shows, counted from 1."""

    @property
    def text_columns(self) -> tuple[str, ...]:
        """The columns whose values identify texts; empty if each row is a whole text."""
        return (self.text,) if isinstance(self.text, str) else self.text or ()

    def __post_init__(self) -> None:
        if self.text is not None and self.column is None:
            raise refused("text", self.text, "null, or the key `column` with the column of the words")
        if self.text is not None and self.separator is not None:
            raise conflict("separator", self.separator, "`text`", "each row of the table is then one word")
        if self.order is not None and self.text is None:
            raise refused("order", self.order, "null, or the key `text` with the column that identifies texts")


@dataclass(frozen=True, kw_only=True)
class SurprisalTexts(SurprisalSettings, OneOfKeys):
    """Texts for which the surprisal of every word is computed."""

    ONE_OF: ClassVar[dict[tuple[str, ...], str]] = {
        ("data",): "data: my_sentences",
        ("embedded",): "embedded: minimal_pairs",
    }

    data: DataName = ABSENT
    """Raw input, by its name under `data` in config.yaml: a file, a folder or an archive."""
    embedded: Literal["minimal_pairs"] = ABSENT
    """Folder of the generated demo data, instead of `data`."""


@dataclass(frozen=True, kw_only=True)
class NamedTexts(SurprisalSettings):
    """Settings of the stage `measure_surprisal`."""

    name: str
    """Name of the texts in the experiment."""


@dataclass(frozen=True, kw_only=True)
class ReadingSettings(Settings):
    """Settings of the surprisal of words whose reading times were measured (BabyLM's reading task)."""

    files: NotEmpty = "*full_eval/reading/reading_data.csv"
    """Shell pattern that matches exactly one file of the source: a table with BabyLM's columns."""
    scoring: Literal["auto", "pll", "left_to_right"] = "auto"
    """Scoring method. auto uses left_to_right, the prediction after the last token, for causal models and pll, the
    prediction at a mask, for all others. Hybrid models support both methods."""
    official: bool = False
    """Reproduce two errors of the official code. First, external models receive token types if their tokenizer returns
    them (GPT-2 then adds an embedding). Second, the previous word has no surprisal if the text before it is `None`."""


@dataclass(frozen=True, kw_only=True)
class ReadingTimes(ReadingSettings, OneOfKeys):
    """Reading times of BabyLM that are predicted from the surprisal of words."""

    ONE_OF: ClassVar[dict[tuple[str, ...], str]] = {
        ("data",): "data: babylm_2026_evaluation",
        ("embedded",): "embedded: babylm_evaluation",
    }

    data: DataName = ABSENT
    """Raw input, by its name under `data` in config.yaml."""
    embedded: Literal["babylm_evaluation"] = ABSENT
    """Folder of the generated demo data, instead of `data`."""


@dataclass(frozen=True, kw_only=True)
class AcquisitionSettings(Settings):
    """Settings of the surprisal of words that children learn, and the ages at which children say these words."""

    contexts: NotEmpty = "*full_eval/aoa/cdi_childes.json"
    """Shell pattern that matches exactly one file of contexts in the source."""
    children: NotEmpty = "*full_eval/aoa/cdi_human.csv"
    """Shell pattern that matches exactly one table of children in the source: a column `word`, and a column for each
    month with the share of children who say the word."""
    scoring: ScoringName = "auto"
    """Scoring method; auto is left_to_right for causal models and pll for all others."""
    edition: Literal[2025, 2026] = 2026
    """Year of BabyLM whose rules apply to the fitting of curves and to the loss of a random guess."""
    spaces: bool = omitted_at_default(True)
    """Whether the language separates words by spaces. false, for example for Mandarin, adds no space between a context
    and its word, and keeps words of one character."""


@dataclass(frozen=True, kw_only=True)
class MarkedAcquisition(AcquisitionSettings):
    """Settings of the stage `measure_acquisition`."""

    words: dict[str, int]
    """Number of words that each checkpoint has seen, by the name of the checkpoint."""


@dataclass(frozen=True, kw_only=True)
class AgeOfAcquisition(AcquisitionSettings, OneOfKeys):
    """Comparison of the ages at which children say words with the word milestones at which models learn these words."""

    ONE_OF: ClassVar[dict[tuple[str, ...], str]] = {
        ("data",): "data: babylm_2026_evaluation",
        ("embedded",): "embedded: babylm_evaluation",
    }

    data: DataName = ABSENT
    """Raw input, by its name under `data` in config.yaml."""
    embedded: Literal["babylm_evaluation"] = ABSENT
    """Folder of the generated demo data, instead of `data`."""
