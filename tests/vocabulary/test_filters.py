"""The fast filters give what the plain rules give, for every text; the rules do what docs/papers/reduced-vocabulary.md,
"Comparison of words" and "Selection of text", says."""

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
from hatchery.vocabulary.comparison import COMPARISONS
from hatchery.vocabulary.filters import SentenceFilter, SpanFilter
from hatchery.vocabulary.rules import LINK, SHORT, UNKNOWN, Rule, plain_sentences, plain_spans, windows

READINGS = ("as_published", "corrected")
WORDS = "the cat sat on mat is do have it he in at st th dont whats what you re dr"
VOCABULARY = frozenset(WORDS.split(" "))
PLAIN_PIECES = """The cat sat dog Dr. J. I "What!" why? ... 3.14 no. 5. 1st. U.S. (Sat.) etc. ." ?! !!! " .) '' » ”. É.
-- .-- ., don’t. it's. “dr. x.y [dr. ('on. a-dr. http://a.b HTTP İ Σ st. the on is he have"""
PIECES = [*PLAIN_PIECES.split(), ". . .", "\ud800"]
GLUE = st.sampled_from([" ", " ", " ", " ", "", "\n", "  ", "\t", "\u00a0", "\x1c", "\x85", "\x0b"])
PROSE = st.lists(st.tuples(st.sampled_from(PIECES), GLUE), max_size=30).map(
    lambda pairs: "".join(piece + glue for piece, glue in pairs)
)
TEXTS = st.one_of(
    PROSE, st.text(max_size=60), st.text(alphabet=" .!?\"')a.Bd-,\n\u2019\u201c\u00a0\x1c\x1f\x85\ud800", max_size=40)
)


def special_punkt() -> PunktSentenceTokenizer:
    """Punkt with parameters that reach every branch: abbreviations, collocations, starters, orthography."""
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


@given(text=TEXTS)
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
@given(text=TEXTS)
def test_fast_sentence_filter_equals_the_plain_rule(reading: ReadingName, lower_case: bool, text: str) -> None:
    rule = Rule(VOCABULARY, COMPARISONS[reading], 3, lower_case)
    punkt = pinned_splitter().punkt
    assert SentenceFilter(rule, punkt).select(text, examples=True) == plain_sentences(text, rule, punkt.sentences)


@pytest.mark.parametrize("reading", READINGS)
@given(
    text=TEXTS,
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
