"""The rules that count the words of a text for budgets in words, checkpoints at word milestones, and track limits.

Source: docs/babylm.md, "Words of every language". `white_space` is the rule of BabyLM's strict tracks (`str.split()`).
`adjusted` is the rule of BabyLM's multilingual track. It counts 543 MB of English text (UTF-8) as 100 million words. In
another language, the number of bytes is first divided by the language's byte premium, the size of a text in this
language relative to the same text in English. `jieba` is the rule of the Chinese BabyLM challenge.
`hatchery.tokenization.token_words` finds the tokens in which words begin.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, Literal

from hatchery.settings.base import Range, RefusedError, Settings, omitted_at_default

WordCountName = Literal["white_space", "adjusted", "jieba"]
WHITE_SPACE: WordCountName = "white_space"
"""The rule that counts words unless a corpus sets another rule."""
BYTES_PER_WORD = Fraction(543, 100)
"""Bytes of English text (UTF-8) per adjusted word."""
PremiumName = Literal["eng_latn", "nld_latn", "zho_hans", "zho_hant"]
BYTE_PREMIUMS: Mapping[PremiumName, float] = {
    "eng_latn": 1.0,
    "nld_latn": 1.0516057,
    "zho_hans": 0.9359664,
    "zho_hant": 0.9893825,
}
"""Byte premiums by language and script, from the challenge's table `byte_coefs_20240233.tsv`."""
PremiumValue = Annotated[float, Range(ge=0.01, le=100)]
BytePremium = PremiumValue | PremiumName


def word_count_of(measures: Mapping[str, Any]) -> str:
    """Return the word-counting rule that a manifest's measures name; `white_space` if the measures name no rule."""
    return str(measures.get("word_count", WHITE_SPACE))


def premium_of(value: BytePremium) -> float:
    """Return the value of a byte premium that is given as a number or as a name in `BYTE_PREMIUMS`."""
    return BYTE_PREMIUMS[value] if isinstance(value, str) else float(value)


def bytes_per_word(premium: float) -> Fraction:
    """Return the number of bytes (UTF-8) per word by the rule `adjusted`, exact for byte premiums of up to seven
    decimals.
    """
    return BYTES_PER_WORD * Fraction(str(premium)).limit_denominator(10**7)


@dataclass(frozen=True, kw_only=True)
class WordCounting(Settings):
    """The rule that counts the words of a corpus."""

    word_count: WordCountName = omitted_at_default("white_space")
    """Rule that counts words: `white_space` counts words between white space, `adjusted` computes the number of words
    from the number of bytes and a byte premium, and `jieba` segments Chinese text.
    """
    byte_premium: PremiumValue | None = omitted_at_default(None)
    """Byte premium of all sources that `byte_premiums` does not name, for the rule `adjusted`."""
    byte_premiums: dict[str, PremiumValue] = omitted_at_default({})
    """For the rule `adjusted`, byte premiums by name of the source."""

    def premium(self, source: str) -> float:
        """Return the byte premium of a source. Raises ConfigError if the source has no byte premium."""
        premium = self.byte_premiums.get(source, self.byte_premium)
        if premium is None:
            raise RefusedError(
                "byte_premium",
                f"the source {source!r} has no byte premium; expected one number for all sources, or a number for "
                "each source",
            )
        return premium


BETWEEN_WHITE_SPACE = WordCounting()
