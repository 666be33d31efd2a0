"""The sentence splitter: known boundaries, and nothing lost or changed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hatchery.corpora.sentences import split_sentences

PIECES = [
    "The",
    "dog",
    "ran.",
    "Mr.",
    "J.",
    "Finch",
    "said",
    '"Well!"',
    "why?",
    "...",
    "3.14",
    "No.",
    "5",
    "(Yes.)",
    "e.g.",
]
PROSE = st.lists(st.sampled_from(PIECES), max_size=20).map(" ".join)


@pytest.mark.parametrize(
    ("paragraph", "sentences"),
    [
        ("The dog ran. It fell! Why? Nobody knows...", ["The dog ran.", "It fell!", "Why?", "Nobody knows..."]),
        ("Mr. Finch met Dr. J. R. Alder. They spoke.", ["Mr. Finch met Dr. J. R. Alder.", "They spoke."]),
        ("See No. 5 and vol. 3. Then stop.", ["See No. 5 and vol. 3.", "Then stop."]),
        ('"Come in," he said. "Sit down."', ['"Come in," he said.', '"Sit down."']),
        ('He said "Stop!" Then he ran.', ['He said "Stop!"', "Then he ran."]),
        ("It cost 3.50 and more. 7 were left.", ["It cost 3.50 and more.", "7 were left."]),
        ("wait... what is it? you know", ["wait... what is it? you know"]),
        ("  spread \n over lines.   Next.  ", ["spread over lines.", "Next."]),
        ("", []),
    ],
)
def test_boundaries(paragraph: str, sentences: list[str]) -> None:
    assert split_sentences(paragraph) == sentences


@given(st.one_of(PROSE, st.text(max_size=80)))
def test_sentences_joined_are_the_paragraph(paragraph: str) -> None:
    sentences = split_sentences(paragraph)
    assert " ".join(sentences) == " ".join(paragraph.split())
    assert all(sentences)


@given(st.one_of(PROSE, st.text(max_size=80)))
def test_splitting_a_sentence_again_changes_nothing(paragraph: str) -> None:
    for sentence in split_sentences(paragraph):
        assert split_sentences(sentence) == [sentence]
