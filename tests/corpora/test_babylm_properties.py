"""Properties of every BabyLM normaliser in both readings, over any Unicode and over plain English."""

from collections import Counter
from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hatchery.corpora.babylm.treatment import Treatment, collapse
from hatchery.corpora.documents import Rejections, cut
from hatchery.corpora.readers.babylm import NORMALISERS, BabylmCorpus, output_lines

CORPORA = sorted(NORMALISERS)
BOTH_READINGS = pytest.mark.parametrize("corrected", [False, True])
EVERY_CORPUS = pytest.mark.parametrize("corpus", CORPORA)

# What the raw files hold, and what the rules look for.
FRAGMENTS = (
    "",
    " ",
    "    ",
    "Anna sang.",
    "- ",
    "-",
    ":",
    '"',
    "’s",
    " n't ",
    "``",
    " ''",
    "-LRB-",
    "_BOOK_TITLE_ : A",
    "[TAB] ",
    "[12]",
    "[[a|b]]",
    "[[File:a|b [[c]]]]",
    "[[",
    "]]",
    "= = = A = = =",
    "= = = ",
    "<i>",
    "</i>",
    "<",
    "&lt;",
    "&gt;",
    "&amp;lt;",
    "&nbsp;",
    "&#10;",
    "&#x2028;",
    "&#32;",
    "->",
    "is a city in",
    "(",
    ")",
    ".",
    "...",
    "Ã©",
    "\u2028",
    "\x85",
    "\ufeff",
    "\u00a0",
    "\x1b[0m",
    "ﬁ",
)
any_line = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\r"), max_size=12),
    st.lists(st.sampled_from(FRAGMENTS), max_size=5).map("".join),
)
any_lines = st.lists(any_line, max_size=10)
WORDS = ("the", "Cat", "is a city in", "do n't", "Anna's", "10", "-", "- ", '"', "(", ")", ",", ".", "?", ":", "    ")
plain_line = st.lists(st.sampled_from(WORDS), max_size=5).map(" ".join)
plain_lines = st.lists(plain_line, max_size=12)


class Ledger(Rejections):
    """Rejections that keep every sample."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def count(self, reason: str, number: int = 1, sample: str | None = None) -> None:
        assert number == 1
        assert sample
        self.lines.append(sample)


def run(corpus: BabylmCorpus, lines: Iterable[str], corrected: bool) -> tuple[list[str], list[str]]:
    """The output lines and the lines that were left out."""
    ledger = Ledger()
    return list(output_lines(corpus, lines, Treatment(corrected, ledger))), ledger.lines


def letters(lines: Iterable[str]) -> Counter[str]:
    text = "".join(line.removeprefix("[TAB]") for line in lines)
    return Counter(character for character in text.casefold() if character.isalpha())


@BOTH_READINGS
@EVERY_CORPUS
@settings(max_examples=60)
@given(lines=any_lines)
@example(lines=list(FRAGMENTS))
@example(lines=[f"Anna {fragment} sang." for fragment in FRAGMENTS])
def test_any_text_gives_the_same_single_lines_every_time(
    corpus: BabylmCorpus, corrected: bool, lines: list[str]
) -> None:
    output, left_out = run(corpus, lines, corrected)
    assert all("\n" not in line and "\r" not in line for line in output)
    "\n".join(output).encode()
    assert run(corpus, lines, corrected) == (output, left_out)


@pytest.mark.parametrize("corpus", [corpus for corpus in CORPORA if corpus != "gutenberg"])
@settings(max_examples=80)
@given(lines=any_lines)
@example(lines=list(FRAGMENTS))
@example(lines=[f"Anna {fragment} sang." for fragment in FRAGMENTS])
def test_corrected_writes_or_counts_every_line_that_is_not_blank(corpus: BabylmCorpus, lines: list[str]) -> None:
    output, left_out = run(corpus, lines, corrected=True)
    assert sum(1 for line in lines if line.strip()) == sum(1 for line in output if line) + len(left_out)
    assert all(line.strip() == line for line in output)


@settings(max_examples=80)
@given(lines=any_lines)
@example(lines=list(FRAGMENTS))
@example(lines=[f"Anna {fragment} sang." for fragment in FRAGMENTS])
def test_corrected_gutenberg_writes_or_counts_every_line_that_is_not_blank(lines: list[str]) -> None:
    output, left_out = run("gutenberg", lines, corrected=True)
    treatment = Treatment(True, Rejections())
    cleaned = [treatment.minimal(collapse(line)) for line in lines if line.strip()]
    assert " ".join(line for line in output if line) == " ".join(text for text in cleaned if text)
    assert len(left_out) == cleaned.count("")


@BOTH_READINGS
@EVERY_CORPUS
@settings(max_examples=80)
@given(lines=plain_lines)
@example(lines=[f"Cat {word} the" for word in WORDS])
def test_every_letter_of_plain_english_is_written_or_counted(
    corpus: BabylmCorpus, corrected: bool, lines: list[str]
) -> None:
    output, left_out = run(corpus, lines, corrected)
    assert letters(output) + letters(left_out) == letters(lines)


@EVERY_CORPUS
@settings(max_examples=40)
@given(lines=plain_lines, lines_per_document=st.one_of(st.none(), st.integers(1, 5)))
def test_cutting_keeps_all_lines_in_order(
    corpus: BabylmCorpus, lines: list[str], lines_per_document: int | None
) -> None:
    output, _ = run(corpus, lines, corrected=True)
    documents = list(cut(output, lines_per_document))
    assert [line for document in documents for line in document] == [line for line in output if line]
    assert all(0 < len(document) <= (lines_per_document or len(output)) for document in documents)


@pytest.mark.parametrize("corpus", ["aochildes", "bnc_spoken", "open_subtitles", "qed", "switchboard"])
@settings(max_examples=40)
@given(lines=plain_lines)
@example(lines=[f"Cat {word} the" for word in WORDS])
def test_corrected_speech_repeats_no_line_within_a_document(corpus: BabylmCorpus, lines: list[str]) -> None:
    output, _ = run(corpus, lines, corrected=True)
    assert all(first != second for first, second in pairwise(output) if first)
