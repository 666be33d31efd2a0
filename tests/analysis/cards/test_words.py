"""What counts as a word and as a pre-token."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hatchery.views.cards.vocabulary import PieceTable, count_pre_tokens, running_word


@pytest.mark.parametrize(
    ("piece", "word"),
    [
        ("Cat", "cat"),
        ("“Don’t!”", "don’t"),
        ("(well-known),", "well-known"),
        ("--", ""),
        ("#", ""),
        ("3.14", "3.14"),
        ("$5", "5"),
        ("[UNK]", ""),
        ("[UNK]'s", "s"),
        ("[TAB]Hello", "hello"),
        ("\u200bword\ufeff", "word"),
        ("ÉTÉ", "été"),
        # A vowel sign is part of its word, not punctuation.
        ("हिन्दी", "हिन्दी"),
    ],
)
def test_a_running_word_is_the_piece_without_what_surrounds_it(piece: str, word: str) -> None:
    assert running_word(piece) == word


@pytest.mark.parametrize(
    ("text", "pre_tokens"),
    [
        ("I don't know, they're 25", "I|do|n't|know|,|they|'re|2|5"),
        ("£1,000 (50%)", "£|1|,|0|0|0|(|5|0|%|)"),
        ("wait... ### x", "wait|...|###|x"),
        ("it's 'sad'", "it|'s|'|sad|'"),
        ("Shouldn't've", "Should|n't|'ve"),
        ("x_y", "x_y"),
        ("SHE'S", "SHE|'|S"),
        ("YOU'RE", "YOU|'RE"),
        ("[UNK] said", "[UNK]|said"),
    ],
)
def test_pre_tokens_are_those_of_the_published_tokenizer(text: str, pre_tokens: str) -> None:
    assert sum(map(count_pre_tokens, text.split())) == len(pre_tokens.split("|"))


@given(st.text(alphabet=st.characters(exclude_categories=("Cs",)), max_size=40))
def test_a_word_neither_begins_nor_ends_with_punctuation_and_stays_the_same(text: str) -> None:
    for piece in text.split():
        assert count_pre_tokens(piece) >= 1
        word = running_word(piece)
        if word and word.lower() == word:
            assert running_word(word) == word


@given(st.lists(st.text(min_size=1, max_size=4), max_size=60))
def test_a_small_table_of_pieces_changes_no_result(pieces: list[str]) -> None:
    table = PieceTable(limit=3)
    for start in range(0, len(pieces), 7):
        some = pieces[start : start + 7]
        assert table.words(some) == [word for word in map(running_word, some) if word]
        assert table.pre_tokens(some) == sum(map(count_pre_tokens, some))
