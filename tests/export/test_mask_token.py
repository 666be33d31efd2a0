"""The mask of an exported tokenizer: tokens around a mask are those of the whole text; other texts do not change."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer as Backend

from hatchery.export.model_folder import with_mask_in_text
from hatchery.tokenization.tokenizer_file import load_tokenizer
from hatchery.tokenization.trainer import train
from hatchery.tokenization.trainer_settings import TokenizerSettings

# Another version of transformers installs another version of tokenizers.
pytestmark = pytest.mark.hub

KINDS: dict[str, dict[str, Any]] = {
    "byte-level WordPiece": {"kind": "wordpiece"},
    "byte-level BPE": {"kind": "byte_bpe"},
    "RoBERTa's BPE without a prefix space": {"kind": "byte_bpe", "special_tokens": "roberta"},
    "Unigram": {"kind": "unigram", "pre_tokenizer": "metaspace", "normalizer": "nmt_nfkc"},
    "Unigram with RoBERTa's special tokens": {
        **{"kind": "unigram", "pre_tokenizer": "metaspace", "special_tokens": "roberta"}
    },
    "the BNC's WordPiece with a prefix": {
        **{"kind": "wordpiece", "special_tokens": "bnc", "normalizer": "ltg_bnc", "pre_tokenizer": "ltg_bnc"},
        "continuing_subword_prefix": "@@",
    },
    "uncased BERT's WordPiece": {
        **{"kind": "wordpiece", "normalizer": "bert_uncased", "pre_tokenizer": "bert"},
        "continuing_subword_prefix": "##",
    },
}
SENTENCES = ("The old dogs near the house sleep.", "A cat chases the dogs.", "She likes old houses, and sleeps.")
# Every kind of tokenizer separates these words from a mask that follows.
TEXT = "The old dogs sleep , near the house ."
PIECES = ["dogs", "the", " ", "  ", ".", "UNKNOWN", "12", "\t", "\n", "é", "a\u0301", "'s", "PAD"]


def trained(kind: str) -> tuple[Backend, Backend]:
    """Return a tokenizer as trained, and as exported."""
    settings = TokenizerSettings(vocabulary_size=330, min_frequency=2, allow_smaller=True, **KINDS[kind])
    before = train([*SENTENCES, TEXT] * 20, settings)
    definition = json.loads(before.to_str())
    return before, Backend.from_str(json.dumps(with_mask_in_text(definition, settings.special.mask)))


TRAINED = {kind: trained(kind) for kind in KINDS}


def mask_of(backend: Backend) -> str:
    return "<mask>" if backend.token_to_id("<mask>") is not None else "[MASK]"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("word", ["The", "dogs", "sleep", "house"])
def test_a_masked_text_is_cut_as_the_whole_text_was(kind: str, word: str) -> None:
    before, exported = TRAINED[kind]
    mask = exported.token_to_id(mask_of(exported))
    start = TEXT.index(word)
    end = start + len(word)
    encoding = before.encode(TEXT, add_special_tokens=False)
    expected: list[int] = []
    for index, (first, last) in zip(encoding.ids, encoding.offsets, strict=True):
        inside = first < end and last > start and TEXT[first:last].strip() != ""
        if not inside:
            expected.append(index)
        elif mask not in expected:
            expected.append(mask)
    written = TEXT[:start] + mask_of(exported) + TEXT[end:]
    assert exported.encode(written, add_special_tokens=False).ids == expected


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "Unigram" not in kind])
def test_a_mark_right_behind_the_mask_is_no_word_of_its_own(kind: str) -> None:
    before, exported = TRAINED[kind]
    (mark,) = (before.encode(text, add_special_tokens=False).ids[-1] for text in ("The old dogs.",))
    found = exported.encode(f"The old {mask_of(exported)}.", add_special_tokens=False).ids
    assert found[-2:] == [exported.token_to_id(mask_of(exported)), mark]


@pytest.mark.parametrize("kind", KINDS)
@given(pieces=st.lists(st.sampled_from(PIECES), max_size=9))
def test_a_text_without_a_mask_keeps_its_ids(kind: str, pieces: list[str]) -> None:
    before, exported = TRAINED[kind]
    roberta = mask_of(before) == "<mask>"
    names = {"UNKNOWN": "<unk>" if roberta else "[UNK]", "PAD": "<pad>" if roberta else "[PAD]"}
    text = "".join(names.get(piece, piece) for piece in pieces)
    assert exported.encode(text).ids == before.encode(text).ids
    pair = exported.encode(text, "the dogs"), before.encode(text, "the dogs")
    assert pair[0].ids == pair[1].ids


@pytest.mark.parametrize("kind", KINDS)
def test_an_exported_tokenizer_is_one_that_hatchery_reads(kind: str, tmp_path: Path) -> None:
    before, exported = TRAINED[kind]
    exported.save(str(tmp_path / "exported.json"))
    before.save(str(tmp_path / "before.json"))
    one, other = load_tokenizer(tmp_path / "exported.json"), load_tokenizer(tmp_path / "before.json")
    assert one.word_mark == other.word_mark
    (ids,) = one.encode_sentences([SENTENCES[0]])
    assert [ids] == other.encode_sentences([SENTENCES[0]])
    assert one.decode(ids) == other.decode(ids)
