"""Settings of the stage `select_tokenizer`: the candidate tokenizers, their measures, and the choice.

Sources: "Honey, I Shrunk the Language" (reduced-vocabulary study, Section 3.3: sweep, word-split ratio, exact sub-token
matching score, choice); LTG-BERT, Appendix G (the rule of Gowda and May). Impossible settings are refused before any
training.
"""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from annotated_types import MinLen

from hatchery.corpora.settings import Splits
from hatchery.errors import ConfigError
from hatchery.settings.base import Count, Natural, Positive, Range, RefusedError, Settings, require
from hatchery.tokenization.trainer_settings import TokenizerSettings, VocabularySize
from hatchery.typed import build

MORPHEME_FILE = "*.csv"
"""File pattern of a user's list of morphemes; exactly one file must match."""
TOKENIZER_FILE = ("tokenizer.json", "*.json")
"""File patterns of a reference tokenizer: `tokenizer.json` or, without such a file, one JSON file."""
Esms = Literal["esms_definition", "esms_published_code", "esms_published_code_corrected"]


@dataclass(frozen=True, kw_only=True)
class CandidateKeys(Settings):
    """Vocabulary sizes of a tokenizer type, and the word-split ratio (tokens per word) of the type's reference
    tokenizer. The size whose ratio is closest to this ratio is chosen.
    """

    sizes: Annotated[tuple[VocabularySize, ...], MinLen(1)]
    """Vocabulary sizes in ascending order, including special tokens and alphabet."""
    reference_ratio: Positive | None = None
    """Word-split ratio of the reference tokenizer, if no tokenizer file is given from which the ratio can be measured;
    `null` gives no ratio.
    """
    published_as: str | None = None
    """Name of the tokenizer type in the table of published values; `null` shows no published values."""

    def __post_init__(self) -> None:
        require(
            list(self.sizes) == sorted(set(self.sizes)), "sizes", list(self.sizes), "different sizes in ascending order"
        )


@dataclass(frozen=True, kw_only=True)
class CandidateType(CandidateKeys):
    """A tokenizer type and its vocabulary sizes."""

    name: str
    """Name of the tokenizer type in tables; the file names of its tokenizers begin with this name."""
    definition: dict[str, Any]
    """Settings of the tokenizer except its size: the keys of `TokenizerSettings` without `vocabulary_size`."""

    def settings(self, size: int) -> TokenizerSettings:
        """Return the settings of the tokenizer of this type with `size` entries. Raises ConfigError, which names the
        tokenizer type and the key, for an invalid setting.
        """
        where = f"types.{self.name}"
        try:
            settings = build(TokenizerSettings, {**self.definition, "vocabulary_size": size})
        except ConfigError as error:
            raise ConfigError(f"{where}: {error}") from error
        if settings.sentences_limit is not None:
            raise ConfigError(
                f"{where}: sentences_limit: expected null, because a sweep trains and counts on all lines"
            )
        return settings


@dataclass(frozen=True, kw_only=True)
class FrequencySearch(Settings):
    """Search for the largest vocabulary in which 95 % of the entries occur often enough (Gowda and May, 2020)."""

    type: str
    """Name of the tokenizer type whose vocabulary size is searched."""
    lowest: VocabularySize
    """Smallest vocabulary size."""
    highest: VocabularySize
    """Largest vocabulary size, which the corpus must support; types of the kind `byte_bpe` or `wordpiece` are trained
    once, with this size or with the largest of the type's `sizes`."""
    step: Count = 64
    """Difference between two adjacent vocabulary sizes of the search, which begins with `lowest` and ends with
    `highest`.
    """
    least_frequency: Count = 100
    """Minimum number of occurrences of the vocabulary entry at rank floor(0.95 x number of entries that occur). Ranks
    are counted from 0 in the order of falling frequency.
    """

    def __post_init__(self) -> None:
        require(self.lowest <= self.highest, "lowest", self.lowest, f"at most highest ({self.highest})")


@dataclass(frozen=True, kw_only=True)
class SweepKeys(Settings):
    """Keys of a sweep: the measures of the candidate tokenizers of a corpus, and the rule that chooses a tokenizer."""

    sample_sequences: Count = 5000
    """Maximum number of sequences on which word-split ratio, fertility and share of unknown tokens are measured; they
    are drawn without replacement. The paper uses 5,000, and 10,000 for its unconstrained corpora.
    """
    sample_splits: Splits = ("train", "dev", "test")
    """Splits of the corpus from which the sample is drawn; missing splits are skipped."""
    sequence_unit: Literal["documents", "lines"] = "documents"
    """Unit of a sequence. `documents`: each document is a sequence. `lines`: each line is a sequence, for corpora of
    articles and books.
    """
    seed: Natural = 0
    """Random seed of the sample."""
    morphemes: Literal["own", "public_13"] | None = "own"
    """List of words with their morphemes for ESMS (exact sub-token matching score). `own`: 127 English words of this
    project, not the paper's words. `public_13`: the 13 words printed in the paper. `null`: the list that
    `morphemes_data` names.
    """
    choose_by: Esms = "esms_published_code"
    """Version of ESMS (exact sub-token matching score) by which the tokenizer type is chosen."""
    compared_decimals: Annotated[int, Range(ge=0, le=9)] | None = 2
    """Number of decimals to which word-split ratios are rounded before they are compared; the paper prints 2. `null`
    does not round.
    """
    frequency_search: FrequencySearch | None = None
    """Search for the largest vocabulary in which 95 % of the entries occur often enough (Gowda and May, 2020); `null`
    searches nothing.
    """


@dataclass(frozen=True, kw_only=True)
class SweepSettings(SweepKeys):
    """Settings of a sweep over tokenizer types and vocabulary sizes, from which one tokenizer is chosen."""

    name: str
    """Name of the sweep, for titles."""
    types: Annotated[tuple[CandidateType, ...], MinLen(1)]
    """Candidate tokenizer types, in the order of the tables; of several tokenizer types with equal ESMS, the first is
    chosen.
    """

    def __post_init__(self) -> None:
        """Refuse impossible settings. Raises ConfigError naming the key."""
        names = [candidate.name for candidate in self.types]
        if len(set(names)) < len(names):
            raise RefusedError("types", f"got the names {', '.join(names)}, expected each name only once")
        for candidate in self.types:
            for size in candidate.sizes:
                candidate.settings(size)
        if self.frequency_search is not None:
            try:
                self.type_named(self.frequency_search.type).settings(self.frequency_search.lowest)
            except ConfigError as error:
                raise RefusedError("frequency_search.type", str(error)) from error

    def type_named(self, name: str) -> CandidateType:
        """Return the candidate tokenizer type `name`. Raises ConfigError if this tokenizer type does not exist."""
        for candidate in self.types:
            if candidate.name == name:
                return candidate
        allowed = ", ".join(candidate.name for candidate in self.types)
        raise ConfigError(f"got the tokenizer type {name!r}, the sweep has: {allowed}")
