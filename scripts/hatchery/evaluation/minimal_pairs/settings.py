"""What is scored and how, as typed settings: a suite of minimal pairs, and the way of scoring.

A suite is one entry of config/suites. What only changes the speed is in `ScoringRuntime` and no part of the result's
identity.
"""

from dataclasses import dataclass
from typing import Literal

from hatchery.settings.base import Count, DeviceName, Natural, Settings, require

Unit = Literal["paradigm", "file"]
PairFormat = Literal["blimp", "rows", "alternating_lines"]
ScoringName = Literal["auto", "pll", "pll_within_word_l2r", "left_to_right"]


@dataclass(frozen=True)
class ExpectedSize(Settings):
    """How large a suite is, so that the files of another one are recognised."""

    paradigms: Count | None = None
    """Number of paradigms; null leaves it open."""
    pairs: Count | None = None
    """Number of pairs; null leaves it open."""


@dataclass(frozen=True)
class PairColumns(Settings):
    """The columns of a table, or the fields of JSON lines, that a pair stands in."""

    good: str
    """Column of the sentence that is right."""
    bad: str
    """Column of the sentence that is wrong."""
    paradigm: str | None = None
    """Column that names the paradigm of a pair; null: each file is a paradigm, by its name."""
    phenomenon: str | None = None
    """Column of what paradigms are grouped by; null: each paradigm is a phenomenon."""


@dataclass(frozen=True, kw_only=True)
class SuiteSettings(Settings):
    """What a suite says about its files and their scoring."""

    format: PairFormat = "blimp"
    """blimp is JSON lines with sentence_good and sentence_bad. rows are tables with a header (.csv, .tsv), JSON lines
    or Parquet with the `columns` that you name. In files with alternating_lines, the two sentences of a pair stand on
    lines of their own, one pair below the other, as in Zorro; each file is a paradigm."""
    columns: PairColumns | None = None
    """With the format rows: which columns hold a pair."""
    good_line: Literal["first", "second"] | None = None
    """With the format alternating_lines: which of the two lines of a pair is the right sentence."""
    files: str = "*.jsonl"
    """Shell pattern of the files inside the source."""
    unit: Unit = "paradigm"
    """What a row of the table is: the paradigm that a record names, or the whole file (BabyLM's pooled files, where
    accuracy is example-weighted inside a file)."""
    leading_blank: bool = False
    """Put a blank before every sentence, as the pipeline of BabyLM 2023 does."""
    expected: ExpectedSize | None = None
    """How large the suite is, so that the files of another one are recognised; null for a folder of yours."""
    pairs_per_paradigm: Count | None = None
    """A seeded subset of each paradigm; null scores all."""
    seed: Natural = 0
    """Draws the subset."""
    scoring: ScoringName = "auto"
    """auto is pll for masked models and left_to_right for others; pll_within_word_l2r also masks the later pieces
    of a word."""

    def __post_init__(self) -> None:
        """Refuse a format without the key that belongs to it, or with that of another. Raises ConfigError."""
        for key, owner, example in (
            ("columns", "rows", "{good: ..., bad: ...}"),
            ("good_line", "alternating_lines", "first or second"),
        ):
            wanted = (
                f"{example} with the format {owner}" if self.format == owner else f"it with the format {owner} only"
            )
            require((getattr(self, key) is not None) == (self.format == owner), key, getattr(self, key), wanted)


@dataclass(frozen=True, kw_only=True)
class ScoringSettings(SuiteSettings):
    """What is scored; part of the result's identity."""

    suite: str
    """Name of the suite."""


@dataclass(frozen=True)
class ScoringRuntime(Settings):
    """How it is carried out; not part of the result's identity."""

    tokens_per_batch: Count | None = None
    """Tokens per batch with special tokens; null is what was measured to be fastest on the device
    (benchmarks/score_minimal_pairs.py)."""
    device: DeviceName = "auto"
    """Where the model computes."""
    threads: Count | None = None
    """CPU threads of PyTorch; null leaves its choice."""
