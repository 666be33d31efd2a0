"""The words of a text in both readings, and the filters against plain implementations of the rules."""

import re
import string
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from nltk.tokenize.punkt import PunktParameters, PunktSentenceTokenizer

from hatchery.corpora.punkt import PUNCTUATION_AFTER_END, SentenceSpans
from hatchery.corpora.sentences import pinned_splitter
from hatchery.settings.base import ReadingName
from hatchery.vocabulary.comparison import (
    COMPARISONS,
    LINK,
    SHORT,
    UNKNOWN,
    KnownWords,
    Rule,
    plain_sentences,
    plain_spans,
    verdict,
    windows,
)
from hatchery.vocabulary.filters import SentenceFilter, SpanFilter

WORDS = (
    "don can won haven the cat sat on mat is do have it he in at st th dont whats what free fall you re i a number dr"
)
VOCABULARY = frozenset(WORDS.split(" "))
READINGS = ("as_published", "corrected")
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


@pytest.mark.parametrize("reading", READINGS)
@given(text=TEXTS)
def test_a_text_is_within_the_vocabulary_when_its_pieces_are(reading: ReadingName, text: str) -> None:
    comparison = COMPARISONS[reading]
    expected = all(comparison.in_vocabulary(VOCABULARY, word) for word in comparison.words(text.lower())[0])
    assert KnownWords(VOCABULARY, comparison).contains(text) == expected


@pytest.mark.parametrize("reading", READINGS)
@given(texts=st.lists(TEXTS, max_size=6))
def test_what_was_remembered_changes_no_answer(reading: ReadingName, texts: list[str]) -> None:
    known = KnownWords(VOCABULARY, COMPARISONS[reading])
    for text in [*texts, *texts]:
        assert known.contains(text) == KnownWords(VOCABULARY, COMPARISONS[reading]).contains(text)


@pytest.mark.parametrize("reading", READINGS)
def test_no_vocabulary_word_is_out_of_reach_but_those_with_digits_or_capitals(reading: ReadingName) -> None:
    for word in VOCABULARY - {"i", "a"}:
        assert COMPARISONS[reading].words(word)[0] == [word]


PLAIN_PIECES = """The cat sat dog Dr. J. I "What!" why? ... 3.14 no. 5. 1st. U.S. (Sat.) etc. ." ?! !!! " .) '' » ”. É.
-- .-- ., don’t. it's. “dr. x.y [dr. ('on. a-dr. http://a.b HTTP İ Σ st. the on is he have"""
PIECES = [*PLAIN_PIECES.split(), ". . .", "\ud800"]
GLUE = st.sampled_from([" ", " ", " ", " ", "", "\n", "  ", "\t", "\u00a0", "\x1c", "\x85", "\x0b"])
PROSE = st.lists(st.tuples(st.sampled_from(PIECES), GLUE), max_size=30).map(
    lambda pairs: "".join(piece + glue for piece, glue in pairs)
)
DOCUMENTS = st.one_of(
    PROSE, st.text(max_size=60), st.text(alphabet=" .!?\"')a.Bd-,\n\u2019\u201c\u00a0\x1c\x1f\x85\ud800", max_size=40)
)


def special_punkt() -> PunktSentenceTokenizer:
    """Punkt with parameters that reach every branch: abbreviations, collocations, sentence starters, orthography."""
    parameters = PunktParameters()
    parameters.abbrev_types = {"dr", "st", "u.s", "etc", "dr-x", "'t"}
    parameters.collocations = {("##number##", "the"), ("cat", "sat"), ("j", "the"), (".", "the")}
    parameters.sent_starters = {"the", "what"}
    parameters.ortho_context["the"] = 2 | 32
    parameters.ortho_context["sat"] = 4 | 64
    parameters.ortho_context["cat"] = 16
    return PunktSentenceTokenizer(parameters)


PUNKTS: dict[str, Callable[[], PunktSentenceTokenizer]] = {
    "special": special_punkt,
    "pinned": lambda: PunktSentenceTokenizer(pinned_splitter().model.parameters()),
    "empty": PunktSentenceTokenizer,
}


@pytest.fixture(scope="module", params=sorted(PUNKTS))
def punkt(request: pytest.FixtureRequest) -> PunktSentenceTokenizer:
    return PUNKTS[request.param]()


@given(text=DOCUMENTS)
@example(text="?\n\x1f 0")
@example(text="?\x85\n\x1f\x850")
def test_sentence_spans_are_those_of_punkt(punkt: PunktSentenceTokenizer, text: str) -> None:
    assert SentenceSpans(punkt).spans(text) == list(punkt.span_tokenize(text))


def test_the_characters_after_an_end_are_those_of_nltk(punkt: PunktSentenceTokenizer) -> None:
    pattern = punkt._lang_vars.period_context_re()
    codes = [*range(0xD800), *range(0xE000, 0x20000)]
    found = {chr(code) for code in codes if (match := pattern.match(f".{chr(code)}")) and not match["next_tok"]}
    assert found == PUNCTUATION_AFTER_END


def check_spans(texts: dict[str, str]) -> None:
    fast, plain = pinned_splitter().punkt, PUNKTS["pinned"]()
    for name, text in texts.items():
        for version in (text, text.lower()):
            assert fast.spans(version) == list(plain.span_tokenize(version)), name


def test_sentence_spans_of_invented_text_are_those_of_punkt(golden_directory: Path) -> None:
    paths = sorted((golden_directory / "babylm").glob("*.txt"))
    assert len(paths) == 20
    check_spans({path.name: path.read_text(encoding="utf-8") for path in paths})


def test_sentence_spans_of_real_text_are_those_of_punkt(real_data: Path) -> None:
    for corpus in ("webtext", "abc"):
        with zipfile.ZipFile(real_data / "nltk" / f"{corpus}.zip") as archive:
            check_spans({name: archive.read(name).decode("latin-1")[:150_000] for name in archive.namelist()})


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("lower_case", [True, False])
@given(text=DOCUMENTS)
def test_fast_sentence_filter_equals_the_plain_rule(reading: ReadingName, lower_case: bool, text: str) -> None:
    rule = Rule(VOCABULARY, COMPARISONS[reading], 3, lower_case)
    punkt = pinned_splitter().punkt
    assert SentenceFilter(rule, punkt).select(text, examples=True) == plain_sentences(text, rule, punkt.sentences)


@pytest.mark.parametrize("reading", READINGS)
@given(
    text=DOCUMENTS,
    lower_case=st.booleans(),
    window_words=st.integers(1, 25),
    stride_words=st.integers(1, 25),
    minimum=st.integers(0, 6),
)
def test_fast_span_filter_equals_the_plain_rule(
    reading: ReadingName, text: str, lower_case: bool, window_words: int, stride_words: int, minimum: int
) -> None:
    rule = Rule(VOCABULARY, COMPARISONS[reading], minimum, lower_case)
    fast = SpanFilter(rule, window_words, stride_words).select(text, examples=True)
    assert fast == plain_spans(text, rule, window_words, stride_words)


@given(st.data())
def test_fast_span_filter_equals_the_plain_rule_where_most_words_are_known(data: st.DataObject) -> None:
    words = data.draw(st.lists(st.sampled_from(["the", "cat", "sat", "on", "a", "5"]), min_size=100, max_size=400))
    for place in data.draw(st.lists(st.integers(0, len(words) - 1), max_size=4)):
        words[place] = data.draw(st.sampled_from(["dog", "http://x", "naïve", "cat\ndog", ""]))
    rule = Rule(VOCABULARY, COMPARISONS["as_published"], 41, True)
    text = " ".join(words)
    assert SpanFilter(rule, 110, 30).select(text, examples=True) == plain_spans(text, rule, 110, 30)


def test_windows_begin_every_stride_up_to_the_end_and_tails_are_candidates() -> None:
    text = " ".join(map(str, range(130)))
    found = [window.split(" ") for window in windows(text, 110, 30)]
    assert [(len(words), words[0]) for words in found] == [(110, "0"), (100, "30"), (70, "60"), (40, "90"), (10, "120")]


def test_line_breaks_stay_inside_the_words_of_a_window() -> None:
    assert list(windows("a b\nc  d", 2, 2)) == ["a b\nc", " d"]


def test_overlapping_spans_are_all_accepted_and_tails_of_forty_words_are_too_short() -> None:
    rule = Rule(VOCABULARY, COMPARISONS["as_published"], 41, True)
    outcome = plain_spans(" ".join(["cat"] * 190), rule, 110, 30)
    assert [counted for _, counted in outcome.accepted] == [110, 110, 110, 100, 70]
    assert outcome.rejected == {LINK: 0, UNKNOWN: 0, SHORT: 2}


def test_sentences_are_kept_lower_cased_with_digits_and_punctuation() -> None:
    rule = Rule(VOCABULARY, COMPARISONS["as_published"], 6, True)
    text = "The cat sat on the mat, 3 in 1! The Dog Sat. The cat sat. See HTTP://x now."
    outcome = plain_sentences(text, rule, pinned_splitter().punkt.sentences)
    assert outcome.accepted == [("the cat sat on the mat, 3 in 1!", 9)]
    assert outcome.rejected == {LINK: 1, UNKNOWN: 1, SHORT: 1}
    assert outcome.examples == {LINK: "see http://x now.", UNKNOWN: "the dog sat.", SHORT: "the cat sat."}


def test_case_is_kept_where_lower_case_is_off() -> None:
    rule = Rule(VOCABULARY, COMPARISONS["as_published"], 3, False)
    outcome = plain_sentences("The Cat SAT on it. He is.", rule, pinned_splitter().punkt.sentences)
    assert outcome.accepted == [("The Cat SAT on it.", 5)]


def test_every_ascii_letter_takes_part_in_words() -> None:
    letters = frozenset(string.ascii_lowercase + string.ascii_uppercase)
    for comparison in COMPARISONS.values():
        assert not letters & set(comparison.separators)
