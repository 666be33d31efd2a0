"""Lists of morphemes: the shipped ones are sound, broken ones are refused with file and line."""

import csv
from pathlib import Path

import pytest

from hatchery.errors import SourceError
from hatchery.raw.registration import register_source
from hatchery.tokenization.selection.morphemes import Word, parse_words, shipped_words, source_words


def test_the_public_list_is_what_the_paper_prints(golden_directory: Path) -> None:
    text = (golden_directory / "published/reduced_vocabulary_table5_words.csv").read_text(encoding="utf-8")
    printed = [Word(row["word"], tuple(row["morphemes"].split())) for row in csv.DictReader(text.splitlines())]
    assert shipped_words("public_13") == printed
    assert len(printed) == 13


def test_our_own_list_is_marked_and_sound() -> None:
    own = shipped_words("own")
    assert len(own) == 127
    assert all(len(word.morphemes) in (2, 3) for word in own)
    folder = Path(__file__).parents[3] / "scripts/hatchery/tokenization/selection"
    assert "NOT the 127 words of the" in (folder / "morphemes_own.csv").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("word,morphemes\nundo,un does\n", "list: line 2: the morphemes 'un does' do not spell the word 'undo'"),
        ("# ours\nword,morphemes\n\nundo,un do\nundo,und o\n", "list: line 5: the word 'undo' is listed twice"),
        ("word,morphemes\nundo,un,do\n", "list: line 2: expected 2 columns, got 3"),
        ("word,morphemes\n", "list: the list has no words"),
        ("", "list: expected the columns word, morphemes, got ''"),
        ("word;morphemes\n", "list: expected the columns word, morphemes, got 'word;morphemes'"),
        ("word,morphemes\n,\n", "list: line 2: the morphemes '' do not spell the word ''"),
        ('word,morphemes\n"undo,un do\n', "list: line 2: not CSV: unexpected end of data"),
    ],
)
def test_a_wrong_list_is_refused_in_one_line(text: str, message: str) -> None:
    with pytest.raises(SourceError) as caught:
        parse_words(text, "list")
    assert str(caught.value) == message


def test_a_list_comes_from_a_registered_source(tmp_path: Path) -> None:
    (tmp_path / "morphemes.csv").write_bytes("\ufeffword,morphemes\r\nundo,un do\r\n".encode())
    register_source("list", tmp_path / "morphemes.csv", tmp_path / "list.json")
    assert source_words(tmp_path / "list.json") == [Word("undo", ("un", "do"))]


def test_a_source_of_two_lists_is_refused(tmp_path: Path) -> None:
    (tmp_path / "lists").mkdir()
    for name in ("a.csv", "b.csv"):
        (tmp_path / "lists" / name).write_text("word,morphemes\nundo,un do\n")
    register_source("lists", tmp_path / "lists", tmp_path / "lists.json")
    with pytest.raises(SourceError, match=r"expected one \.csv file of morphemes in it, found 2"):
        source_words(tmp_path / "lists.json")
