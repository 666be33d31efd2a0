"""Settings of the stage `select_tokenizer`: which tokenizers are tried, how they are measured, how one is chosen.

Source: reduced-vocabulary study §3 (sweep, word-split ratio, ESMS, choice) and LTG-BERT §2 (the rule of Gowda and May).
What cannot be carried out is refused before anything is trained.
"""

from dataclasses import dataclass, field
from typing import Any, Literal

from hatchery.errors import ConfigError
from hatchery.rendering.style import Style
from hatchery.tokenization.trainer import TokenizerSettings
from hatchery.typed import build

SPLITS = ("train", "dev", "test")
Esms = Literal["esms_definition", "esms_published_code", "esms_published_code_corrected"]


@dataclass(frozen=True)
class CandidateType:
    """A type of tokenizer and the sizes in which it is tried."""

    name: str
    """Name in the tables; file names of its tokenizers begin with it."""
    definition: dict[str, Any]
    """What determines the tokenizer but its size: the keys of `TokenizerSettings` without `vocabulary_size`."""
    sizes: tuple[int, ...]
    """Vocabulary sizes, rising."""
    reference_ratio: float | None = None
    """Word-split ratio to come close to, where it is not measured on a reference tokenizer."""
    published_as: str | None = None
    """Name of the type in the table of published values; null joins none."""

    def settings(self, size: int) -> TokenizerSettings:
        """The settings of this type's tokenizer of `size` entries. Raises ConfigError naming the type and the key."""
        where = f"types.{self.name}"
        try:
            settings = build(TokenizerSettings, {**self.definition, "vocabulary_size": size})
        except ConfigError as error:
            raise ConfigError(f"{where}: {error}") from error
        if settings.sentences_limit is not None:
            raise ConfigError(f"{where}: sentences_limit: a sweep trains and counts on all lines, so it must be null")
        return settings


@dataclass(frozen=True)
class FrequencySearch:
    """The search for the largest vocabulary of which 95 % of the types are frequent (Gowda and May, 2020)."""

    type: str
    """Name of the candidate type that is searched."""
    lowest: int
    """Smallest size that is considered."""
    highest: int
    """Largest size that is considered; a nested type is trained once, in this size."""
    step: int = 64
    """Sizes considered are `lowest`, `lowest + step` and so on, and `highest`."""
    least_frequency: int = 100
    """Occurrences that the type at rank floor(0.95 x types) must have."""


@dataclass(frozen=True)
class SweepSettings:
    """Settings of one sweep."""

    name: str
    """Name of the sweep, for titles."""
    types: tuple[CandidateType, ...]
    """The candidates, in the order of the tables; of types of equal ESMS the first wins."""
    sample_sequences: int = 5000
    """Sequences drawn without replacement for the word-split ratio; all, where the corpus has fewer."""
    sample_splits: tuple[str, ...] = SPLITS
    """Splits that they are drawn from, as far as the corpus has them."""
    sequence_unit: Literal["documents", "lines"] = "documents"
    """What a sequence is: a whole document (the corpora of the study), or one line of it (articles and books)."""
    seed: int = 0
    """Seed of the sample."""
    morphemes: Literal["public_13", "own"] | None = "own"
    """Shipped list of reference morphemes; null where the user's own is handed in."""
    choose_by: Esms = "esms_published_code"
    """ESMS that decides between the types."""
    compared_decimals: int | None = 2
    """Decimals to which ratios are rounded before they are compared, 2 as the paper prints them; null: not rounded."""
    frequency_search: FrequencySearch | None = None
    """Search for the largest vocabulary of frequent types; null leaves it out."""
    style: Style = field(default_factory=Style)
    """Look of the figure."""

    def __post_init__(self) -> None:
        """Refuse what cannot be carried out. Raises ConfigError naming the key."""
        names = [candidate.name for candidate in self.types]
        if not names:
            raise ConfigError("types: the sweep lists no type of tokenizer")
        if len(set(names)) < len(names):
            raise ConfigError(f"types: a name occurs twice among {', '.join(names)}")
        for candidate in self.types:
            sizes = candidate.sizes
            if not sizes or list(sizes) != sorted(set(sizes)):
                raise ConfigError(f"types.{candidate.name}.sizes: expected rising sizes, got {list(sizes)}")
            ratio = candidate.reference_ratio
            if ratio is not None and ratio <= 0:
                raise ConfigError(f"types.{candidate.name}.reference_ratio: expected more than 0, got {ratio}")
            for size in sizes:
                candidate.settings(size)
        if self.sample_sequences < 1:
            raise ConfigError(f"sample_sequences: expected at least 1, got {self.sample_sequences}")
        unknown = [split for split in self.sample_splits if split not in SPLITS]
        if unknown or not self.sample_splits:
            raise ConfigError(f"sample_splits: got {list(self.sample_splits)}, allowed are: {', '.join(SPLITS)}")
        if self.compared_decimals is not None and not 0 <= self.compared_decimals <= 9:
            raise ConfigError(f"compared_decimals: expected 0 to 9, got {self.compared_decimals}")
        if self.frequency_search is not None:
            self._check_search(self.frequency_search)

    def type_named(self, name: str) -> CandidateType:
        """The candidate type called `name`. Raises ConfigError when there is none."""
        for candidate in self.types:
            if candidate.name == name:
                return candidate
        allowed = ", ".join(candidate.name for candidate in self.types)
        raise ConfigError(f"got the type {name!r}, the sweep has: {allowed}")

    def _check_search(self, search: FrequencySearch) -> None:
        try:
            candidate = self.type_named(search.type)
        except ConfigError as error:
            raise ConfigError(f"frequency_search.type: {error}") from error
        if not 0 < search.lowest <= search.highest:
            raise ConfigError(f"frequency_search: expected lowest <= highest, got {search.lowest} and {search.highest}")
        for key in ("step", "least_frequency"):
            if getattr(search, key) < 1:
                raise ConfigError(f"frequency_search.{key}: expected at least 1, got {getattr(search, key)}")
        candidate.settings(search.lowest)
