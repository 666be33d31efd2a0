"""Cutting a text into documents: the same whatever comes in one block or is read by one process."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hatchery.corpora import cutting
from hatchery.corpora.cutting import Cut, cut_text, pieces_of

TEXTS = st.lists(
    st.sampled_from([b"ab. ", b"word ", b"\n", b"\r\n", b"\r", b"\n \t\n", b"\n\n", "é".encode(), b"x" * 30, b" "])
).map(b"".join)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Documents of 10 to 40 bytes, so that short texts meet every rule."""
    for name, value in (("SHORTEST", 10), ("LONGEST", 40), ("_LINES_UNTIL", 60), ("_SPACES_UNTIL", 80), ("_SEEN", 84)):
        monkeypatch.setattr(cutting, name, value)


def in_blocks(text: bytes, size: int) -> list[bytes]:
    return [text[start : start + size] for start in range(0, len(text), size)]


@given(TEXTS, st.integers(1, 50))
def test_documents_do_not_depend_on_the_blocks_and_lose_white_space_only(text: bytes, size: int) -> None:
    cuts = list(cut_text([text]))
    assert list(cut_text(in_blocks(text, size))) == cuts
    assert b"".join(cut.content for cut in cuts).split() == text.split() or any(len(c.content) >= 80 for c in cuts)
    assert all(text[offset : offset + len(content)] == content for offset, content in cuts)
    assert b"".join(b"".join(cut.content.split()) for cut in cuts) == b"".join(text.split())


@example(b"\n\n\n\n \t\n\n \t\n\nab. ", 1, 1)
@given(TEXTS, st.integers(1, 200), st.integers(1, 50))
def test_pieces_hold_together_the_documents_of_the_whole(text: bytes, piece_bytes: int, size: int) -> None:
    found: list[Cut] = []
    for piece in pieces_of(in_blocks(text, size), piece_bytes):
        assert piece.first == len(found)
        found += cut_text(in_blocks(text[piece.start : piece.end], size), piece.start)
    assert found == list(cut_text([text]))


@pytest.mark.parametrize(
    ("text", "documents"),
    [
        (b"one two three\nfour\n\nfive\n", [b"one two three\nfour\n\n", b"five\n"]),
        (b"short\n\nstill the first\r\n \r\nnext", [b"short\n\nstill the first\r\n \r\n", b"next"]),
        (b"line\n" * 12, [b"line\n" * 9, b"line\n" * 3]),
        (b"word " * 16, [b"word " * 13, b"word " * 3]),
        ("é".encode() * 50, ["é".encode() * 40, "é".encode() * 10]),
        (b"\n" * 200, [b""]),
        (b"", [b""]),
    ],
)
def test_blank_lines_end_a_document_then_line_ends_then_spaces_then_characters(
    text: bytes, documents: list[bytes]
) -> None:
    assert [cut.content for cut in cut_text([text])] == documents
