"""Counts of words, tokens and bytes in four scripts, by hand, for a tokenizer with one token for each byte."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from hatchery.artifacts.manifests import read_manifest, stage_run
from hatchery.errors import TokenizationError
from hatchery.runner import run_stage
from hatchery.tokenization.documents import LineStream
from hatchery.tokenization.encoder import DocumentEncoder
from hatchery.tokenization.stages.encode_corpus import encode_corpus
from hatchery.tokenization.stages.train_tokenizer import train_tokenizer
from hatchery.tokenization.token_counts import Counts
from hatchery.tokenization.token_shards import TokenShards, TokenTable, id_dtype, write_shard
from hatchery.tokenization.tokenizer_file import load_tokenizer
from hatchery.tokenization.trainer import train
from hatchery.tokenization.trainer_settings import TokenizerSettings

BYTES = {"kind": "byte_bpe", "individual_digits": False, "add_prefix_space": False, "allow_smaller": False}
"""With 7 special tokens and 256 bytes there are 263 entries and no merge."""
TRAIN = [
    # speech: 7 and 3 bytes, 3 words, one paragraph; with the line end 11 bytes of text.
    "the cat\nsat",
    # books: 2 * 7 + 1 and 2 * 3 bytes, 3 words, two paragraphs; with two line ends 23 bytes.
    "кот спал\n\nдом",
    # speech: 3 + 1 + 6 bytes, 2 words.
    "猫 睡了",
    # books: 6 * 3 + 1 bytes and an unknown token, which is 5 bytes of text; 2 words.
    "बिल्ली [UNK]",
    # speech: no text, 3 bytes.
    " \n ",
]
DEV = ["tt ¼"]
"""speech: 2 + 1 + 2 bytes, 2 words."""


@pytest.fixture(scope="module")
def encoded(small: SimpleNamespace, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("encoded")
    corpus = small.write_corpus(folder / "corpus", {"train": TRAIN, "dev": DEV}, per_shard=2)
    settings = small.tokenizer_settings(**{**BYTES, "vocabulary_size": 263})
    run_stage(train_tokenizer, settings, folder / "tokenizer/manifest.json", corpus=[corpus])
    run_stage(
        encode_corpus, {}, folder / "tokens/manifest.json", corpus=corpus, tokenizer=folder / "tokenizer/manifest.json"
    )
    return folder


def test_every_number_of_the_statistics_is_that_of_a_count_by_hand(encoded: Path) -> None:
    text = (encoded / "tokens/statistics.csv").read_text(encoding="utf-8")
    assert text.split() == [
        "split,source,documents,sentences,words,tokens,subwords,unknown,fertility,unknown_rate",
        "dev,speech,1,1,2,6,5,0,2.5,0.0",
        # 41 / 5 and 1 / 41.
        "train,books,2,3,5,44,41,1,8.2,0.02439",
        "train,speech,2,3,5,22,20,0,4.0,0.0",
    ]
    measures = read_manifest(encoded / "tokens/manifest.json").measures
    # 61 / 10 and 1 / 61.
    assert measures["splits"]["train"] == {
        "documents": 4,
        "sentences": 6,
        "words": 10,
        "tokens": 66,
        "subwords": 61,
        "unknown": 1,
        "fertility": 6.1,
        "unknown_rate": 0.016393,
    }
    assert measures["text_words"] == {"train": 10, "dev": 2}
    assert measures["text_bytes"] == {"train": 11 + 23 + 10 + 24 + 3, "dev": 5}
    assert (measures["empty_documents"], measures["vocabulary_size"], measures["id_type"]) == (1, 263, "uint16")
    # There are 35 types; the type at rank floor(0.95 * 35) = 33 (from 0) occurs once, as most types do.
    assert measures["train_frequency_at_95_percent"] == 1


def test_tokens_are_counted_in_the_training_split_alone(encoded: Path) -> None:
    counts = json.loads((encoded / "tokens/unigram.json").read_text(encoding="utf-8"))["counts"]
    loaded = load_tokenizer(encoded / "tokenizer/tokenizer.json")
    by_token = {token: counts[index] for index, token in enumerate(loaded.tokens)}
    # The development text has three more letters t and one more space.
    assert {token: by_token[token] for token in ("t", "Ġ", "[UNK]", "[PAR]", "a", "h")} == {
        "t": 3,
        "Ġ": 4,
        "[UNK]": 1,
        "[PAR]": 5,
        "a": 2,
        "h": 1,
    }
    assert sum(counts) == 66


def test_a_split_knows_its_own_numbers_and_every_document_is_found_in_its_shard(encoded: Path) -> None:
    manifest = encoded / "tokens/manifest.json"
    train, dev = (TokenShards.open(manifest, split) for split in ("train", "dev"))
    assert [(one.words, one.text_words, one.text_bytes, one.n_tokens, len(one)) for one in (train, dev)] == [
        (10, 10, 71, 66, 4),
        (2, 2, 5, 6, 1),
    ]
    assert train.document_lengths().tolist() == [11, 23, 11, 21]
    # Each shard has two documents, except the last shard, whose only document is empty and was dropped.
    assert [train.doc_id(index) for index in range(4)] == [f"train/{index}" for index in range(4)]
    assert [len(train.document(index).ids) for index in range(4)] == [11, 23, 11, 21]
    # A word begins at its space, and [PAR] is a separate unit: the, Ġcat, sat, [PAR].
    assert np.flatnonzero(train.document(0).word_starts).tolist() == [0, 3, 7, 10]
    assert train.document(0).sentence_starts.tolist() == [0, 7]
    # Two paragraphs: кот (6 bytes), Ġспал, [PAR], дом, [PAR].
    assert np.flatnonzero(train.document(1).word_starts).tolist() == [0, 6, 15, 16, 22]
    assert train.document(1).sentence_starts.tolist() == [0, 16]
    # A space before an unknown token does not begin a word.
    assert np.flatnonzero(train.document(3).word_starts).tolist() == [0, 19, 20]


def test_a_vocabulary_of_exactly_the_alphabet_is_possible_and_of_one_less_or_more_is_not(
    small: SimpleNamespace, tmp_path: Path
) -> None:
    # 12 entries: a, b, c, d, the space and 7 special tokens; no pair occurs twice.
    corpus = small.write_corpus(tmp_path / "corpus", {"train": ["ab cd"]})
    for size, message in ((11, "got 11, expected at least 12"), (12, ""), (13, "only 12 entries")):
        settings = small.tokenizer_settings(**{**BYTES, "byte_alphabet": "observed", "vocabulary_size": size})
        folder = tmp_path / str(size)
        if message:
            with pytest.raises(TokenizationError, match=message):
                run_stage(train_tokenizer, settings, folder / "manifest.json", corpus=[corpus])
        else:
            run_stage(train_tokenizer, settings, folder / "manifest.json", corpus=[corpus])
            assert len(load_tokenizer(folder / "tokenizer.json").tokens) == 12


def test_measures_of_a_training_are_those_of_its_documents_and_lines(small: SimpleNamespace, tmp_path: Path) -> None:
    # 3 documents have 7 lines; the 2 documents of one source have 5 lines.
    texts = ["the cat\nкот\nab ab", "猫 睡了\nabc", "बिल्ली\nx"]
    corpus = small.write_corpus(tmp_path / "corpus", {"train": texts})
    found = {}
    for name, changes in {"all": {}, "three": {"sentences_limit": 3}, "speech": {"sources": ["speech"]}}.items():
        settings = small.tokenizer_settings(**{**BYTES, "vocabulary_size": 270, "allow_smaller": True, **changes})
        run_stage(train_tokenizer, settings, tmp_path / name / "manifest.json", corpus=[corpus])
        measures = read_manifest(tmp_path / name / "manifest.json").measures
        found[name] = tuple(measures.get(key) for key in ("training_documents", "training_lines", "available_lines"))
    assert found == {"all": (3, 7, None), "three": (3, 3, 7), "speech": (2, 5, None)}
    # Pairs that occur twice make five entries: ab, and E0 A4, E0 A5 and their neighbours in the Devanagari word make
    # four.
    assert read_manifest(tmp_path / "all/manifest.json").measures["vocabulary_size"] == 268


def test_kept_lines_are_spread_evenly(small: SimpleNamespace, tmp_path: Path) -> None:
    """3 of 7 lines: after line i, floor(3 i / 7) lines are kept, so the third, fifth and seventh are kept."""
    texts = ["one\ntwo\nthree", "vier\n\nпять", "六\nसात"]
    manifest = small.write_corpus(tmp_path / "corpus", {"train": texts})
    shards = read_manifest(manifest).files(".parquet")
    assert [line for lines in LineStream(shards, keep=(3, 7)) for line in lines] == ["three", "пять", "सात"]
    assert [line for lines in LineStream(shards, keep=(1, 7)) for line in lines] == ["सात"]


def test_a_vocabulary_of_65535_is_stored_in_16_bits_and_a_larger_one_in_32() -> None:
    assert [id_dtype(size).itemsize for size in (65_535, 65_536, 65_537)] == [2, 4, 4]


def test_a_shard_has_at_most_the_tokens_that_a_32_bit_offset_counts(tmp_path: Path) -> None:
    class Ids(np.ndarray):
        length = 0

        def __len__(self) -> int:
            return self.length

    for length, refused in ((2**31 - 1, False), (2**31, True)):
        ids = np.zeros(1, dtype=np.uint16).view(Ids)
        ids.length = length
        table = TokenTable(["a"], ids, np.ones(1, bool), np.array([0, 1]), np.array([0]), np.array([0, 1]))
        if refused:
            with pytest.raises(TokenizationError, match="2,147,483,648 tokens do not fit into one shard"):
                write_shard(tmp_path / "a.arrow", table, 300)
        else:
            write_shard(tmp_path / "a.arrow", table, 300)


def test_shares_are_of_words_and_of_subwords() -> None:
    counts = Counts(documents=1, sentences=2, words=3, tokens=11, subwords=7, unknown=2)
    assert (counts.as_measures()["fertility"], counts.as_measures()["unknown_rate"]) == (2.333333, 0.285714)
    assert Counts(tokens=4).as_measures() == {**vars(Counts(tokens=4)), "fertility": 0.0, "unknown_rate": 0.0}


def test_where_words_are_pre_tokens_those_between_white_space_are_counted_beside_them(
    small: SimpleNamespace, tmp_path: Path
) -> None:
    # Pre-tokens: do n't stop . / кот , пёс / each Chinese character / सब घर; by white space, each text has 2 words.
    texts = ["don't stop.", "кот, пёс", "猫 睡了。", "सब घर"]
    corpus = small.write_corpus(tmp_path / "corpus", {"train": texts})
    kind = {"special_tokens": "bnc", "normalizer": "ltg_bnc", "pre_tokenizer": "ltg_bnc", "min_frequency": 0}
    settings = small.tokenizer_settings(**kind, continuing_subword_prefix="@@", vocabulary_size=200, allow_smaller=True)
    run_stage(train_tokenizer, settings, tmp_path / "tokenizer/manifest.json", corpus=[corpus])
    files = {"corpus": corpus, "tokenizer": tmp_path / "tokenizer/manifest.json"}
    run_stage(encode_corpus, {}, tmp_path / "tokens/manifest.json", **files)
    measures = read_manifest(tmp_path / "tokens/manifest.json").measures
    assert measures["splits"]["train"]["words"] == 4 + 3 + 4 + 2
    assert measures["text_words"] == {"train": 2 + 2 + 2 + 2}
    assert TokenShards.open(tmp_path / "tokens/manifest.json", "train").text_words == 8


def test_a_sentence_that_starts_at_the_end_of_its_document_is_damage(encoded: Path) -> None:
    for start, damaged in ((4, False), (5, True)):
        table = TokenTable(
            ["a"],
            np.arange(5, dtype=np.uint16),
            np.ones(5, bool),
            np.array([0, 5]),
            np.array([0, start]),
            np.array([0, 2]),
        )
        folder = encoded / f"start_{start}"
        with stage_run(folder / "manifest.json", {"stage": "encode_corpus"}) as run:
            write_shard(folder / "train-00000-of-00001.arrow", table, 263)
            run.add_output(folder / "train-00000-of-00001.arrow")
            run.measures.update(read_manifest(encoded / "tokens/manifest.json").measures)
        if damaged:
            with pytest.raises(TokenizationError, match="a sentence starts outside of its document"):
                TokenShards.open(folder / "manifest.json", "train")
        else:
            assert TokenShards.open(folder / "manifest.json", "train").document(0).sentence_starts.tolist() == [0, 4]


def test_a_sentence_of_a_whole_document_starts_at_the_token_of_its_first_letter(encoded: Path) -> None:
    encoder = DocumentEncoder(load_tokenizer(encoded / "tokenizer/tokenizer.json"), "documents")
    # a b Ġ c d: the second sentence begins after the space Ġ.
    assert encoder.encode(["a"], ["ab\ncd"]).sentence_starts.tolist() == [0, 3]


@pytest.mark.parametrize(("letters", "told"), [(997, True), (998, False)])
def test_unknown_tokens_are_told_above_a_thousandth_of_the_subwords(
    letters: int, told: bool, encoded: Path, small: SimpleNamespace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # One unknown token among 999 or 1,000 subwords, which are letters and a space.
    corpus = small.write_corpus(tmp_path / "corpus", {"train": ["a" * letters + " [UNK]"]})
    files = {"corpus": corpus, "tokenizer": encoded / "tokenizer/manifest.json"}
    run_stage(encode_corpus, {}, tmp_path / "tokens/manifest.json", **files)
    assert ("of the subwords of train" in capsys.readouterr().err) == told


def test_special_tokens_are_a_part_of_the_size_that_is_asked_for() -> None:
    words = [a + b + c for a in "абвг" for b in "猫犬鳥魚" for c in "abcd"]
    settings = TokenizerSettings("unigram", 40, special_tokens="roberta", pre_tokenizer="metaspace")
    assert train([[" ".join(words)]] * 9, settings).get_vocab_size() == 40
