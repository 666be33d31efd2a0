import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hatchery.tokenization.documents import ANY_SPECIAL_TOKEN
from hatchery.tokenization.encoder import ASCII_SPACE, WordStarts
from hatchery.tokenization.tokenizer_file import Tokenizer

ANY_CHARACTER = st.characters(exclude_categories=["Cs"])
TRICKY_CHARACTER = st.sampled_from("ab'1٣ \t\n\u00a0.é中¿ж\u0301")
sentences = (
    st.text(TRICKY_CHARACTER | ANY_CHARACTER, max_size=20)
    .map(str.strip)
    .filter(lambda text: text and not ANY_SPECIAL_TOKEN.search(text))
)


def words_of(sentence: str) -> list[str]:
    return re.split(f"[{ASCII_SPACE}]+", sentence)


def encode(tokenizer: Tokenizer, texts: list[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Ids, offsets of the sentences, and word starts of some sentences in a row."""
    rows = tokenizer.encode_sentences(texts)
    ids = np.array([index for row in rows for index in row])
    offsets = np.cumsum([0] + [len(row) for row in rows])[:-1]
    return ids, offsets, WordStarts(tokenizer)(ids, offsets, texts)


def groups(tokenizer: Tokenizer, text: str) -> list[str]:
    """The text of each run of tokens from one word start to the next."""
    ids, _, starts = encode(tokenizer, [text])
    return [tokenizer.decode(part.tolist()) for part in np.split(ids, np.flatnonzero(starts)[1:])]


@pytest.mark.parametrize("kind", ["wordpiece", "byte_bpe"])
@given(texts=st.lists(sentences, min_size=1, max_size=3))
def test_tokens_between_word_starts_are_the_words_of_the_text(
    tokenizers: dict[str, Tokenizer], kind: str, texts: list[str]
) -> None:
    ids, _, starts = encode(tokenizers[kind], texts)
    found = [tokenizers[kind].decode(part.tolist()) for part in np.split(ids, np.flatnonzero(starts)[1:])]
    assert [text.strip(ASCII_SPACE) for text in found] == [word for text in texts for word in words_of(text)]


@given(texts=st.lists(sentences, min_size=1, max_size=3))
def test_words_are_counted_right_when_characters_are_unknown(
    tokenizers: dict[str, Tokenizer], texts: list[str]
) -> None:
    _, _, starts = encode(tokenizers["observed"], texts)
    assert starts.sum() == sum(len(words_of(text)) for text in texts)


@pytest.mark.parametrize("kind", ["wordpiece", "byte_bpe"])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("in 2001 don't", [" in", " 2001", " don't"]),
        ("a  b\tc", [" a ", " b", "\tc"]),
        ("say [UNK] again", [" say ", "[UNK]", " again"]),
        ("[TAB] start here", ["[TAB]", " start", " here"]),
        ("glued[PAR]", [" glued", "[PAR]"]),
        ("'[UNK]'", [" '", "[UNK]", " '"]),
    ],
)
def test_white_space_and_special_tokens_separate_words(
    tokenizers: dict[str, Tokenizer], kind: str, text: str, expected: list[str]
) -> None:
    assert groups(tokenizers[kind], text) == expected


def test_an_unknown_word_behind_a_special_token_starts_a_word(tokenizers: dict[str, Tokenizer]) -> None:
    tokenizer = tokenizers["observed"]
    ids, _, starts = encode(tokenizer, ["[TAB]ж [UNK]ж'ж"])
    assert [tokenizer.tokens[index] for index in ids] == ["[TAB]", "[UNK]", "Ġ", "[UNK]", "[UNK]", "'", "[UNK]"]
    assert starts.tolist() == [True, True, False, True, True, False, False]
