"""Smaller tokenizers cut from a larger one are the tokenizers that training makes, byte for byte."""

from types import SimpleNamespace
from typing import Any

import pytest

from hatchery.errors import TokenizationError
from hatchery.tokenization.documents import training_lines
from hatchery.tokenization.selection.backends import read_definition
from hatchery.tokenization.selection.candidates import cut_down, is_nested, smallest_size, vocabulary_size
from hatchery.tokenization.tokenizer_file import open_backend
from hatchery.tokenization.trainer import train
from hatchery.tokenization.trainer_settings import TokenizerSettings
from hatchery.typed import build

KINDS: dict[str, dict[str, Any]] = {
    "byte_bpe": {"kind": "byte_bpe", "individual_digits": False},
    "byte_bpe of the study": {"kind": "byte_bpe", "special_tokens": "roberta", "individual_digits": False},
    "byte-level WordPiece": {"kind": "wordpiece"},
    "observed bytes": {"kind": "wordpiece", "byte_alphabet": "observed"},
    "BNC WordPiece": {
        "kind": "wordpiece",
        "special_tokens": "bnc",
        "continuing_subword_prefix": "@@",
        "normalizer": "ltg_bnc",
        "pre_tokenizer": "ltg_bnc",
    },
}
SIZES = {"observed bytes": (120, 200), "BNC WordPiece": (150, 200)}


def settings_of(kind: str, size: int, min_frequency: int = 0) -> TokenizerSettings:
    return build(TokenizerSettings, {**KINDS[kind], "vocabulary_size": size, "min_frequency": min_frequency})


@pytest.fixture(scope="module")
def lines(small: SimpleNamespace) -> list[str]:
    return [line for text in small.documents(60, 5) for line in training_lines(text)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("min_frequency", [0, 3])
def test_a_cut_tokenizer_is_the_trained_one(kind: str, min_frequency: int, lines: list[str]) -> None:
    smaller, larger = SIZES.get(kind, (300, 400))
    definition = read_definition(train([lines], settings_of(kind, larger, min_frequency)).to_str(), "test")
    assert is_nested(settings_of(kind, larger))
    assert vocabulary_size(definition) == larger, "the text must support the larger size"
    for size in (smaller, smaller + 1, (smaller + larger) // 2, larger):
        trained = train([lines], settings_of(kind, size, min_frequency))
        cut = open_backend(cut_down(definition, size, "test"), "test")
        assert cut.to_str(pretty=True) == trained.to_str(pretty=True)


@pytest.mark.parametrize("kind", KINDS)
def test_the_smallest_size_has_no_merges_and_below_it_is_refused(kind: str, lines: list[str]) -> None:
    definition = read_definition(train([lines], settings_of(kind, SIZES.get(kind, (300, 400))[1])).to_str(), "test")
    smallest = smallest_size(definition)
    cut = cut_down(definition, smallest, "test")
    assert vocabulary_size(cut) == smallest
    assert not cut["model"].get("merges")
    with pytest.raises(TokenizationError, match=f"the size {smallest - 1} is too small"):
        cut_down(definition, smallest - 1, "test")


def test_more_than_the_text_supports_is_refused(lines: list[str]) -> None:
    definition = read_definition(train([lines], settings_of("byte_bpe", 300)).to_str(), "test")
    with pytest.raises(TokenizationError, match="the size 301 is too large, the corpus supports only 300 entries"):
        cut_down(definition, 301, "test")


def test_a_merge_into_an_entry_that_exists_already_makes_no_new_one() -> None:
    # ab+c and a+bc both make abc; the cut at abc keeps the merges before it and not the one behind it.
    vocabulary = {token: index for index, token in enumerate(["a", "b", "c", "ab", "bc", "abc", "abca"])}
    merges = [["a", "b"], ["b", "c"], ["ab", "c"], ["a", "bc"], ["abc", "a"]]
    definition = {"added_tokens": [], "model": {"type": "BPE", "vocab": vocabulary, "merges": merges}}
    assert cut_down(definition, 6, "test")["model"]["merges"] == merges[:3]
    assert cut_down(definition, 7, "test")["model"]["merges"] == merges
    assert cut_down(definition, 4, "test")["model"]["merges"] == merges[:1]


def test_unigram_is_not_nested() -> None:
    unigram = {"kind": "unigram", "special_tokens": "roberta", "pre_tokenizer": "metaspace", "min_frequency": 0}
    assert not is_nested(build(TokenizerSettings, {**unigram, "vocabulary_size": 400}))
