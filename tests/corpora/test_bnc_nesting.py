"""Properties of converted BNC texts that hold for any nesting of elements."""

import itertools
import re

from bnc_cases import READINGS, convert
from hypothesis import given, settings
from hypothesis import strategies as st

from hatchery.corpora.documents import Rejections
from hatchery.errors import SourceError
from hatchery.settings.base import ReadingName


class AllSamples(Rejections):
    """Rejections that store every sample whole."""

    def count(self, reason: str, number: int = 1, sample: str | None = None) -> None:
        self.counts[reason] += number
        self.samples.setdefault(reason, []).append(sample or "")


# Arbitrary nestings of elements, then nestings that the rules handle; `@` represents a word.
TAGS = [
    "p",
    "s",
    "quote",
    "list",
    "item",
    "label",
    "head",
    "sp",
    "speaker",
    "stage",
    "lg",
    "l",
    "div",
    "note",
    "hi",
    "u",
]
ANYTHING = st.recursive(
    st.just("<w>@ </w>"),
    lambda children: st.builds(
        lambda tag, inner: f'<{tag} who="P1" type="a">{"".join(inner)}</{tag}>',
        st.sampled_from(TAGS),
        st.lists(children, max_size=4),
    ),
    max_leaves=14,
)


def element(tag: str, *inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(*inner).map(lambda parts: f"<{tag}>{''.join(parts)}</{tag}>")


def several(part: st.SearchStrategy[str], least: int = 0) -> st.SearchStrategy[str]:
    return st.lists(part, min_size=least, max_size=3).map("".join)


WORDS = several(st.sampled_from(("<w>@ </w>", "<hi><w>@ </w></hi>", "<gap/>", "<c>, </c>", "<note><w>@ </w></note>")))
SENTENCES = several(element("s", WORDS))
NAME = st.one_of(element("head", SENTENCES), st.just(""))
BLOCK: st.SearchStrategy[str] = st.deferred(
    lambda: st.one_of(
        st.builds(lambda tag, inner: f"<{tag}>{inner}</{tag}>", st.sampled_from(("p", "quote", "lg", "l")), MIXED),
        element("list", NAME, several(st.one_of(element("label", WORDS), element("item", MIXED)))),
        element("sp", st.one_of(element("speaker", WORDS), st.just("")), several(element("p", MIXED))),
        element("div", NAME, several(BLOCK)),
        st.builds(lambda tag, inner: f"<{tag}>{inner}</{tag}>", st.sampled_from(("stage", "note", "head")), SENTENCES),
        element("p", SENTENCES).map(lambda caption: caption.replace("<p>", '<p type="caption:a">', 1)),
    )
)
MIXED = several(st.one_of(element("s", WORDS), BLOCK))
TURN = element("u", SENTENCES).map(lambda turn: turn.replace("<u>", '<u who="P1">', 1))
WRITTEN = several(BLOCK, least=1).map(lambda inner: f"<wtext>{inner}</wtext>")
SPOKEN = several(st.one_of(TURN, element("div", NAME, several(TURN))), least=1).map(
    lambda inner: f"<stext>{inner}</stext>"
)


def numbered(content: str) -> tuple[str, list[str]]:
    numbers = itertools.count()
    marked = re.sub("@", lambda _: f"word{next(numbers)}x", content)
    return marked, re.findall(r"word\d+x", marked)


@settings(max_examples=300)
@given(several(ANYTHING), st.sampled_from(READINGS), st.sampled_from(("wtext", "stext")))
def test_any_nesting_gives_a_page_or_an_error_with_its_line(inner: str, reading: ReadingName, body: str) -> None:
    try:
        convert(f"<{body}>{inner}</{body}>", reading)
    except SourceError as error:
        assert re.match("line 1: element <[a-z]+> is not expected in <[a-z]+>$", str(error))


@settings(max_examples=300)
@given(st.one_of(WRITTEN, SPOKEN), st.sampled_from(READINGS))
def test_no_word_is_lost_without_being_counted(content: str, reading: ReadingName) -> None:
    marked, words = numbered(content)
    rejections = AllSamples()
    page = convert(marked, reading, rejections)
    found = page + " ".join(sample for samples in rejections.samples.values() for sample in samples)
    assert [word for word in words if word not in found] == []


@settings(max_examples=300)
@given(st.one_of(WRITTEN, SPOKEN), st.sampled_from(READINGS))
def test_a_page_has_stripped_lines_and_single_blank_lines(content: str, reading: ReadingName) -> None:
    page = convert(numbered(content)[0], reading)
    assert all(line == line.strip() for line in page.split("\n"))
    assert "\n\n\n" not in page
