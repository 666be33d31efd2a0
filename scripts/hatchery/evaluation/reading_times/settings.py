"""Settings of a table of reading times: its columns, the regressions, and the values of a model that join them."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from hatchery.evaluation.settings import ScoringName
from hatchery.evaluation.surprisal.settings import MISSING
from hatchery.settings.base import Natural, RefusedError, Settings, require
from hatchery.settings.fields import NotEmpty, SomeNames, Unique

Spillover = Natural
RESERVED = ("item", "position", "participant", "word", "sentence", "row", "tokens", "surprisal", "entropy")
"""Columns of the regressions' data frame, which a table's column of this name would replace."""
LENGTH, ZIPF = "length", "zipf"
"""Predictors that are computed unless the table has columns of these names."""


@dataclass(frozen=True, kw_only=True)
class ReadingTableSettings(Settings):
    """A table with a row for each word that a person read, and the regressions of its times."""

    files: NotEmpty = "*"
    """Shell pattern of the one table (.csv, .tsv, .json, .jsonl, .parquet) inside the source."""
    response: NotEmpty | SomeNames = "rt"
    """Column, or columns, with reading times or any other numbers: first-pass durations, self-paced times, amplitudes.
    Each has regressions of its own."""
    item: NotEmpty = "item"
    """Column that identifies texts. The words of an item are the running text that a model reads."""
    position: NotEmpty = "position"
    """Column with the number of a word in its text. Of several rows with the same item and position, the first row
    determines the word; rows with another word there are left out and counted."""
    word: NotEmpty = "word"
    """Column with the words. White space around a word is removed."""
    participant: NotEmpty | None = "participant"
    """Column with the readers; null: the table has one row for each word, such as means over readers. Then
    `random_effects` has to be none."""
    sentence: NotEmpty | None = None
    """Column with the sentence that a word belongs to, for `drop_sentence_ends`. Words without a sentence count as one
    sentence of their text."""
    only: dict[str, str] = field(default_factory=dict)
    """Values of columns, such as `{lang: en}`: only rows with these values are read, the rows of a language, say."""
    texts: NotEmpty | None = None
    """Shell pattern of a second table with all words of the texts (the columns `item`, `position` and `word`). null:
    the words of the texts are those of `files`, so every word of a text needs a row there, with or without a time."""
    missing: tuple[str, ...] = MISSING
    """Cells that mean a missing value, in addition to empty ones."""
    lowest: float | None = None
    """Smaller responses are left out; null keeps them."""
    highest: float | None = None
    """Larger responses are left out; null keeps them."""
    log_response: bool = False
    """Whether the natural logarithm of the response is predicted. All responses have to be positive."""

    joined_by: str = " "
    """Characters between two words of a text; "" for languages that write no spaces."""
    cleaning: Literal["none", "encoding", "minimal", "full"] = "none"
    """How words are cleaned before a model reads them; the values are those of `surprisal` texts."""
    scoring: ScoringName = "auto"
    """auto is left_to_right for causal models and pll for masked and hybrid ones."""
    window_margin: Natural = 0
    """Number of tokens by which the text that a causal model sees is shorter than its longest input. The oldest tokens
    of a longer text are left out, separately for each word."""
    of_model: Annotated[tuple[Literal["surprisal", "entropy"], ...], Unique()] = ("surprisal",)
    """Values of a word under a model whose gain is measured, together if there are several. The entropy is that of the
    first token of the word in its context; both are in nats. Entropy needs scoring from left to right."""
    word_boundaries: Literal["as_tokens", "corrected"] = "as_tokens"
    """as_tokens: the surprisal of a word is the sum over its tokens. corrected: the probability that the word ends is
    part of the word itself and not of the next one (Oh and Schuler, 2024; Pimentel and Meister, 2024), for causal
    models whose tokens begin with the blank before a word."""

    spillover: Spillover = 1
    """Number of previous words whose values under the model are predictors, too."""
    predictors: dict[str, Spillover] = field(default_factory=lambda: {LENGTH: 1})
    """Other predictors, each with the number of previous words whose values are predictors, too. A name is a column of
    the table; without such a column, `length` is the number of characters of a word, and `zipf` its frequency in
    `frequencies`. The model with these predictors alone is the baseline."""
    frequencies: NotEmpty | None = None
    """Shell pattern of a table of word frequencies inside the source, with the columns `word` and `count`, for `zipf`:
    the base-10 logarithm of the occurrences per billion words, with one added to every count (van Heuven et al.,
    2014)."""
    drop_sentence_ends: bool = False
    """Whether the first and the last word of each sentence (`sentence`) are left out of the regressions."""
    spillover_from: Literal["text", "kept_words"] = "text"
    """Where previous words are looked up by position: text, in all words of a text; kept_words, among the words that
    `drop_sentence_ends` left. Words without the previous words are left out of the regressions."""
    random_effects: Literal["none", "intercepts", "slopes"] = "slopes"
    """none: a linear regression. intercepts and slopes: a mixed model with independent random effects of each
    participant, an intercept, or an intercept and a slope of every predictor. All are fitted by maximum likelihood."""

    @property
    def responses(self) -> tuple[str, ...]:
        """The predicted columns."""
        return (self.response,) if isinstance(self.response, str) else self.response

    def __post_init__(self) -> None:
        if self.participant is None and self.random_effects != "none":
            raise RefusedError("random_effects", f"got {self.random_effects!r}, expected none without `participant`")
        if self.drop_sentence_ends and self.sentence is None:
            raise RefusedError("drop_sentence_ends", "needs `sentence`, the column with the sentences")
        require(bool(self.of_model), "of_model", self.of_model, "at least one of surprisal, entropy")
        if self.word_boundaries == "corrected" and self.joined_by != " ":
            raise RefusedError("word_boundaries", "corrected needs words that are joined by a blank (`joined_by`)")
        for name in (*self.predictors, *self.responses):
            own = {"item": self.item, "position": self.position, "participant": self.participant}
            taken = name in RESERVED and own.get(name) != name
            if taken or name in ("item", "participant"):
                key = "predictors" if name in self.predictors else "response"
                raise RefusedError(key, f"got {name!r}, a name of ours; give the column another name")
        if self.lowest is not None and self.highest is not None and self.lowest > self.highest:
            raise RefusedError("lowest", f"got {self.lowest:g}, expected at most `highest`, {self.highest:g}")


@dataclass(frozen=True, kw_only=True)
class NamedReadingTable(ReadingTableSettings):
    """Settings of the stage."""

    name: str
    """Name of the table in results."""
