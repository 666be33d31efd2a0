"""Settings of a table of reading times: its columns, its regressions, and the predictors that are computed with a
model.
"""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from hatchery.evaluation.settings import ScoringName
from hatchery.evaluation.surprisal.settings import MISSING
from hatchery.settings.base import Natural, RefusedError, Settings, refused, require
from hatchery.settings.fields import NotEmpty, SomeNames, Unique

Spillover = Natural
RESERVED = ("item", "position", "participant", "word", "sentence", "row", "tokens", "surprisal", "entropy")
"""Reserved column names of the regressions' data frame. A column of the user's table with one of these names would be
overwritten.
"""
LENGTH, ZIPF = "length", "zipf"
"""Names of the two predictors that are computed if the table has no column with this name."""


@dataclass(frozen=True, kw_only=True)
class ReadingTableSettings(Settings):
    """A table with a row for each word that a person read, and the regressions of the table's reading times."""

    files: NotEmpty = "*"
    """Shell pattern that matches exactly one table (.csv, .tsv, .json, .jsonl, .parquet) in the source."""
    response: NotEmpty | SomeNames = "rt"
    """Column or columns of reading times or other measurements, such as first-pass durations, self-paced reading times
    or amplitudes. Each column has its own regressions.
    """
    item: NotEmpty = "item"
    """Column that identifies texts. The words of an item form the running text that a model reads."""
    position: NotEmpty = "position"
    """Column of a word's position in its text. If several rows have the same item and position, the first row
    determines the word; rows with another word are skipped and counted."""
    word: NotEmpty = "word"
    """Column of the words. White space around a word is removed."""
    participant: NotEmpty | None = "participant"
    """Column of the participants. `null`: the table has one row per word, such as means over participants;
    `random_effects` must then be `none`.
    """
    sentence: NotEmpty | None = None
    """Column that identifies the sentence of a word, for `drop_sentence_ends`. Those words of a text that have an empty
    cell in this column form one sentence. `null`: the table has no such column.
    """
    only: dict[str, str] = field(default_factory=dict)
    """Filter of rows: only rows with these values in these columns are read, such as `{lang: en}` for the rows of one
    language.
    """
    texts: NotEmpty | None = None
    """Shell pattern of a second table with all words of the texts (columns `item`, `position` and `word`). `null`: the
    words are read from the table `files`, which must then contain a row for every word of a text, with or without a
    reading time.
    """
    missing: tuple[str, ...] = MISSING
    """Cell values that mean a missing value, in addition to empty cells. In the column `word`, only an empty cell is
    missing."""
    lowest: float | None = None
    """Minimum response; smaller responses are excluded. `null` sets no minimum."""
    highest: float | None = None
    """Maximum response; larger responses are excluded. `null` sets no maximum."""
    log_response: bool = False
    """Predict the natural logarithm of the response; all responses must be positive."""

    joined_by: str = " "
    """Characters inserted between the words of a text; "" for languages without spaces."""
    cleaning: Literal["none", "encoding", "minimal", "full"] = "none"
    """Cleaning of the words before a model reads them, with the same choices as `cleaning` under `surprisal`."""
    scoring: ScoringName = "auto"
    """Scoring method; `auto` is `left_to_right` for causal models, and `pll` for masked and hybrid models."""
    window_margin: Natural = 0
    """Number of tokens by which the context of a causal model is shorter than the maximum input of the model. If a text
    is longer, its oldest tokens are dropped, separately for each predicted word.
    """
    of_model: Annotated[tuple[Literal["surprisal", "entropy"], ...], Unique()] = ("surprisal",)
    """Predictors of a word that are computed with the model. The score is the gain from all these predictors together.
    `surprisal` and `entropy` are in nats; `entropy` is the entropy of the prediction of the word's first token, and
    requires scoring from left to right.
    """
    word_boundaries: Literal["as_tokens", "corrected"] = "as_tokens"
    """`as_tokens`: a word's surprisal is the sum over its tokens. `corrected`: the probability that the word ends is
    part of the word's own probability, not of the next word's probability (Oh and Schuler, 2024; Pimentel and Meister,
    2024). `corrected` is for causal models whose tokens begin with the space before a word.
    """

    spillover: Spillover = 1
    """Number of previous words whose surprisals (and entropies, if measured) are additional predictors."""
    predictors: dict[str, Spillover] = field(default_factory=lambda: {LENGTH: 1})
    """Other predictors by name, each with the number of previous words at which the predictor is also evaluated. A name
    is a column of the table. If the table has no such column, `length` is the number of characters of a word, and
    `zipf` is the word's frequency in `frequencies`. The baseline regression has only these predictors.
    """
    frequencies: NotEmpty | None = None
    """Shell pattern of a table of word frequencies in the source (columns `word` and `count`), for `zipf`. `zipf` is
    the base-10 logarithm of a word's occurrences per billion words, with 1 added to every count (van Heuven et al.,
    2014). `null`: there is no such table.
    """
    drop_sentence_ends: bool = False
    """Exclude the first and the last word of each sentence (`sentence`) from the regressions."""
    spillover_from: Literal["text", "kept_words"] = "text"
    """Words in which the previous words of a word are looked up by position. `text`: all words of a text. `kept_words`:
    only the words that remain after `drop_sentence_ends`. Words without enough previous words are excluded from the
    regressions.
    """
    random_effects: Literal["none", "intercepts", "slopes"] = "slopes"
    """`none`: linear regression. `intercepts`: mixed model with a random intercept of each participant. `slopes`: mixed
    model with a random intercept and a random slope of every predictor for each participant. All random effects are
    independent, and all regressions are fitted by maximum likelihood.
    """

    @property
    def responses(self) -> tuple[str, ...]:
        """The response columns, such as reading times; each column has its own regressions."""
        return (self.response,) if isinstance(self.response, str) else self.response

    def __post_init__(self) -> None:
        if self.participant is None and self.random_effects != "none":
            raise refused("random_effects", self.random_effects, "none, because `participant` is null")
        if self.drop_sentence_ends and self.sentence is None:
            expected = "false, or a column of the sentences under the key `sentence`"
            raise refused("drop_sentence_ends", True, expected)
        require(bool(self.of_model), "of_model", self.of_model, "at least one of surprisal, entropy")
        if self.word_boundaries == "corrected" and self.joined_by != " ":
            expected = f"as_tokens with joined_by {self.joined_by!r}, because corrected needs spaces between words"
            raise refused("word_boundaries", self.word_boundaries, expected)
        for name in (*self.predictors, *self.responses):
            own = {"item": self.item, "position": self.position, "participant": self.participant}
            taken = name in RESERVED and own.get(name) != name
            if taken or name in ("item", "participant"):
                key = "predictors" if name in self.predictors else "response"
                raise RefusedError(key, f"got {name!r}, which is a reserved name; give the column another name")
        if self.lowest is not None and self.highest is not None and self.lowest > self.highest:
            raise RefusedError("lowest", f"got {self.lowest:g}, expected at most `highest`, {self.highest:g}")


@dataclass(frozen=True, kw_only=True)
class NamedReadingTable(ReadingTableSettings):
    """Settings of the stage `measure_reading_times`."""

    name: str
    """Name of the table in results."""
