"""Settings that, with the corpus, determine a trained tokenizer. Except for `min_frequency`, `reading` and
`byte_alphabet`, the default values are those of docs/papers/ltg-bert.md, "Tokenizers for BabyLM".

The folder `config/tokenizers/` contains the settings of all published tokenizers. Settings that exclude each other
raise an error, naming the key, before any file is read.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from hatchery.corpora.settings import Splits
from hatchery.settings.base import (
    Count,
    Natural,
    Range,
    ReadingName,
    RefusedError,
    Settings,
    omitted_at_default,
    refused,
)
from hatchery.settings.fields import SomeNames
from hatchery.tokenization.special_tokens import SPECIAL_SETS, SpecialTokens

BYTE_SYMBOLS = 256
BYTE_LEVEL = ("byte_level", "gpt_bert")
"""Pre-tokenisers that convert text to bytes, and represent each byte by a letter."""

EncodedUnit = Literal["sentences", "documents"]
TokenizerKind = Literal["wordpiece", "byte_bpe", "bpe", "unigram"]
NormalizerName = Literal["none", "nfkc", "nmt_nfkc", "ltg_bnc", "bert_uncased", "gpt_bert"]
PreTokenizerName = Literal["byte_level", "ltg_bnc", "metaspace", "bert", "gpt_bert"]
VocabularySize = Annotated[int, Range(ge=8, le=1_000_000)]
# At least 8 entries, because a smaller vocabulary cannot contain the default special tokens and a letter.


@dataclass(frozen=True)
class TokenizerSettings(Settings):
    """Settings of a tokenizer's training, apart from its corpus."""

    kind: TokenizerKind
    """Tokenizer algorithm. `wordpiece`: greedy, longest match first (LTG-BERT, ELC-BERT). `byte_bpe`: byte-level BPE
    (reduced-vocabulary study). `bpe`: BPE of characters as in SentencePiece (translation). `unigram`: the most probable
    pieces of a vocabulary that is learned by pruning, as in SentencePiece.
    """
    vocabulary_size: VocabularySize
    """Number of entries, including special tokens and alphabet."""
    min_frequency: Natural = 2
    """Minimum frequency of a pair of tokens that is merged; with the kind `unigram`, minimum frequency of a character
    in the vocabulary.
    """
    special_tokens: Literal["babylm", "bnc", "roberta", "gpt_bert"] = "babylm"
    """Set of special tokens, with ids from 0 in the given order. `babylm`: [UNK] [CLS] [SEP] [PAD] [MASK] [PAR] [TAB].
    `bnc`: [UNK] [CLS] [SEP] [PAD] [MASK] [PAR]. `roberta`: <s> <pad> </s> <unk> <mask>. `gpt_bert`: <unk> <s> </s>
    <pad> <mask> <special_0> to <special_10>, where <s> begins every text and no token ends a text.
    """
    normalizer: NormalizerName = "none"
    """Text normalisation. `ltg_bnc` removes accents and keeps case (LTG-BERT); `nmt_nfkc` is the normaliser of
    SentencePiece; `bert_uncased` is the normaliser of bert-base-uncased; `gpt_bert` adds a space before every line.
    `ltg_bnc` and `bert_uncased` are designed for English: these normalisers change für to fur, and remove vowel signs
    of Hindi.
    """
    pre_tokenizer: PreTokenizerName = "byte_level"
    """Splitting into words. `byte_level` splits as GPT-2 does, into words of bytes. `ltg_bnc` separates contractions,
    digits and punctuation (LTG-BERT). `metaspace` splits only at white space (for the kinds `bpe` and `unigram`).
    `bert` splits as bert-base-uncased does. `gpt_bert` (for the kind `byte_bpe`) separates digits and punctuation, ends
    a word before an upper-case letter that follows a lower-case letter, and splits words of more than 24 bytes.
    """
    reading: ReadingName = "corrected"
    """Version of the splitting into words. With the pre-tokenizer `ltg_bnc`, `as_published` splits the ending of SHE'S
    into an apostrophe and S; `corrected` keeps this ending whole. With `byte_level`, `as_published` treats some letters
    (für) as digits and splits words at combining accents and vowel signs; `corrected` fixes both errors. With
    `ltg_bnc`, `metaspace` and `bert`, `corrected` also splits words of more than 1,000 characters.
    """
    continuing_subword_prefix: str = ""
    """Prefix of tokens inside a word, such as @@ (LTG-BERT) or ##; only for the kind `wordpiece` with the pre-tokenizer
    `ltg_bnc` or `bert`.
    """
    add_prefix_space: bool | None = None
    """With the pre-tokenizer `byte_level`: add a space before every text, so that the text's first word is tokenised
    like any other word. `null` follows the authors' code: false with `special_tokens: roberta`, otherwise true.
    """
    individual_digits: bool = True
    """Split numbers into single digits; the pre-tokenizers `ltg_bnc` and `gpt_bert` do so even if this is false."""
    byte_alphabet: Literal["full", "observed"] = "full"
    """With the pre-tokenizers `byte_level` and `gpt_bert`: alphabet of the vocabulary. `full`: all 256 bytes.
    `observed`: only the bytes of the text, as in the BabyLM tokenizers of LTG-BERT and ELC-BERT; about 50 bytes are
    then missing, and words with rare characters are unknown.
    """
    post_processor: Literal["template", "none"] = "template"
    """Special tokens around a text. `template`: [CLS] and [SEP] (or <s> and </s>), if the caller requests special
    tokens. `none`: no tokens, as in LTG-BERT's tokenizer for the BNC and in ELC-BERT's tokenizers.
    """
    max_input_chars_per_word: Count = 100
    """Maximum length of a word, in characters; with the pre-tokenizer `byte_level`, in bytes. With `byte_level` and the
    setting `reading: corrected`, longer words are split. In all other cases, only the kind `wordpiece` uses this
    maximum: longer words become unknown tokens.
    """
    splits: Splits = ("train",)
    """Splits of the corpus on which the tokenizer is trained; the reduced-vocabulary study uses all three splits."""
    sources: SomeNames | None = None
    """Sources of the corpus on which the tokenizer is trained, such as the two languages of a pair; `null` uses all
    sources.
    """
    sentences_limit: Count | None = None
    """Maximum number of training lines, evenly spaced over the corpus. `null` uses all lines, but `spaceless_megabytes`
    still limits text without spaces.
    """
    spaceless_megabytes: Annotated[float, Range(gt=0, le=60)] = omitted_at_default(8.0)
    """Maximum total size, in megabytes of UTF-8, of the distinct training words in scripts without spaces (Chinese,
    Japanese, Thai and others). If the text exceeds this size, evenly spaced lines are left out. Each megabyte needs
    about 110 MB of memory.
    """
    allow_smaller: bool = False
    """Accept a smaller vocabulary if the text does not support `vocabulary_size`; `false` raises an error."""

    def __post_init__(self) -> None:
        """Refuse impossible settings. Raises ConfigError naming the key."""
        self._check_combination()
        byte_level = self.pre_tokenizer in BYTE_LEVEL
        alphabet = BYTE_SYMBOLS if byte_level and self.byte_alphabet == "full" else 1
        count = len(self.special.order)
        if self.vocabulary_size < count + alphabet:
            symbols = f"the {BYTE_SYMBOLS} bytes of the full alphabet" if alphabet > 1 else "one other entry"
            raise RefusedError(
                "vocabulary_size",
                f"got {self.vocabulary_size}, expected at least {count + alphabet}, for {count} special tokens and "
                f"{symbols}",
            )

    @property
    def special(self) -> SpecialTokens:
        """Set of special tokens."""
        return SPECIAL_SETS[self.special_tokens]

    @property
    def prefix_space(self) -> bool:
        """True if a space is added before a text."""
        return self.special_tokens != "roberta" if self.add_prefix_space is None else self.add_prefix_space

    def _check_combination(self) -> None:
        kind = self.kind
        marked = self.pre_tokenizer in (*BYTE_LEVEL, "metaspace")
        key = "continuing_subword_prefix"
        if kind != "wordpiece" and self.continuing_subword_prefix:
            expected = f"an empty text, because the kind {kind} has no prefix; only wordpiece has a prefix"
            raise refused(key, self.continuing_subword_prefix, expected)
        if kind == "byte_bpe" and self.pre_tokenizer not in BYTE_LEVEL:
            expected = f"{' or '.join(BYTE_LEVEL)}, because the kind byte_bpe allows no other pre_tokenizer"
            raise refused("pre_tokenizer", self.pre_tokenizer, expected)
        if kind in ("bpe", "unigram") and self.pre_tokenizer != "metaspace":
            expected = f"metaspace, because the kind {kind} allows no other pre_tokenizer"
            raise refused("pre_tokenizer", self.pre_tokenizer, expected)
        if kind != "byte_bpe" and self.pre_tokenizer == "gpt_bert":
            expected = f"another pre_tokenizer with kind {kind}, because gpt_bert is only for byte_bpe"
            raise refused("pre_tokenizer", self.pre_tokenizer, expected)
        if kind == "wordpiece" and marked and self.continuing_subword_prefix:
            expected = f"an empty text, because the pre_tokenizer {self.pre_tokenizer} already marks word starts"
            raise refused(key, self.continuing_subword_prefix, expected)
        if kind == "wordpiece" and not marked and not self.continuing_subword_prefix:
            expected = f"a prefix, because the pre_tokenizer {self.pre_tokenizer} does not mark word starts"
            raise refused(key, self.continuing_subword_prefix, expected)
