"""Word-split ratio, fertility and the sample behind them."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer as Backend
from tokenizers import models, normalizers, pre_tokenizers

from hatchery.errors import CorpusError, TokenizationError
from hatchery.tokenization.selection.backends import read_definition
from hatchery.tokenization.selection.word_split_ratio import (
    count_words,
    draw,
    running_text,
    sequences_of,
    word_split_ratio,
)

LETTERS = "abcdefgh"


def byte_level(merges: list[tuple[str, str]], prefix_space: bool = True) -> dict:
    """Byte-level BPE over all bytes with the given merges."""
    entries = [*sorted(pre_tokenizers.ByteLevel.alphabet()), *(left + right for left, right in merges)]
    backend = Backend(models.BPE({entry: index for index, entry in enumerate(entries)}, merges))
    backend.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.ByteLevel(add_prefix_space=prefix_space)])
    return read_definition(backend.to_str(), "test")


def test_empty_strings_are_words_of_no_tokens() -> None:
    words = count_words(["ab  ab", "a"])
    assert words == Counter({"ab": 2, "": 1, "a": 1})
    # ab is one token, a is one: 3 tokens over 4 words.
    assert word_split_ratio(byte_level([("a", "b")]), words, "test") == 3 / 4


def test_the_layout_of_documents_makes_no_words() -> None:
    assert count_words(["ab\n\nab a"]) == count_words(["ab ab a"])


@pytest.mark.parametrize("prefix_space", [True, False])
def test_words_alone_have_no_leading_space_but_running_text_has(prefix_space: bool) -> None:
    definition = byte_level([("Ġ", "a"), ("Ġa", "b")], prefix_space)
    assert word_split_ratio(definition, count_words(["ab ab"]), "test") == 2.0
    assert running_text(definition, ["ab ab"], "test")[0] == (1.0 if prefix_space else 1.5)


def test_unknown_tokens_are_counted_in_running_text() -> None:
    backend = Backend(models.WordPiece({"[UNK]": 0, "a": 1, "b": 2}, unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    definition = read_definition(backend.to_str(), "test")
    assert running_text(definition, ["a b\nxyz a"], "test")[1] == 1 / 4


def test_a_sample_without_words_is_refused() -> None:
    for sequences in ([], [""], [" \n "]):
        with pytest.raises(CorpusError, match="the sample has no words"):
            word_split_ratio(byte_level([]), count_words(sequences), "corpus")
        with pytest.raises(CorpusError, match="the sample has no words"):
            running_text(byte_level([]), sequences, "corpus")


def test_what_is_no_tokenizer_is_refused() -> None:
    for text in ("", "{}", '{"model": {"type": "BPE", "vocab": {}}}', "[1]"):
        with pytest.raises(TokenizationError, match=r"^file: not a tokenizer"):
            read_definition(text, "file")


@given(st.lists(st.text(LETTERS + " ", max_size=30), min_size=1, max_size=5))
def test_without_merges_the_ratio_is_letters_per_word(sequences: list[str]) -> None:
    words = count_words(sequences)
    letters = sum(len(word) * count for word, count in words.items())
    if letters:
        assert word_split_ratio(byte_level([]), words, "test") == pytest.approx(letters / words.total())


@given(st.lists(st.text(LETTERS, min_size=1, max_size=8), min_size=1, max_size=8), st.sampled_from(LETTERS))
def test_the_ratio_ignores_order_and_another_merge_never_raises_it(words: list[str], letter: str) -> None:
    forward, backward = count_words([" ".join(words)]), count_words([" ".join(words[::-1])])
    before = word_split_ratio(byte_level([("a", "b")]), forward, "test")
    assert before == word_split_ratio(byte_level([("a", "b")]), backward, "test")
    assert 1 <= word_split_ratio(byte_level([("a", "b"), ("c", letter)]), forward, "test") <= before


def test_a_lowercasing_normaliser_counts() -> None:
    backend = Backend(models.WordPiece({"[UNK]": 0, "ab": 1}, unk_token="[UNK]"))
    backend.normalizer = normalizers.Lowercase()
    definition = read_definition(backend.to_str(), "test")
    assert running_text(definition, ["AB"], "test")[1] == 0.0


@given(st.integers(0, 60), st.integers(1, 80), st.integers(0, 5))
def test_the_sample_is_without_replacement_in_order_and_seeded(total: int, count: int, seed: int) -> None:
    sequences = [str(number) for number in range(total)]
    drawn = draw(sequences, count, seed)
    assert len(drawn) == min(total, count)
    assert drawn == sorted(set(drawn), key=int)
    assert drawn == draw(iter(sequences), count, seed)


def test_another_seed_draws_others_and_all_are_equally_likely() -> None:
    sequences = [str(number) for number in range(20)]
    drawn = Counter(text for seed in range(2000) for text in draw(sequences, 5, seed))
    assert draw(sequences, 5, 0) != draw(sequences, 5, 1)
    # 500 expected, standard deviation 19.4: five of them on either side.
    assert all(403 < drawn[text] < 597 for text in sequences)


def test_sequences_are_documents_or_lines_never_blank() -> None:
    texts = ["a b\n\nc", " \n", "d"]
    assert list(sequences_of(texts, "documents")) == ["a b\n\nc", "d"]
    assert list(sequences_of(texts, "lines")) == ["a b", "c", "d"]
