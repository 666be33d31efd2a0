"""Word cleaning and the rule of entry, rule by rule (docs/papers/reduced-vocabulary.md, "Cleaning of words")."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hatchery.vocabulary.transcripts import SUFFIXES, cleaned_words, rejection

DICTIONARY = frozenset({"dog", "have", "to"})


def words(text: str, reading: str) -> list[str]:
    return list(cleaned_words(text, reading))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "as_published", "corrected"),
    [
        ("What's that", ["whats", "that"], ["whats", "that"]),
        ("don’t", ["don’t"], ["dont"]),
        ("have_to bye_bye", ["haveto", "byebye"], ["have", "to", "bye", "bye"]),
        ("choo+choo x-ray", ["choochoo", "xray"], ["choo", "choo", "x", "ray"]),
        ("Room 12b", ["room", "b"], ["room", "b"]),
        ("a  b", ["a", "b"], ["a", "b"]),
        ("tab\tbed", ["tab\tbed"], ["tabbed"]),
        ("50% R&B {oh} ~ah", ["%", "r&b", "{oh}", "~ah"], ["rb", "oh", "ah"]),
        (
            'what? (no): a/b; "c" [d] e^f `g`',
            ["what", "no", "ab", "c", "d", "ef", "g"],
            ["what", "no", "ab", "c", "d", "ef", "g"],
        ),
        ("123 - ...", [], []),
    ],
)
def test_words_of_an_utterance(text: str, as_published: list[str], corrected: list[str]) -> None:
    assert words(text, "as_published") == as_published
    assert words(text, "corrected") == corrected


def test_published_class_deletes_the_range_from_apostrophe_to_backtick_and_four_signs_more() -> None:
    kept = [sign for sign in string.printable if sign not in string.ascii_letters + " " and words(sign, "as_published")]
    assert sorted(kept) == sorted("%&{|}~\t\n\r\x0b\x0c")


@given(st.text())
def test_published_words_hold_no_sign_that_the_class_deletes(text: str) -> None:
    for word in words(text, "as_published"):
        assert word and not set(word) & set("'()*+,-./0123456789:;<=>?@[\\]^_`!#$\" ")


@given(st.text())
def test_corrected_words_hold_nothing_else_of_ascii_than_lower_case_letters(text: str) -> None:
    for word in words(text, "corrected"):
        assert word and all(sign in string.ascii_lowercase for sign in word if sign.isascii())


@pytest.mark.parametrize("word", ["dog", *(f"xq{suffix}" for suffix in SUFFIXES)])
def test_words_of_the_dictionary_or_with_a_suffix_enter(word: str) -> None:
    assert rejection(word, DICTIONARY, "as_published") is None
    assert rejection(word, DICTIONARY, "corrected") is None


def test_other_words_are_rejected_with_a_reason() -> None:
    assert rejection("mama", DICTIONARY, "as_published") == "neither_in_dictionary_nor_suffix"
    assert rejection("xxx", None, "corrected") == "unintelligible"
    assert rejection("déjàs", DICTIONARY, "corrected") == "other_characters"


def test_published_reading_keeps_damaged_words_and_codes_that_pass_the_rule() -> None:
    assert rejection("\ufffdves", DICTIONARY, "as_published") is None
    assert rejection("xxx", None, "as_published") is None


def test_without_a_dictionary_every_word_enters() -> None:
    assert rejection("mama", None, "corrected") is None


def test_published_reading_lets_two_letters_with_an_s_first_enter() -> None:
    assert [rejection(word, DICTIONARY, "as_published") for word in ("su", "sk")] == [None, None]
    assert rejection("su", DICTIONARY, "corrected") == "neither_in_dictionary_nor_suffix"
    assert rejection("suq", DICTIONARY, "as_published") == "neither_in_dictionary_nor_suffix"
