"""Adjusted words and jieba words in hand-made text of several scripts, counted by hand."""

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from hatchery.artifacts.manifests import read_manifest
from hatchery.corpora.word_counting import BYTE_PREMIUMS, WordCounting, bytes_per_word
from hatchery.errors import ConfigError, TokenizationError
from hatchery.runner import run_stage
from hatchery.tokenization import token_words
from hatchery.tokenization.documents import sentence_places
from hatchery.tokenization.stages.encode_corpus import encode_corpus
from hatchery.tokenization.stages.train_tokenizer import train_tokenizer
from hatchery.tokenization.token_shards import TokenShards
from hatchery.training.start_settings import BudgetSettings
from hatchery.training.word_budget import most_words

BYTES = {"kind": "byte_bpe", "individual_digits": False, "add_prefix_space": False, "vocabulary_size": 263}
"""One token for each byte: 7 special tokens, 256 bytes, no merge."""
WORDPIECE = {"pre_tokenizer": "ltg_bnc", "continuing_subword_prefix": "@@", "vocabulary_size": 120}
GPT_BERT = {"kind": "byte_bpe", "special_tokens": "gpt_bert", "normalizer": "gpt_bert", "pre_tokenizer": "gpt_bert"}
ENGLISH = {"word_count": "adjusted", "byte_premium": 1.0}


def encoded(
    small: SimpleNamespace, folder: Path, texts: list[str], counting: dict[str, Any], **tokenizer: Any
) -> TokenShards:
    """Encode texts, which alternate between the sources `speech` and `books`."""
    corpus = small.write_corpus(folder / "corpus", {"train": texts}, per_shard=2)
    settings = small.tokenizer_settings(**{"min_frequency": 1, "allow_smaller": True, **(tokenizer or BYTES)})
    made, tokens = folder / "tokenizer/manifest.json", folder / "tokens/manifest.json"
    run_stage(train_tokenizer, settings, made, corpus=[corpus])
    units = {"units": "documents"} if tokenizer == GPT_BERT | {"vocabulary_size": 320} else {}
    run_stage(encode_corpus, {**counting, **units}, tokens, corpus=corpus, tokenizer=made)
    return TokenShards.open(tokens, "train")


def counts(shards: TokenShards, number: int) -> list[int]:
    found = shards.document(number).word_counts
    assert found is not None
    return found.tolist()


def test_the_challenges_premiums_are_named() -> None:
    assert dict(BYTE_PREMIUMS) == {
        "eng_latn": 1,
        "nld_latn": 1.0516057,
        "zho_hans": 0.9359664,
        "zho_hant": 0.9893825,
    }
    # 100 million words are 543 MB of English, or this size times the premium of Dutch and of traditional Chinese.
    assert 10**8 * bytes_per_word(1.0) == 543_000_000
    assert math.floor(10**8 * bytes_per_word(1.0516057)) == 571_021_895
    assert math.floor(10**8 * bytes_per_word(0.9893825)) == 537_234_697


def test_an_adjusted_word_begins_every_5_43_bytes_from_one_document_to_the_next(
    small: SimpleNamespace, tmp_path: Path
) -> None:
    # English texts of 12, 3 and 8 bytes: words begin at the bytes 0, 5.43, 10.86, 16.29 and 21.72 of all texts
    # together.
    texts = ["abcdefghijkl", "abc", "abcdefgh"]
    shards = encoded(small, tmp_path, texts, ENGLISH)
    assert counts(shards, 0) == [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0]
    # Bytes 12 to 15, and 15 to 23; the last token marks the end of the paragraph.
    assert counts(shards, 1) == [0, 0, 0, 0]
    assert counts(shards, 2) == [0, 1, 0, 0, 0, 0, 1, 0, 0]
    assert shards.text_words == 5 == math.ceil(23 / 5.43)
    measures = read_manifest(tmp_path / "tokens/manifest.json").measures
    assert (measures["word_count"], measures["byte_premium"]) == ("adjusted", 1.0)
    assert shards.word_count == "adjusted"


def test_every_split_begins_with_a_word_and_the_premium_of_a_source_goes_first() -> None:
    counting = WordCounting(word_count="adjusted", byte_premium=1.0, byte_premiums={"books": 0.5})
    counter = token_words.AdjustedWords(counting)
    # After 12 bytes, the next word begins at byte 16.29, or at byte 13.575 for words of half the size.
    for source, third in (("speech", 0), ("books", 1)):
        assert counter("abcdefghijkl", source, np.arange(1, 13))[0] == 1
        assert counter("abc", source, np.arange(1, 4)).tolist() == [0, third, 0]
    counter.begin_split()
    assert counter("abc", "speech", np.arange(1, 4)).tolist() == [1, 0, 0]


def test_the_last_token_represents_the_rest_of_the_document() -> None:
    text = "abc de\u3000"
    assert token_words.whole_token_ends(text, np.array([0]), [3, 6]).tolist() == [3, 7]
    assert token_words.sentence_token_ends(text, ["abc de"], [[(0, 3), (3, 6)]], [3]).tolist() == [3, 6, 7]


TEXTS = [
    "the cat sat\non the mat\n\nagain",
    "de kat zat op de mat; één café",
    "猫坐在垫子上。\n狗也是。",
    "貓坐在墊子上。",
    "кот сидел\n\nна коврике",
    "جلست القطة على السجادة",
    "mixed 文本 и текст 😀",
]
SIZES = [29, 33, 34, 21, 38, 41, 31]
"""Bytes (UTF-8) of the texts, line ends included."""


@pytest.mark.parametrize(
    "tokenizer", [BYTES, WORDPIECE, GPT_BERT | {"vocabulary_size": 320}], ids=["bytes", "wordpiece", "gpt_bert"]
)
def test_a_text_has_its_bytes_over_the_premium_of_its_language(
    small: SimpleNamespace, tmp_path: Path, tokenizer: dict[str, Any]
) -> None:
    assert [len(text.encode()) for text in TEXTS] == SIZES
    shards = encoded(
        small,
        tmp_path,
        TEXTS,
        {"word_count": "adjusted", "byte_premiums": {"speech": 1.0516057, "books": 0.9359664}},
        **tokenizer,
    )
    # speech: 29 + 34 + 38 + 31 bytes over 5.7102 are 23.12; books: 33 + 21 + 41 bytes over 5.0823 are 18.69.
    assert shards.text_words == 24 + 19
    assert sum(sum(counts(shards, number)) for number in range(7)) == 24 + 19
    assert sum(counts(shards, 0)) == 6 == math.ceil(29 / 5.7102)


def test_the_limit_of_a_text_is_held_to_the_byte(small: SimpleNamespace, tmp_path: Path) -> None:
    budget = BudgetSettings(100, corpus_words=100, epochs=10)
    for size, words in ((542, 100), (543, 100), (544, 101)):
        shards = encoded(small, tmp_path / str(size), ["a" * size], ENGLISH)
        assert shards.text_words == words
        if words == 100:
            assert most_words(budget, words) == 100
        else:
            with pytest.raises(ConfigError, match="corpus_words: the text has 101 words, expected at most 100"):
                most_words(budget, words)


JIEBA = {
    # 我 爱 北京 天安门
    "我爱北京天安门": 4,
    # 我 来到 北京 清华大学 。
    "我来到北京清华大学。": 5,
    # Two lines: 他 来到 了 网易 杭研 大厦, and 小明 硕士 毕业 于 (two words of the hidden Markov model: 杭研, 小明).
    "他来到了网易杭研大厦\n小明硕士毕业于": 10,
    # Traditional: 臺 灣的 天氣 很 好
    "臺灣的天氣很好": 5,
    # Each English word, number and punctuation mark is a word, but a space is not: hello , world 3.14
    "hello, world 3.14": 4,
    # In other scripts, each letter is a word: э т о · м и р
    "это мир": 6,
    "مرحبا بك": 7,
    # 我 说 hello ， э
    "我说hello，э": 5,
}


@pytest.mark.parametrize(
    "tokenizer", [BYTES, WORDPIECE, GPT_BERT | {"vocabulary_size": 320}], ids=["bytes", "wordpiece", "gpt_bert"]
)
def test_words_of_jieba_are_those_of_its_default_mode(
    small: SimpleNamespace, tmp_path: Path, tokenizer: dict[str, Any]
) -> None:
    shards = encoded(small, tmp_path, list(JIEBA), {"word_count": "jieba"}, **tokenizer)
    assert [sum(counts(shards, number)) for number in range(len(JIEBA))] == list(JIEBA.values())
    assert shards.text_words == sum(JIEBA.values()) == 46
    assert read_manifest(tmp_path / "tokens/manifest.json").measures["word_count"] == "jieba"


def test_a_word_of_jieba_begins_in_the_token_of_its_first_character(small: SimpleNamespace, tmp_path: Path) -> None:
    shards = encoded(small, tmp_path, ["我爱北京天安门"], {"word_count": "jieba"})
    # Seven characters of three bytes, and the end of the paragraph: 我 爱 北京 天安门.
    assert np.flatnonzero(counts(shards, 0)).tolist() == [0, 3, 6, 12]


def test_a_corpus_that_names_no_rule_has_the_shards_that_it_had(small: SimpleNamespace, tmp_path: Path) -> None:
    shards = encoded(small, tmp_path, TEXTS, {})
    assert shards.document(0).word_counts is None
    assert shards.word_count == "white_space"
    measures = read_manifest(tmp_path / "tokens/manifest.json").measures
    assert not {"word_count", "byte_premium", "byte_premiums"} & set(measures)
    assert read_manifest(tmp_path / "tokens/manifest.json").settings == {}


def test_a_source_without_a_premium_is_named(small: SimpleNamespace, tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match="byte_premium: the source 'books' has no byte premium; expected one number for all"
    ):
        encoded(small, tmp_path, TEXTS, {"word_count": "adjusted", "byte_premiums": {"speech": 1.0}})


def test_another_jieba_and_a_missing_one_are_one_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_words, "JIEBA_VERSION", "0.41")
    with pytest.raises(ConfigError, match=r"counts words with jieba 0\.41, found version 0\.42\.1"):
        token_words.load_jieba()
    monkeypatch.setitem(__import__("sys").modules, "jieba", None)
    with pytest.raises(ConfigError, match="word_count: jieba needs the package jieba"):
        token_words.load_jieba()


def test_a_token_with_more_words_than_its_column_holds_is_refused() -> None:
    counter = token_words.word_counter(WordCounting(word_count="adjusted", byte_premium=0.01))
    assert counter is not None
    # With 0.0543 bytes per word, 65,525 words begin in 3,558 bytes, and 65,544 words begin in 3,559 bytes.
    text = "a" * 3558
    assert token_words.counts_of_document(counter, "d", text, "s", np.array([3558])).tolist() == [65_525]
    counter.begin_split()
    with pytest.raises(TokenizationError, match=r"document 'd': one token represents 65,544 words, expected at most"):
        token_words.counts_of_document(counter, "d", text + "a", "s", np.array([3559]))


def test_places_of_sentences_count_line_ends_and_leading_spaces() -> None:
    assert sentence_places("Ab.\n  cd\n\nef") == [0, 6, 10]
