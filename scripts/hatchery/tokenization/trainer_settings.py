"""What determines a tokenizer beside its corpus, with the defaults of the BabyLM tokenizers (LTG-BERT §2.1).

Every tokenizer of the three papers is a choice of these values; `config/tokenizers/` holds them as files. Values that
exclude each other are refused by key before anything is read.
"""

from dataclasses import dataclass
from typing import Literal

from hatchery.errors import ConfigError, TokenizationError
from hatchery.settings.fields import Settings
from hatchery.tokenization.definitions import NormalizerName, PreTokenizerName, Reading
from hatchery.tokenization.special_tokens import SPECIAL_SETS, SPECIAL_TOKENS, SpecialTokens, special_tokens

BYTE_SYMBOLS = 256


@dataclass(frozen=True)
class TokenizerSettings(Settings):
    """What determines a tokenizer, beside the corpus."""

    kind: Literal["wordpiece", "byte_bpe", "unigram"]
    """`wordpiece` splits greedily, longest match first; `byte_bpe` applies merges; both learn by merging pairs.
    `unigram` chooses the most probable pieces and learns by pruning (SentencePiece's default)."""
    vocabulary_size: int
    """Entries including special tokens and alphabet."""
    min_frequency: int
    """Pairs rarer than this are not merged; `unigram`: characters rarer than this are unknown."""
    special_tokens: tuple[str, ...] | str = SPECIAL_TOKENS
    """One of the known sets: its name, or its tokens in their order. Always the tokens once this is built."""
    sentences_limit: int | None = None
    """Train on this many lines, spread evenly over the corpus; `null` takes all."""
    continuing_subword_prefix: str = ""
    """WordPiece only: in front of tokens inside a pre-token. Empty where the pre-tokeniser marks word starts."""
    normalizer: NormalizerName = "none"
    """Normalisation before everything else; the published BabyLM tokenizers have none."""
    pre_tokenizer: PreTokenizerName = "byte_level"
    """What cuts a text into pieces that no token crosses."""
    reading: Reading = "corrected"
    """`ltg_bnc` pre-tokeniser only: `as_published` cuts the upper-case possessive into two."""
    add_prefix_space: bool | None = None
    """`byte_level` only: put a space in front of a text, so that its first word is as any other. `null` does as
    published: not with RoBERTa's special tokens, but with all others."""
    post_processor: Literal["template", "none"] = "template"
    """`template` adds the special tokens around a text and a pair where they are asked for; the published BNC and
    STRICT tokenizers have none."""
    byte_alphabet: Literal["full", "observed"] = "full"
    """`byte_level` only: `full` has all 256 byte symbols, so no character is unknown. The published BabyLM tokenizers
    have `observed`: they lack about 50 bytes and turn every word with a rare character into [UNK]."""
    individual_digits: bool = True
    """Every digit is a token of its own."""
    max_input_chars_per_word: int = 100
    """WordPiece only: a longer word (in bytes where byte-level) becomes one [UNK]."""
    splits: tuple[str, ...] = ("train",)
    """Splits of the corpus to learn from. The reduced-vocabulary study takes all three."""
    sources: tuple[str, ...] | None = None
    """Learn from documents of these sources only, for example the two languages of a pair; `null` takes all."""
    allow_smaller: bool = False
    """Keep a tokenizer with fewer entries than asked for when the text does not support more, rather than refuse."""

    def __post_init__(self) -> None:
        """Refuse what cannot be trained. Raises ConfigError naming the key."""
        object.__setattr__(self, "special_tokens", self._special_names())
        self._check_combination()
        byte_level = self.pre_tokenizer == "byte_level"
        alphabet = BYTE_SYMBOLS if byte_level and self.byte_alphabet == "full" else 1
        count = len(self.special_tokens)
        if self.vocabulary_size < count + alphabet:
            raise ConfigError(
                f"vocabulary_size: {self.vocabulary_size} is too small, the {count} special tokens and "
                f"the {self.byte_alphabet} alphabet need at least {count + alphabet}"
            )
        for key in ("min_frequency", "sentences_limit", "max_input_chars_per_word"):
            value = getattr(self, key)
            least = 0 if key == "min_frequency" else 1
            if value is not None and value < least:
                raise ConfigError(f"{key}: expected at least {least}, got {value}")
        for key in ("splits", "sources"):
            names = getattr(self, key)
            if names is not None and (not names or len(set(names)) < len(names)):
                raise ConfigError(f"{key}: expected at least one name and none twice, got {list(names)}")

    @property
    def special(self) -> SpecialTokens:
        """The set of special tokens."""
        return special_tokens(self.special_tokens)

    @property
    def prefix_space(self) -> bool:
        """Whether a space is put in front of a text."""
        return self.special.cls != "<s>" if self.add_prefix_space is None else self.add_prefix_space

    def _special_names(self) -> tuple[str, ...]:
        named = self.special_tokens
        if isinstance(named, str):
            if named not in SPECIAL_SETS:
                raise ConfigError(f"special_tokens: got {named!r}, allowed are: {', '.join(SPECIAL_SETS)}")
            return SPECIAL_SETS[named].order
        try:
            return special_tokens(named).order
        except TokenizationError as error:
            raise ConfigError(f"special_tokens: must be a known set: {str(error).split(': ', 1)[-1]}") from error

    def _check_combination(self) -> None:
        marked = self.pre_tokenizer in ("byte_level", "metaspace")
        if self.kind != "wordpiece" and self.continuing_subword_prefix:
            raise ConfigError(f"continuing_subword_prefix: only wordpiece has one, {self.kind} must leave it empty")
        if self.kind == "byte_bpe" and self.pre_tokenizer != "byte_level":
            raise ConfigError(f"pre_tokenizer: byte_bpe needs byte_level, got {self.pre_tokenizer!r}")
        if self.kind == "unigram" and self.pre_tokenizer != "metaspace":
            raise ConfigError(f"pre_tokenizer: unigram needs metaspace, got {self.pre_tokenizer!r}")
        if self.kind == "wordpiece" and marked and self.continuing_subword_prefix:
            raise ConfigError(
                f"continuing_subword_prefix: {self.pre_tokenizer} marks word starts already, so it must be empty"
            )
        if self.kind == "wordpiece" and not marked and not self.continuing_subword_prefix:
            raise ConfigError(f"continuing_subword_prefix: {self.pre_tokenizer} does not mark word starts, give one")
