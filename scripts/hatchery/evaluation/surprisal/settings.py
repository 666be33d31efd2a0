"""Settings for the surprisal of words. All settings are part of a result's identity."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from hatchery.evaluation.settings import ScoringName
from hatchery.settings.base import Count, Settings, conflict, omitted_at_default, refused
from hatchery.settings.fields import ABSENT, DataName, NotEmpty, OneOfKeys, SomeNames

MISSING = ("NA", "N/A", "#N/A", "<NA>", "NaN", "nan", "NULL")
"""Cell contents that R, spreadsheets and pandas write for a missing value, in addition to an empty cell."""


@dataclass(frozen=True, kw_only=True)
class SurprisalSettings(Settings):
    """Settings for the surprisal of the words in a user's texts: files and columns that contain the texts, splitting
    into words, and scoring.
    """

    files: NotEmpty = "*"
    """Shell pattern of the files in the source. Text files (.txt, .md) contain one text per line. Tables with a header
    (.csv, .tsv), JSON (lines or one list) and Parquet files contain texts in a column. `*` skips README, LICENSE and
    hidden files; if `column` is set and there are tables, `*` also skips all files that are not tables.
    """
    column: str | None = None
    """Column or field that contains the texts in tables, JSON and Parquet files. If `text` is set, the column contains
    single words. `null`: the files are text files.
    """
    text: NotEmpty | SomeNames | None = None
    """For tables with one word per row: column or columns that identify a text, such as `item` or `[participant,
    item]`. Rows with equal cells in these columns are the words of one text. `null` means that each row contains a
    whole text.
    """
    order: NotEmpty | None = None
    """Column of numbers that order the words of a text; requires `text`. `null` uses the order of the rows."""
    joined_by: str = " "
    """For tables with one word per row: characters inserted between the words of a text; "" for languages without
    spaces.
    """
    missing: tuple[str, ...] = MISSING
    """Contents of cells without a text, in addition to empty cells. Missing texts are not scored; their number is
    reported.
    """
    cleaning: Literal["none", "encoding", "minimal", "full"] = "none"
    """Cleaning of the texts before scoring, with the rules for cleaning corpora; use the setting of the model's corpus.
    `encoding` only repairs wrongly decoded characters. `minimal` also makes quotes straight, and unifies ligatures,
    widths and accents. `full` also simplifies dashes and no-break spaces, and removes spaces before contractions.
    """
    separator: NotEmpty | None = None
    """Separator of words, removed before scoring; `null` splits words at white space, which remains part of the text.
    Use a separator for languages without spaces and for your own word boundaries. A separator does not replace spaces:
    write the spaces, too (`the| cat|'s`).
    """
    scoring: ScoringName = "auto"
    """Scoring method. `auto` is `left_to_right` for causal models, in which a word is predicted from earlier words, and
    `pll` for masked and hybrid models, in which each token is predicted from all other tokens. Hybrid models support
    `left_to_right`, `pll`, and the sum of both scores (`fused`).
    """
    leading_blank: bool = False
    """Add a space before every text. If the tokenizer distinguishes words after a space, the first word then has the
    same tokens as in the middle of a text."""
    drawn: Count = 1
    """Position, counted from 1, of the text whose surprisals a figure shows."""

    @property
    def text_columns(self) -> tuple[str, ...]:
        """The columns that identify texts; empty if each row contains a whole text."""
        return (self.text,) if isinstance(self.text, str) else self.text or ()

    def __post_init__(self) -> None:
        if self.text is not None and self.column is None:
            raise refused("text", self.text, "null, because `column`, the column of the words, is not set")
        if self.text is not None and self.separator is not None:
            raise conflict("separator", self.separator, "`text`", "each row of the table is then one word")
        if self.order is not None and self.text is None:
            raise refused("order", self.order, "null, because `text`, the column that identifies texts, is not set")


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
    """Name of these texts in the experiment."""


@dataclass(frozen=True, kw_only=True)
class ReadingSettings(Settings):
    """Settings for the surprisal of words with measured reading times (BabyLM's reading task)."""

    files: NotEmpty = "*full_eval/reading/reading_data.csv"
    """Shell pattern that matches exactly one file of the source: a table with BabyLM's columns."""
    scoring: Literal["auto", "pll", "left_to_right"] = "auto"
    """Scoring method. `left_to_right` reads the prediction after the last token of the context; `pll` reads the
    prediction at a mask after the context. `auto` is `left_to_right` for causal models, and `pll` for masked and hybrid
    models. Hybrid models support both methods.
    """
    official: bool = False
    """Reproduce two errors of the official code. First, external models receive token types if their tokenizer returns
    them; GPT-2 then adds an additional embedding to every token. Second, the previous word has no surprisal if the text
    before the previous word is `None`.
    """


@dataclass(frozen=True, kw_only=True)
class ReadingTimes(ReadingSettings, OneOfKeys):
    """Reading times of BabyLM, which a regression predicts from the surprisal of words."""

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
    """Settings for the surprisal of words that children learn, and for the ages at which children say these words."""

    contexts: NotEmpty = "*full_eval/aoa/cdi_childes.json"
    """Shell pattern that matches exactly one file of the source: the contexts in which the words are predicted
    (JSON).
    """
    children: NotEmpty = "*full_eval/aoa/cdi_human.csv"
    """Shell pattern that matches exactly one file of the source: a table with a column `word`, and a column for each
    month of age with the share of children who say the word.
    """
    scoring: ScoringName = "auto"
    """Scoring method; `auto` is `pll` for masked and hybrid models, and `left_to_right` for all other models."""
    edition: Literal[2025, 2026] = 2026
    """Year of BabyLM whose rules apply to the fitting of curves and to the surprisal of a random guess."""
    spaces: bool = omitted_at_default(True)
    """`true`: the language separates words by spaces. `false` (for example for Mandarin): no space is added between a
    context and its word, and words of one character are not omitted.
    """


@dataclass(frozen=True, kw_only=True)
class MarkedAcquisition(AcquisitionSettings):
    """Settings of the stage `measure_acquisition`."""

    words: dict[str, int]
    """Number of training words that the model has read at each checkpoint, by name of the checkpoint."""


@dataclass(frozen=True, kw_only=True)
class AgeOfAcquisition(AcquisitionSettings, OneOfKeys):
    """Comparison of children and models by ages of acquisition: the age at which children say a word, and the number of
    training words after which a model has learned the word.
    """

    ONE_OF: ClassVar[dict[tuple[str, ...], str]] = {
        ("data",): "data: babylm_2026_evaluation",
        ("embedded",): "embedded: babylm_evaluation",
    }

    data: DataName = ABSENT
    """Raw input, by its name under `data` in config.yaml."""
    embedded: Literal["babylm_evaluation"] = ABSENT
    """Folder of the generated demo data, instead of `data`."""
