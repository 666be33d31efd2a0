"""What is told of texts whose words' surprisals are measured; part of a result's identity."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from hatchery.evaluation.settings import ScoringName
from hatchery.settings.base import Count, Settings
from hatchery.settings.fields import ABSENT, DataName, NotEmpty, OneOfKeys


@dataclass(frozen=True, kw_only=True)
class SurprisalSettings(Settings):
    """How texts lie in their files, what a word is, and how it is asked for."""

    files: NotEmpty = "*"
    """Shell pattern of the files inside the source. Text files (.txt, .md) have a text on every line; tables with a
    header (.csv, .tsv), JSON lines and Parquet files have it in a column."""
    column: str | None = None
    """Column, or field, that holds the text, where files have such."""
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
    """What the stage is told."""

    name: str
    """What the experiment calls the texts."""
