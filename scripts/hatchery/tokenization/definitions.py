"""Normalisers, pre-tokenisers, decoders and post-processors of tokenizers, by their names in the configuration.

Sources: docs/papers/ltg-bert.md, "Tokenizer" and "Tokenizers for BabyLM"; docs/papers/elc-bert.md, "Tokenizers";
docs/papers/reduced-vocabulary.md, "Tokenizers". LTG-BERT's tokenizer for the BNC and ELC-BERT's tokenizers do not add
[CLS] and [SEP]; the post-processors here add them. The setting `reading` (`as_published` or `corrected`) changes the
pre-tokenisers:

- `ltg_bnc`: `as_published` splits the ending of an upper-case possessive (`SHE'S` becomes `SHE` `'` `S`), because the
  pattern in LTG-BERT's BNC code contains sixteen stray spaces. `corrected` keeps all endings whole (`SHE` `'S`).
- `byte_level`: `as_published` first replaces each byte of the text by a symbol, and then searches for digits, as the
  BabyLM tokenizers of LTG-BERT and ELC-BERT do. Some of these symbols are digits (the second byte of `ü` is written
  `¼`), so some letters are treated as digits. Words are split as in GPT-2: at every vowel sign, accent or joiner that
  is a separate character, and at an apostrophe within a word (Uzbek `o'tdi`). WordPiece replaces words of more than 100
  bytes by the unknown token. `corrected` searches for digits and words in the text, and splits long words between
  characters. The two values of `reading` give the same tokens for text of ASCII letters without apostrophes within
  words and without words of more than 100 bytes.

- `ltg_bnc`, `metaspace` and `bert`: `corrected` splits words of more than 1,000 characters.
"""

from typing import Literal

from tokenizers import Regex, decoders, normalizers, pre_tokenizers, processors

from hatchery.settings.base import ReadingName
from hatchery.tokenization.special_tokens import SpecialTokens
from hatchery.tokenization.trainer_settings import NormalizerName, PreTokenizerName

CONTRACTIONS = ("n't", "'ll", "'re", "'ve", "'m", "'s", "'d")
STRAY_SPACES = " " * 16
METASPACE = "\u2581"
SPACE = " "
# GPT-2's pattern with two changes: combining marks and joiners continue a word, and `'s` and the other contractions are
# contractions only if no letter follows.
WORDS = r"'(?:s|t|re|ve|m|ll|d)(?!\p{L})| ?\p{L}[\p{L}\p{M}\x{200C}\x{200D}]*| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LONGEST_WORD = 1000
"""Maximum number of characters of a word; with `reading: corrected`, longer words are split. The training time is
quadratic in the length of a word, and a text without spaces would be one word.
"""
# GPT-BERT's pattern matches words (in which upper-case letters precede lower-case letters), single digits, sequences of
# other characters, line ends, and white space.
GPT_BERT_WORDS = "|".join(
    (
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*",
        r" ?\p{N}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    )
)
GPT_BERT_LONGEST_WORD = 24
BYTES = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)


def normalizer(name: NormalizerName) -> normalizers.Normalizer | None:
    """Return the normaliser, which changes a text before it is split; None for `none`.

    `ltg_bnc` strips accents but keeps case; `nmt_nfkc` is SentencePiece's default; `bert_uncased` is the normaliser of
    bert-base-uncased. `gpt_bert` adds a space before every line, and removes spaces after a line.
    """
    if name == "nfkc":
        return normalizers.NFKC()
    if name == "nmt_nfkc":
        return normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC(), _single_spaces()])
    if name == "ltg_bnc":
        bert = normalizers.BertNormalizer(
            clean_text=True, handle_chinese_chars=True, strip_accents=True, lowercase=False
        )
        return normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC(), _single_spaces(), bert])
    if name == "gpt_bert":
        lines = [normalizers.Replace(Regex("\n"), "\n "), normalizers.Replace(Regex(" *\n"), "\n")]
        return normalizers.Sequence([normalizers.Prepend(" "), normalizers.NFKC(), *lines])
    if name == "bert_uncased":
        return normalizers.BertNormalizer(
            clean_text=True, handle_chinese_chars=True, strip_accents=None, lowercase=True
        )
    return None


def _single_spaces() -> normalizers.Normalizer:
    return normalizers.Replace(Regex(" {2,}"), " ")


def pre_tokenizer(
    name: PreTokenizerName, reading: ReadingName, individual_digits: bool, add_prefix_space: bool, longest_word: int
) -> pre_tokenizers.PreTokenizer:
    """Return the pre-tokeniser, which splits a text into pre-tokens; no token extends over the end of a pre-token.

    `reading` changes all pre-tokenisers except for `gpt_bert`. `add_prefix_space` applies only to `byte_level` (true in
    the BabyLM tokenizers, false in roberta-base). With `reading` "corrected", `byte_level` splits words of more than
    `longest_word` bytes. `ltg_bnc` and `gpt_bert` always split numbers into single digits, and ignore
    `individual_digits`.
    """
    parts: list[pre_tokenizers.PreTokenizer]
    if name == "byte_level" and reading == "corrected":
        patterns = [WORDS, *([r"\d"] if individual_digits else [])]
        # A space is added only at the beginning of a text; ByteLevel would add a space to every pre-token.
        space = pre_tokenizers.Metaspace(replacement=SPACE, prepend_scheme="always", split=False)
        return pre_tokenizers.Sequence(
            [
                *([space] if add_prefix_space else []),
                *(pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in patterns),
                BYTES,
                pre_tokenizers.Split(Regex(_cut_between_characters(longest_word)), "isolated"),
            ]
        )
    if name == "byte_level":
        parts = [pre_tokenizers.ByteLevel(add_prefix_space=add_prefix_space, use_regex=True)]
    elif name == "metaspace":
        parts = [
            pre_tokenizers.WhitespaceSplit(),
            pre_tokenizers.Metaspace(replacement=METASPACE, prepend_scheme="always"),
        ]
    elif name == "gpt_bert":
        words = pre_tokenizers.Split(Regex(GPT_BERT_WORDS), "isolated")
        return pre_tokenizers.Sequence(
            [words, BYTES, pre_tokenizers.Split(Regex(f".{{1,{GPT_BERT_LONGEST_WORD}}}"), "isolated")]
        )
    elif name == "bert":
        parts = [pre_tokenizers.BertPreTokenizer()]
    else:
        parts = [
            pre_tokenizers.WhitespaceSplit(),
            *(pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in ltg_bnc_patterns(reading)),
        ]
    if individual_digits and name != "ltg_bnc":
        parts.append(pre_tokenizers.Digits(individual_digits=True))
    if reading == "corrected":
        parts.append(pre_tokenizers.Split(Regex(rf"[\s\S]{{1,{LONGEST_WORD}}}"), "isolated"))
    return pre_tokenizers.Sequence(parts)


def _cut_between_characters(longest: int) -> str:
    """Return a regular expression that matches up to `longest` symbols, each of which represents a byte; a match ends
    between two characters if possible.
    """
    # The second UTF-8 bytes of the characters U+0080 to U+00BF are the 64 continuation bytes.
    going_on = "".join(BYTES.pre_tokenize_str(chr(byte))[0][0][1] for byte in range(0x80, 0xC0))
    return f".{{1,{longest}}}(?![{going_on}])|.{{1,{longest}}}"


def ltg_bnc_patterns(reading: ReadingName) -> tuple[str, str]:
    """Return the regular expressions for the second and the third pass of the BNC pre-tokeniser
    (docs/papers/ltg-bert.md, "Tokenizer").

    The third pass splits off punctuation. Its pattern also contains the contractions of the second pass, so that the
    third pass does not split off the apostrophe of a contraction.
    """
    upper = [contraction.upper() for contraction in CONTRACTIONS]
    second = "|".join([r"\[UNK\]", r"\[unk\]", *CONTRACTIONS, *upper])
    if reading == "as_published":
        upper = [STRAY_SPACES + contraction if contraction == "'S" else contraction for contraction in upper]
    kept = "|".join([*CONTRACTIONS, *upper, r"\[UNK\]"])
    optional = f"{METASPACE}*"
    return (
        rf"{optional}(?:{second})(?!\w)",
        rf"{optional}(?:\.+|\#+|(?:{kept})$|\d|[^\w{METASPACE}])",
    )


def decoder(name: PreTokenizerName, continuing_subword_prefix: str) -> decoders.Decoder:
    """Return the decoder, which joins tokens to text. The published BNC tokenizer has no decoder, so texts that it
    decodes contain `@@`.
    """
    if name == "byte_level":
        return decoders.ByteLevel()
    if name == "gpt_bert":
        return decoders.Sequence([decoders.ByteLevel(), decoders.Strip(" ", 1, 0), decoders.Replace("\n ", "\n")])
    if name == "metaspace":
        return decoders.Metaspace(replacement=METASPACE, prepend_scheme="always")
    return decoders.WordPiece(prefix=continuing_subword_prefix, cleanup=False)


def post_processor(
    special: SpecialTokens, frame: Literal["whole", "begun", "ended"] = "whole"
) -> processors.PostProcessor:
    """Return the post-processor, which adds the special tokens to a text or a pair of texts.

    A text becomes `[CLS] A [SEP]`, and a pair becomes `[CLS] A [SEP] B [SEP]`, where `B [SEP]` has the token-type id 1.
    With the special tokens of RoBERTa, the results are `<s> A </s>` and `<s> A </s> </s> B </s>`, all with type id 0.
    With the special tokens of GPT-BERT, the results are `<s> A` and `<s> A <s> B`. If `frame` is "begun", a text that a
    causal model continues becomes `[CLS] A`. If `frame` is "ended", a text to be translated becomes `A [SEP]`.
    """
    cls, sep = special.cls, special.sep
    templates = {
        "whole": (f"{cls} $A {sep}", f"{cls} $A {sep} $B:1 {sep}:1"),
        "begun": (f"{cls} $A", f"{cls} $A {sep} {cls} $B"),
        "ended": (f"$A {sep}", f"$A {sep} $B {sep}"),
    }
    single, pair = templates[frame]
    if frame == "begun" and not special.sep_ends:
        pair = f"{cls} $A {cls} $B"
    if frame == "whole" and not special.sep_ends:
        single, pair = f"{cls} $A", f"{cls} $A {cls} $B"
    elif frame == "whole" and special.separators_in_pair == 2:
        pair = f"{cls} $A {sep} {sep} $B {sep}"
    named = [name for name in (cls, sep) if name in f"{single} {pair}"]
    return processors.TemplateProcessing(
        single=single, pair=pair, special_tokens=[(name, special.ids[name]) for name in named]
    )
