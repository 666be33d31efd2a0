"""Measures of a tokenizer: ESMS by hand and on lists of morphemes, word-split ratio, fertility, and the sample."""

import csv
from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer as Backend
from tokenizers import models, normalizers, pre_tokenizers

from hatchery.errors import CorpusError, SourceError
from hatchery.raw.registration import register_source
from hatchery.tokenization.selection.measures import (
    WORD_MARKER,
    Word,
    count_words,
    draw,
    equals_morphemes,
    esms,
    parse_words,
    partial_credit,
    read_definition,
    running_text,
    sequences_of,
    shipped_words,
    source_words,
    surfaces,
    word_split_ratio,
)

DECODE = Word("decode", ("de", "code"))
words_of = st.lists(st.text("abc", min_size=1, max_size=3), min_size=1, max_size=4).map(
    lambda parts: Word("".join(parts), tuple(parts))
)


def wordpiece(entries: list[str], prefix: str = "##") -> dict:
    """Return a WordPiece definition with the given entries."""
    vocabulary = {entry: index for index, entry in enumerate(["[UNK]", *entries])}
    backend = Backend(models.WordPiece(vocabulary, unk_token="[UNK]", continuing_subword_prefix=prefix))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    return read_definition(backend.to_str(), "test")


def metaspace(entries: list[str]) -> dict:
    """Return a Unigram definition that marks the beginning of words, as t5-base does."""
    backend = Backend(models.Unigram([("<unk>", 0.0), *((entry, -1.0) for entry in entries)], 0))
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    return read_definition(backend.to_str(), "test")


@pytest.mark.parametrize(
    ("tokens", "credit"),
    [
        (["decode"], 0),
        (["d", "e", "c", "o", "d", "e"], 0),
        (["de", "code"], 2),
        (["de", "##code"], 2),
        (["_de", "code_"], 2),
        (["de", "co", "de"], 2),
        (["dec", "ode"], 0),
        ([WORD_MARKER + "de", "code"], 1),
    ],
)
def test_published_code_gives_every_token_among_the_morphemes_one(tokens: list[str], credit: int) -> None:
    assert partial_credit(tokens, DECODE) == credit


def test_printed_values_are_whole_numbers_of_265_morphemes() -> None:
    words = shipped_words("own")
    morphemes = [len(word.morphemes) for word in words]
    assert (len(words), morphemes.count(2), morphemes.count(3), sum(morphemes)) == (127, 116, 11, 265)
    printed = {69: 0.2604, 76: 0.2868, 66: 0.2490, 41: 0.1547, 9: 0.0339, 8: 0.0301, 7: 0.0264, 6: 0.0226, 5: 0.0188}
    for credit, value in printed.items():
        assert abs(credit / 265 - value) < 1e-4, "rounded or cut after the fourth decimal"
        assert abs(value - round(value * 127) / 127) > 1e-4, "no share of 127 words"


def test_a_tokenizer_that_knows_the_morphemes_of_some_words_scores_as_counted_by_hand() -> None:
    words = [
        DECODE,
        Word("fitness", ("fit", "ness")),
        Word("podium", ("pod", "ium")),
        Word("unkindly", ("un", "kind", "ly")),
    ]
    # de|code is correct; fitness is not split; pod|i|um and un|kindly have one correct morpheme each.
    definition = wordpiece(["de", "##code", "fitness", "pod", "##i", "##um", "un", "##kindly"])
    scores = esms(definition, words, "test")
    assert scores.definition == 1 / 4
    assert scores.published_code == scores.published_code_corrected == pytest.approx(Fraction(2 + 0 + 1 + 1, 9))


def test_only_the_corrected_reading_sees_behind_the_word_marker() -> None:
    definition = metaspace([WORD_MARKER + "de", "code"])
    scores = esms(definition, [DECODE], "test")
    assert scores.published_code == 1 / 2
    assert scores.published_code_corrected == scores.definition == 1.0


def test_only_the_corrected_reading_sees_behind_another_prefix() -> None:
    scores = esms(wordpiece(["de", "@@code"], "@@"), [DECODE], "test")
    assert (scores.published_code, scores.published_code_corrected) == (1 / 2, 1.0)


def test_surfaces_of_bytes_are_characters() -> None:
    definition = {"model": {"type": "BPE"}, "pre_tokenizer": {"type": "ByteLevel"}}
    assert surfaces(definition, ["ĠcafÃ©", "Ġ", "s"]) == ["café", "s"]


@given(words_of)
def test_exact_morphemes_give_full_credit_unless_whole_or_spelled(word: Word) -> None:
    assert equals_morphemes(word.morphemes, word)
    trivial = len(word.morphemes) in (1, len(word.text))
    assert partial_credit(word.morphemes, word) == (0 if trivial else len(word.morphemes))


@given(words_of, st.lists(st.text("abc#_", min_size=1, max_size=3), max_size=6))
def test_credit_lies_between_nothing_and_the_number_of_tokens(word: Word, tokens: list[str]) -> None:
    assert 0 <= partial_credit(tokens, word) <= len(tokens)
    foreign = [token + "z" for token in tokens]
    assert partial_credit(foreign, word) == 0


def test_the_public_list_is_what_the_paper_prints(golden_directory: Path) -> None:
    text = (golden_directory / "published/reduced_vocabulary_table5_words.csv").read_text(encoding="utf-8")
    printed = [Word(row["word"], tuple(row["morphemes"].split())) for row in csv.DictReader(text.splitlines())]
    assert shipped_words("public_13") == printed
    assert len(printed) == 13


def test_our_own_list_is_marked() -> None:
    folder = Path(__file__).parents[3] / "scripts/hatchery/tokenization/selection"
    assert "NOT the 127 words of the" in (folder / "morphemes_own.csv").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("word,morphemes\nundo,un does\n", "list: line 2: the morphemes 'un does' do not spell the word 'undo'"),
        ("# ours\nword,morphemes\n\nundo,un do\nundo,und o\n", "list: line 5: the word 'undo' is listed twice"),
        ("word,morphemes\n", "list: the list has no words"),
        ("", "list: expected the columns word, morphemes, got ''"),
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
    with pytest.raises(SourceError, match=r"expected one file that matches '\*\.csv', found 2"):
        source_words(tmp_path / "lists.json")


LETTERS = "abcdefgh"


def byte_level(merges: list[tuple[str, str]], prefix_space: bool = True) -> dict:
    """Return byte-level BPE over all bytes with the given merges."""
    entries = [*sorted(pre_tokenizers.ByteLevel.alphabet()), *(left + right for left, right in merges)]
    backend = Backend(models.BPE({entry: index for index, entry in enumerate(entries)}, merges))
    backend.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.ByteLevel(add_prefix_space=prefix_space)])
    return read_definition(backend.to_str(), "test")


def test_empty_strings_are_words_of_no_tokens() -> None:
    words = count_words(["ab  ab", "a"])
    assert words == Counter({"ab": 2, "": 1, "a": 1})
    # ab and a are one token each: 3 tokens for 4 words.
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


def test_tokens_are_counted_for_each_word_and_unknown_ones_for_each_token_in_four_scripts() -> None:
    entries = ["[UNK]", "the", "кот", "猫", "##猫", "सात"]
    backend = Backend(models.WordPiece({entry: index for index, entry in enumerate(entries)}, unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    definition = read_definition(backend.to_str(), "test")
    # 5 words, because a run of white space separates words once, also the wide space in Chinese text; 6 tokens, of
    # which zz is unknown.
    assert running_text(definition, ["the   кот\u3000猫猫", "सात\nzz"], "test") == (6 / 5, 1 / 6)


def test_a_sample_without_words_is_refused() -> None:
    for sequences in ([], [""], [" \n "]):
        with pytest.raises(CorpusError, match="the sample contains no words"):
            word_split_ratio(byte_level([]), count_words(sequences), "corpus")
        with pytest.raises(CorpusError, match="the sample contains no words"):
            running_text(byte_level([]), sequences, "corpus")


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
    # 500 are expected; the bounds are five standard deviations of 19.4.
    assert all(403 < drawn[text] < 597 for text in sequences)


def test_sequences_are_documents_or_lines_never_blank() -> None:
    texts = ["a b\n\nc", " \n", "d"]
    assert list(sequences_of(texts, "documents")) == ["a b\n\nc", "d"]
    assert list(sequences_of(texts, "lines")) == ["a b", "c", "d"]
