"""ESMS in its readings, against numbers worked out by hand and against the printed values' denominator."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer as Backend
from tokenizers import models, pre_tokenizers

from hatchery.tokenization.selection.backends import WORD_MARKER, read_definition, surfaces
from hatchery.tokenization.selection.morphemes import Word, equals_morphemes, esms, partial_credit, shipped_words

DECODE = Word("decode", ("de", "code"))
words_of = st.lists(st.text("abc", min_size=1, max_size=3), min_size=1, max_size=4).map(
    lambda parts: Word("".join(parts), tuple(parts))
)


def wordpiece(entries: list[str], prefix: str = "##") -> dict:
    """A WordPiece definition with the given entries."""
    vocabulary = {entry: index for index, entry in enumerate(["[UNK]", *entries])}
    backend = Backend(models.WordPiece(vocabulary, unk_token="[UNK]", continuing_subword_prefix=prefix))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    return read_definition(backend.to_str(), "test")


def metaspace(entries: list[str]) -> dict:
    """A Unigram definition that marks the beginning of words, as t5-base does."""
    backend = Backend(models.Unigram([("<unk>", 0.0), *((entry, -1.0) for entry in entries)], 0))
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    return read_definition(backend.to_str(), "test")


@pytest.mark.parametrize(
    ("tokens", "credit"),
    [
        (["decode"], 0),
        (["d", "e", "c", "o", "d", "e"], 0),
        (["de", "code"], 2),
        (["de", "##code"], 2),
        (["_de", "code_"], 2),
        (["de", "co", "de"], 2),
        (["dec", "ode"], 0),
        ([WORD_MARKER + "de", "code"], 1),
    ],
)
def test_published_code_gives_every_token_among_the_morphemes_one(tokens: list[str], credit: int) -> None:
    assert partial_credit(tokens, DECODE) == credit


def test_printed_values_are_whole_numbers_of_265_morphemes() -> None:
    words = shipped_words("own")
    morphemes = [len(word.morphemes) for word in words]
    assert (len(words), morphemes.count(2), morphemes.count(3), sum(morphemes)) == (127, 116, 11, 265)
    printed = {69: 0.2604, 76: 0.2868, 66: 0.2490, 41: 0.1547, 9: 0.0339, 8: 0.0301, 7: 0.0264, 6: 0.0226, 5: 0.0188}
    for credit, value in printed.items():
        assert abs(credit / 265 - value) < 1e-4, "rounded or cut after the fourth decimal"
        assert abs(value - round(value * 127) / 127) > 1e-4, "no share of 127 words"


def test_a_tokenizer_that_knows_the_morphemes_of_some_words_scores_as_counted_by_hand() -> None:
    words = [
        DECODE,
        Word("fitness", ("fit", "ness")),
        Word("podium", ("pod", "ium")),
        Word("unkindly", ("un", "kind", "ly")),
    ]
    # de|code is right; fitness stays whole; pod|i|um has one morpheme; un|kindly one.
    definition = wordpiece(["de", "##code", "fitness", "pod", "##i", "##um", "un", "##kindly"])
    scores = esms(definition, words, "test")
    assert scores.definition == 1 / 4
    assert scores.published_code == scores.published_code_corrected == pytest.approx(Fraction(2 + 0 + 1 + 1, 9))


def test_only_the_corrected_reading_sees_behind_the_word_marker() -> None:
    definition = metaspace([WORD_MARKER + "de", "code"])
    scores = esms(definition, [DECODE], "test")
    assert scores.published_code == 1 / 2
    assert scores.published_code_corrected == scores.definition == 1.0


def test_only_the_corrected_reading_sees_behind_another_prefix() -> None:
    scores = esms(wordpiece(["de", "@@code"], "@@"), [DECODE], "test")
    assert (scores.published_code, scores.published_code_corrected) == (1 / 2, 1.0)


def test_surfaces_of_bytes_are_characters() -> None:
    definition = {"model": {"type": "BPE"}, "pre_tokenizer": {"type": "ByteLevel"}}
    assert surfaces(definition, ["ĠcafÃ©", "Ġ", "s"]) == ["café", "s"]


@given(words_of)
def test_exact_morphemes_give_full_credit_unless_whole_or_spelled(word: Word) -> None:
    assert equals_morphemes(word.morphemes, word)
    trivial = len(word.morphemes) in (1, len(word.text))
    assert partial_credit(word.morphemes, word) == (0 if trivial else len(word.morphemes))


@given(words_of, st.lists(st.text("abc#_", min_size=1, max_size=3), max_size=6))
def test_credit_lies_between_nothing_and_the_number_of_tokens(word: Word, tokens: list[str]) -> None:
    assert 0 <= partial_credit(tokens, word) <= len(tokens)
    foreign = [token + "z" for token in tokens]
    assert partial_credit(foreign, word) == 0
