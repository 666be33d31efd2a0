"""GPT-BERT's tokenizer: trained on the authors' text, it has the authors' entries and splits texts as theirs does."""

import json
from pathlib import Path

import pytest
from tokenizers import Tokenizer as Backend

from hatchery.errors import ConfigError
from hatchery.evaluation.finetuning.framing import Framing
from hatchery.tokenization.special_tokens import SPECIAL_SETS
from hatchery.tokenization.tokenizer_file import load_tokenizer
from hatchery.tokenization.trainer import train
from hatchery.tokenization.trainer_settings import TokenizerSettings

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "gpt_bert" / "tokenizer"
GPT_BERT = {
    "kind": "byte_bpe",
    "vocabulary_size": 512,
    "special_tokens": "gpt_bert",
    "normalizer": "gpt_bert",
    "pre_tokenizer": "gpt_bert",
}


@pytest.fixture(scope="module")
def backend() -> Backend:
    """A tokenizer trained as published: on raw lines with line ends and JSON quotes, with rare pairs."""
    lines = (GOLDEN / "train.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    return train(lines, TokenizerSettings(**GPT_BERT, min_frequency=0))


def test_the_trained_file_is_the_published_one_but_for_the_names_that_it_lost(backend):
    published = json.loads((GOLDEN / "tokenizer.json").read_text(encoding="utf-8"))
    ours = json.loads(backend.to_str())
    assert published["added_tokens"] == []
    assert [token["content"] for token in ours["added_tokens"]] == list(SPECIAL_SETS["gpt_bert"].order)
    assert {**ours, "added_tokens": []} == published


def test_ids_tokens_offsets_and_texts_are_the_published_ones(backend):
    names = SPECIAL_SETS["gpt_bert"].order
    compared = 0
    for line in (GOLDEN / "encodings.jsonl").read_text(encoding="utf-8").splitlines():
        published = json.loads(line)
        text = published["text"]
        # The published file has no special tokens, so it encodes the names of special tokens as text.
        if any(name in text for name in names):
            continue
        encoding = backend.encode(text, add_special_tokens=False)
        assert (encoding.ids, encoding.tokens) == (published["ids"], published["tokens"]), text
        assert [list(offsets) for offsets in encoding.offsets] == published["offsets"], text
        assert backend.decode(encoding.ids) == published["decoded"], text
        compared += 1
    assert compared == 134


def test_names_of_special_tokens_in_a_text_are_cut_like_the_text_where_they_are_not_recognised(backend, tmp_path):
    backend.save(str(tmp_path / "tokenizer.json"))
    tokenizer = load_tokenizer(tmp_path / "tokenizer.json", recognise=())
    compared = 0
    for line in (GOLDEN / "encodings.jsonl").read_text(encoding="utf-8").splitlines():
        published = json.loads(line)
        if any(name in published["text"] for name in SPECIAL_SETS["gpt_bert"].order):
            assert tokenizer.encode_sentences([published["text"]]) == [published["ids"]]
            compared += 1
    assert compared == 6


def test_a_text_is_begun_and_not_ended(backend, tmp_path):
    info = json.loads((GOLDEN / "info.json").read_text(encoding="utf-8"))["pair"]
    assert backend.encode(info["first"], info["second"]).ids == info["ids"]
    backend.save(str(tmp_path / "tokenizer.json"))
    tokenizer = load_tokenizer(tmp_path / "tokenizer.json")
    assert (tokenizer.between_ids, tokenizer.end_ids) == ([tokenizer.cls_id], [])
    assert Framing.of(tokenizer) == Framing(cls_id=1, separator_id=1, pad_id=3, separators_between=1, n_behind=0)


@pytest.mark.parametrize("changes", [{"kind": "wordpiece"}, {"kind": "bpe", "special_tokens": "babylm"}])
def test_its_cutting_is_for_byte_level_bpe_alone(changes):
    with pytest.raises(
        ConfigError,
        match=r"pre_tokenizer: got 'gpt_bert', expected (?:another pre_tokenizer with kind|metaspace, because)",
    ):
        TokenizerSettings(**{**GPT_BERT, **changes})
