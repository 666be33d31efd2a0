"""An imported tokenizer is used unchanged: a tokenizer.json, or a SentencePiece model.

An imported SentencePiece model splits texts as SentencePiece itself does. `tests/golden/sentencepiece` has models that
the sentencepiece library (0.2) trained on pages of `docs/`, and the pieces of some texts.
"""

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from hatchery.artifacts.manifests import read_manifest
from hatchery.errors import ConfigError, ManifestError, TokenizationError
from hatchery.experiment.project import Project
from hatchery.runner import run_stage
from hatchery.tokenization.imported_tokenizer import import_tokenizer, sentencepiece_tokenizer
from hatchery.tokenization.special_tokens import TEXT_MARKERS
from hatchery.tokenization.tokenizer_file import load_tokenizer
from hatchery.tokenization.trainer import train
from hatchery.tokenization.trainer_settings import TokenizerSettings
from hatchery.workflow.jobs import Jobs


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("theirs") / "tokenizer.json"
    settings = TokenizerSettings("wordpiece", 400, 1, "babylm", allow_smaller=True)
    train(["the dog sees a cat", "a child likes the river"] * 5, settings).save(str(path))
    return path


def size_of(file: Path) -> int:
    return load_tokenizer(file).vocabulary_size


def settings(vocabulary_size: int) -> dict[str, Any]:
    return {"stage": "train_tokenizer", "stage_version": 2, "imported": True, "vocabulary_size": vocabulary_size}


def test_the_file_is_copied_with_what_transformers_wants_and_its_digest(file: Path, tmp_path: Path) -> None:
    output = tmp_path / "out" / "manifest.json"
    run_stage(import_tokenizer, settings(size_of(file)), output, tokenizer_file=file)
    manifest = read_manifest(output)
    manifest.verify()
    assert manifest.file("tokenizer.json").read_bytes() == file.read_bytes()
    assert json.loads(manifest.file("special_tokens_map.json").read_text())["mask_token"]
    assert list(manifest.inputs) == ["tokenizer_file"]


def test_another_size_and_a_missing_file_are_refused(file: Path, tmp_path: Path) -> None:
    with pytest.raises(
        TokenizationError, match=f"vocabulary_size: got 7, expected {size_of(file)}, the number of entries"
    ):
        run_stage(import_tokenizer, settings(7), tmp_path / "out" / "manifest.json", tokenizer_file=file)
    with pytest.raises(ManifestError, match=r"none\.json: the file of the input 'tokenizer_file' is missing"):
        run_stage(
            import_tokenizer, settings(7), tmp_path / "out" / "manifest.json", tokenizer_file=tmp_path / "none.json"
        )


def test_a_block_with_a_path_depends_on_the_file_and_on_no_corpus(file: Path, tmp_path: Path, repository: Path) -> None:
    shutil.copytree(repository / "config", tmp_path / "config")
    block = tmp_path / "config/tokenizers/theirs.yaml"
    text = f"path: {file}\nvocabulary_size: 400\n"
    block.write_text(text)
    project = Project(tmp_path / "config")
    assert Jobs(project).call("train_tokenizer", tokenizer="theirs").arguments["corpus"] == [str(file)]
    chosen = json.loads(Jobs(project).settings("train_tokenizer", tokenizer="theirs"))
    assert chosen["imported"] and "theirs" not in str(chosen)
    block.write_text(text + "corpus: demo\nkind: wordpiece\n")
    with pytest.raises(ConfigError, match=r"theirs\.yaml"):
        Project(tmp_path / "config").check("tokenizer", "theirs")
    block.write_text("path: nowhere.json\nvocabulary_size: 400\n")
    with pytest.raises(
        ConfigError, match=r"theirs\.yaml: path: got 'nowhere.json', expected the path of a tokenizer.json"
    ):
        Project(tmp_path / "config").check("tokenizer", "theirs")


# 500 pieces, of which three are special tokens; our five special tokens replace these.
ENTRIES = 500 - 3 + 5


def unpacked(golden: Path, folder: Path, kind: str) -> Path:
    path = folder / f"{kind}.model"
    path.write_bytes(gzip.decompress((golden / "sentencepiece" / f"{kind}.model.gz").read_bytes()))
    return path


@pytest.mark.parametrize(
    "kind",
    [
        *("unigram", "unigram_identity", "unigram_bytes", "unigram_keep_spaces", "unigram_no_prefix"),
        *("bpe", "bytes", "bpe_digits", "bpe_keep_spaces", "bpe_no_prefix_keep_spaces"),
    ],
)
def test_a_model_cuts_as_sentencepiece_does(golden_directory: Path, tmp_path: Path, kind: str) -> None:
    backend = sentencepiece_tokenizer(unpacked(golden_directory, tmp_path, kind))
    backend.save(str(tmp_path / "tokenizer.json"))
    # As in the encoding of documents, the name of a special token in a text is text.
    tokenizer = load_tokenizer(tmp_path / "tokenizer.json", recognise=TEXT_MARKERS)
    known = set(tokenizer.tokens[tokenizer.n_special :])
    lines = (golden_directory / "sentencepiece" / f"{kind}.jsonl").read_text(encoding="utf-8").split("\n")[:-1]
    assert len(lines) > 40
    for row in map(json.loads, lines):
        # SentencePiece returns the text of unknown pieces.
        expected = [piece if piece in known else "<unk>" for piece in row["pieces"]]
        (ids,) = tokenizer.encode_sentences([row["text"]])
        assert [tokenizer.tokens[index] for index in ids] == expected, row["text"]


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        *(("unigram", "A model learns."), ("bpe_no_prefix_keep_spaces", "  model learns")),
        *(("bytes", "A model ж猫."), ("unigram_bytes", "A model ж猫.")),
    ],
)
def test_a_decoded_text_is_the_text_with_its_spaces_and_the_letters_of_bytes(
    golden_directory: Path, tmp_path: Path, kind: str, text: str
) -> None:
    sentencepiece_tokenizer(unpacked(golden_directory, tmp_path, kind)).save(str(tmp_path / "tokenizer.json"))
    tokenizer = load_tokenizer(tmp_path / "tokenizer.json")
    (ids,) = tokenizer.encode_sentences([text])
    assert tokenizer.decode(ids) == text


def test_a_model_whose_pieces_go_beyond_words_is_refused(golden_directory: Path, tmp_path: Path) -> None:
    with pytest.raises(TokenizationError, match=r"across_words\.model: split_by_whitespace=false is not supported"):
        sentencepiece_tokenizer(unpacked(golden_directory, tmp_path, "across_words"))


def test_unknown_letters_inside_a_word_begin_none_where_the_normaliser_begins_texts(
    golden_directory: Path, tmp_path: Path
) -> None:
    backend = sentencepiece_tokenizer(unpacked(golden_directory, tmp_path, "unigram_keep_spaces"))
    backend.save(str(tmp_path / "tokenizer.json"))
    tokenizer = load_tokenizer(tmp_path / "tokenizer.json")
    assert tokenizer.unknown_texts(["thжe ж"]) == ["ж", "ж"]


def test_it_is_imported_like_a_tokenizer_json_with_our_special_tokens(golden_directory: Path, tmp_path: Path) -> None:
    model, output = unpacked(golden_directory, tmp_path, "unigram"), tmp_path / "out" / "manifest.json"
    run_stage(import_tokenizer, settings(ENTRIES), output, tokenizer_file=model)
    tokenizer = load_tokenizer(read_manifest(output).file("tokenizer.json"))
    assert (tokenizer.vocabulary_size, tokenizer.special.order[:2]) == (ENTRIES, ("<s>", "<pad>"))
    text = "A model learns from the words."
    (ids,) = tokenizer.encode_sentences([text])
    assert tokenizer.decode(ids) == text
    assert tokenizer.backend.encode(text).ids == [tokenizer.cls_id, *ids, tokenizer.sep_id]
    assert read_manifest(output).measures["vocabulary_size"] == ENTRIES
    first = read_manifest(output).file("tokenizer.json").read_bytes()
    run_stage(import_tokenizer, settings(ENTRIES), tmp_path / "again" / "manifest.json", tokenizer_file=model)
    assert read_manifest(tmp_path / "again" / "manifest.json").file("tokenizer.json").read_bytes() == first


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"not a model",
        lambda data: b"\x0a\xff\xff\xff\xff\x0f",
        lambda data: b"\x0a\x02\x08\x01" + data,  # a number in place of the piece's text
        lambda data: data + b"\x1a\x04\x12\x02??",  # invalid normalisation rules
    ],
)
def test_what_is_no_model_is_told_by_its_name(golden_directory: Path, tmp_path: Path, damage: Any) -> None:
    path = unpacked(golden_directory, tmp_path, "bpe")
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(TokenizationError, match=r"bpe\.model: not a SentencePiece model"):
        sentencepiece_tokenizer(path)


@pytest.mark.parametrize(
    ("piece", "trainer", "message"),
    [
        # The trainer's type (field 3) is 3, which is `word`.
        (b"\x0a\x01a", b"\x18\x03", "got a SentencePiece model of type 3"),
        # Field 24 of the trainer, treat_whitespace_as_suffix, is true.
        (b"\x0a\x01a", b"\xc0\x01\x01", "treat_whitespace_as_suffix is not supported"),
        # The piece's type (field 3) is 4.
        (b"\x0a\x01a\x18\x04", b"", "'a' is a user-defined symbol"),
    ],
)
def test_a_model_that_cannot_be_imported_is_refused(tmp_path: Path, piece: bytes, trainer: bytes, message: str) -> None:
    path = tmp_path / "other.model"
    path.write_bytes(b"\x0a" + bytes([len(piece)]) + piece + b"\x12" + bytes([len(trainer)]) + trainer)
    with pytest.raises(TokenizationError, match=message):
        sentencepiece_tokenizer(path)


def test_unused_pieces_are_left_out(tmp_path: Path) -> None:
    # The type of the piece "a" is 5, which is `unused`; the piece "b" is normal.
    (tmp_path / "two.model").write_bytes(b"\x0a\x05\x0a\x01a\x18\x05" + b"\x0a\x03\x0a\x01b")
    assert {"a", "b"} & set(sentencepiece_tokenizer(tmp_path / "two.model").get_vocab()) == {"b"}
