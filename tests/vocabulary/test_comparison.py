"""The two readings of which words a text has (docs/papers/reduced-vocabulary.md, "Comparison of words"), case by case
and as properties."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hatchery.settings.base import ReadingName
from hatchery.vocabulary.comparison import COMPARISONS, KnownWords
from hatchery.vocabulary.rules import LINK, SHORT, UNKNOWN, Rule, verdict

WORDS = "don can won haven the cat sat on mat is do have it he in at st th dont whats what free fall you re i a number"
VOCABULARY = frozenset(WORDS.split(" "))
SIGNS = [*"abz059 '’ʼ-_.,:/éß²", "don't", "1st", "2nd", "1,000", "3.5th", "http", "THE", "cat", " the ", "can't"]
TEXTS = st.one_of(st.lists(st.sampled_from(SIGNS), max_size=12).map("".join), st.text(max_size=40))


def reason(text: str, reading: ReadingName, minimum: int = 0) -> str | None:
    return verdict(text, Rule(VOCABULARY, COMPARISONS[reading], minimum, True))[0]


@pytest.mark.parametrize(
    ("text", "as_published", "corrected"),
    [
        ("The CAT sat", None, None),
        ("the dog sat", UNKNOWN, UNKNOWN),
        ("don't can't won't haven't", None, None),
        ("isn't", UNKNOWN, None),
        ("don’t isn’t", UNKNOWN, None),
        ("you're", None, None),
        ("it'll", UNKNOWN, None),
        ("he've", UNKNOWN, None),
        ("the cat's", None, None),
        ("he'd it'm", None, None),
        ("he'd've", UNKNOWN, None),
        ("he'd've's", UNKNOWN, UNKNOWN),
        ("dog's", UNKNOWN, UNKNOWN),
        ("free-fall", None, None),
        ("free_fall", UNKNOWN, None),
        ("x y z", None, UNKNOWN),
        ("i a", None, None),
        ("42 1,000 3.14 10:30", None, None),
        ("1st 4th", None, None),
        ("2nd 3rd 1990s", UNKNOWN, None),
        ("mp3", UNKNOWN, UNKNOWN),
        ("3d", None, UNKNOWN),
        ("4thx", UNKNOWN, UNKNOWN),
        ("http://cat", LINK, LINK),
        ("the HTTPS cat dog", LINK, LINK),
        ("naïve", UNKNOWN, UNKNOWN),
        ("", None, None),
    ],
)
def test_words_within_the_vocabulary(text: str, as_published: str | None, corrected: str | None) -> None:
    assert reason(text, "as_published") == as_published
    assert reason(text, "corrected") == corrected


@pytest.mark.parametrize(
    ("text", "as_published", "corrected"),
    [
        ("the cat sat on a mat", 5, 6),
        ("the the the", 3, 3),
        ("on 5 1,000", 4, 3),
        ("on the 4th", 4, 3),
        ("don't", 1, 1),
        ("free-fall", 2, 2),
        ("'the' cats'", 2, 2),
    ],
)
def test_counted_words(text: str, as_published: int, corrected: int) -> None:
    for reading, expected in (("as_published", as_published), ("corrected", corrected)):
        words, numerals = COMPARISONS[reading].words(text)  # type: ignore[index]
        assert len(words) + numerals == expected


def test_texts_below_the_minimum_are_too_short() -> None:
    assert reason("the cat sat", "as_published", 3) is None
    assert reason("the cat sat", "as_published", 4) == SHORT
    assert reason("the dog", "as_published", 4) == UNKNOWN


@given(TEXTS)
def test_published_words_are_those_of_the_authors_three_steps(text: str) -> None:
    text = text.lower()
    if "http" in text:
        return
    marked = re.sub(r"\b\d+", " <number> ", text.replace("-", " "))
    tokens = re.findall(r"(?u)\b\w\w+\b", marked)
    words, numerals = COMPARISONS["as_published"].words(text)
    assert sorted([*words, *["number"] * numerals]) == sorted(tokens)


@pytest.mark.parametrize("reading", ["as_published", "corrected"])
@given(text=TEXTS)
def test_a_text_is_within_the_vocabulary_when_its_pieces_are(reading: ReadingName, text: str) -> None:
    comparison = COMPARISONS[reading]
    expected = all(comparison.in_vocabulary(VOCABULARY, word) for word in comparison.words(text.lower())[0])
    assert KnownWords(VOCABULARY, comparison).contains(text) == expected


@pytest.mark.parametrize("reading", ["as_published", "corrected"])
@given(texts=st.lists(TEXTS, max_size=6))
def test_what_was_remembered_changes_no_answer(reading: ReadingName, texts: list[str]) -> None:
    known = KnownWords(VOCABULARY, COMPARISONS[reading])
    for text in [*texts, *texts]:
        assert known.contains(text) == KnownWords(VOCABULARY, COMPARISONS[reading]).contains(text)


@pytest.mark.parametrize("reading", ["as_published", "corrected"])
def test_no_vocabulary_word_is_out_of_reach_but_those_with_digits_or_capitals(reading: ReadingName) -> None:
    for word in VOCABULARY - {"i", "a"}:
        assert COMPARISONS[reading].words(word)[0] == [word]
