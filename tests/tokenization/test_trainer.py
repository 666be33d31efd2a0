import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from hatchery.errors import ConfigError, CorpusError, TokenizationError
from hatchery.storage.manifests import read_manifest
from hatchery.tokenization.special_tokens import SPECIAL_TOKENS
from hatchery.tokenization.tokenizer_file import load_tokenizer
from hatchery.tokenization.trainer import train_tokenizer, training_lines

TRAIN_BOTH_KINDS = """
import json, sys
from pathlib import Path
from hatchery.tokenization.trainer import train_tokenizer
settings, corpus, folder = json.loads(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
for kind in ("wordpiece", "byte_bpe"):
    train_tokenizer({**settings, "kind": kind}, corpus, folder / kind / "manifest.json")
"""


def vocabulary(manifest: Path) -> list[str]:
    return load_tokenizer(manifest.parent / "tokenizer.json").tokens


def train_changed(small: SimpleNamespace, corpus: Path, folder: Path, **changes: object) -> Path:
    manifest = folder / "manifest.json"
    train_tokenizer(small.tokenizer_settings(**changes), corpus, manifest)
    return manifest


def test_six_trainings_with_other_threads_and_hash_seeds_give_the_same_bytes(
    small: SimpleNamespace, corpus: Path, tmp_path: Path, repository: Path
) -> None:
    settings = json.dumps(small.tokenizer_settings(vocabulary_size=900, min_frequency=0))
    running = []
    for index, threads in enumerate((1, 2, 3, 4, 1, 2)):
        surroundings = {
            **os.environ,
            "PYTHONPATH": str(repository / "scripts"),
            "PYTHONHASHSEED": str(1000 + index),
            "RAYON_NUM_THREADS": str(threads),
            "TOKENIZERS_PARALLELISM": "true",
        }
        command = [sys.executable, "-c", TRAIN_BOTH_KINDS, settings, str(corpus), str(tmp_path / str(index))]
        running.append(subprocess.Popen(command, env=surroundings, stderr=subprocess.PIPE, text=True))
        if index % 2:
            for process in running[-2:]:
                _, errors = process.communicate(timeout=60)
                assert process.returncode == 0, errors
    for kind in ("wordpiece", "byte_bpe"):
        for name in ("tokenizer.json", "manifest.json"):
            contents = [(tmp_path / str(index) / kind / name).read_bytes() for index in range(6)]
            assert len({hashlib.sha256(content).hexdigest() for content in contents}) == 1, (kind, name)
        size = read_manifest(tmp_path / "0" / kind / "manifest.json").measures["vocabulary_size"]
        assert size > 600, "too few merges to show anything"


@pytest.mark.parametrize("kind", ["wordpiece", "byte_bpe"])
def test_the_order_of_documents_and_the_size_of_shards_do_not_change_the_vocabulary(
    small: SimpleNamespace, tmp_path: Path, kind: str
) -> None:
    texts = small.documents(60, seed=5)
    forward = small.write_corpus(tmp_path / "forward", {"train": texts}, per_shard=7)
    backward = small.write_corpus(tmp_path / "backward", {"train": texts[::-1]}, per_shard=60)
    trained = [train_changed(small, path, path.parent / "t", kind=kind) for path in (forward, backward)]
    assert vocabulary(trained[0]) == vocabulary(trained[1])


def test_all_parts_but_vocabulary_and_post_processor_equal_the_published_tokenizer(
    shared_directory: Path, tokenizer_manifests: dict[str, Path]
) -> None:
    published = json.loads((shared_directory / "data/ltg_bert_babylm_10m_tokenizer.json").read_text("utf-8"))
    ours = json.loads((tokenizer_manifests["wordpiece"].parent / "tokenizer.json").read_text("utf-8"))
    for definition in (published, ours):
        del definition["model"]["vocab"], definition["post_processor"]
    assert ours == published


@pytest.mark.parametrize("kind", ["wordpiece", "byte_bpe"])
def test_special_tokens_come_first_and_in_order(tokenizer_manifests: dict[str, Path], kind: str) -> None:
    assert tuple(vocabulary(tokenizer_manifests[kind])[:7]) == SPECIAL_TOKENS


def test_a_vocabulary_that_the_corpus_cannot_fill_is_measured(small: SimpleNamespace, tmp_path: Path) -> None:
    corpus = small.write_corpus(tmp_path / "corpus", {"train": ["one two\ntwo three"]})
    manifest = train_changed(small, corpus, tmp_path / "t", vocabulary_size=5000)
    measures = read_manifest(manifest).measures
    assert measures["vocabulary_size"] == len(vocabulary(manifest)) < 300
    assert (measures["training_documents"], measures["training_lines"]) == (1, 2)


def test_special_tokens_in_the_text_are_not_learned_as_words(small: SimpleNamespace, tmp_path: Path) -> None:
    line = " ".join(f"word {token}" for token in SPECIAL_TOKENS)
    corpus = small.write_corpus(tmp_path / "corpus", {"train": [f"{line}\n[TAB] indented"] * 30})
    learned = vocabulary(train_changed(small, corpus, tmp_path / "t", vocabulary_size=2000, min_frequency=0))[7:]
    assert "Ġword" in learned
    assert "Ġindented" in learned
    assert not [token for token in learned for special in SPECIAL_TOKENS if special[1:3] in token]


def test_training_lines_are_stripped_and_cut_at_special_tokens() -> None:
    text = "  one \n\n[TAB] two\n three [UNK] [CLS] four\n[PAR]\n \t\n[TAB] "
    assert list(training_lines(text)) == ["one", "two", "three ", " four"]


def test_limited_training_takes_lines_from_the_whole_corpus(small: SimpleNamespace, tmp_path: Path) -> None:
    texts = ["early early early\n" * 10] * 20 + ["late late late\n" * 10] * 20
    corpus = small.write_corpus(tmp_path / "corpus", {"train": texts})
    manifest = train_changed(small, corpus, tmp_path / "t", sentences_limit=30)
    assert read_manifest(manifest).measures["training_lines"] == 30
    assert {"Ġearly", "Ġlate"} <= set(vocabulary(manifest))


def test_a_limit_above_the_size_of_the_corpus_takes_all_lines(small: SimpleNamespace, tmp_path: Path) -> None:
    corpus = small.write_corpus(tmp_path / "corpus", {"train": ["one\ntwo", "three"]})
    manifest = train_changed(small, corpus, tmp_path / "t", sentences_limit=1000)
    assert read_manifest(manifest).measures["training_lines"] == 3


def test_only_the_train_split_is_learned(small: SimpleNamespace, tmp_path: Path) -> None:
    corpus = small.write_corpus(tmp_path / "corpus", {"train": ["seen\n" * 9], "dev": ["hidden\n" * 9]})
    learned = vocabulary(train_changed(small, corpus, tmp_path / "t"))
    assert "Ġseen" in learned
    assert "Ġhidden" not in learned


def test_nfkc_makes_ligatures_plain(small: SimpleNamespace, tmp_path: Path) -> None:
    corpus = small.write_corpus(tmp_path / "corpus", {"train": ["fine\n" * 9]})
    tokenizer = load_tokenizer(
        train_changed(small, corpus, tmp_path / "t", normalizer="nfkc").parent / "tokenizer.json"
    )
    assert tokenizer.encode_sentences(["ﬁne"]) == tokenizer.encode_sentences(["fine"])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"continuing_subword_prefix": "@@"}, "continuing_subword_prefix: '@@' is not supported"),
        ({"vocabulary_size": 262}, "vocabulary_size: 262 is too small"),
        ({"special_tokens": ["[UNK]", "[PAD]"]}, "special_tokens: must be"),
        ({"kind": "unigram"}, "kind: got 'unigram'"),
        ({"min_frequency": -1}, "min_frequency: expected at least 0"),
        ({"sentences_limit": 0}, "sentences_limit: expected at least 1"),
        ({"vocab_size": 300}, "vocab_size: unknown key"),
    ],
)
def test_impossible_settings_are_refused_by_key(
    small: SimpleNamespace, corpus: Path, tmp_path: Path, changes: dict[str, object], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        train_changed(small, corpus, tmp_path, **changes)
    assert not (tmp_path / "manifest.json").exists()


def test_an_observed_alphabet_above_the_vocabulary_size_is_refused(
    small: SimpleNamespace, corpus: Path, tmp_path: Path
) -> None:
    with pytest.raises(TokenizationError, match="vocabulary_size: 20 is too small"):
        train_changed(small, corpus, tmp_path, vocabulary_size=20, byte_alphabet="observed")


def test_a_corpus_without_training_text_is_refused(small: SimpleNamespace, tmp_path: Path) -> None:
    no_split = small.write_corpus(tmp_path / "no_split", {"dev": ["text"]})
    with pytest.raises(CorpusError, match="has no split 'train'"):
        train_changed(small, no_split, tmp_path / "a")
    no_text = small.write_corpus(tmp_path / "no_text", {"train": [" \n \n", "[PAR]"]})
    with pytest.raises(CorpusError, match="no text to train"):
        train_changed(small, no_text, tmp_path / "b")


def test_the_command_tells_a_mistake_in_one_line(
    small: SimpleNamespace, corpus: Path, tmp_path: Path, repository: Path
) -> None:
    settings = json.dumps(small.tokenizer_settings(vocabulary_size=3))
    output = tmp_path / "manifest.json"
    command = [sys.executable, str(repository / "scripts/train_tokenizer.py"), "--settings", settings]
    done = subprocess.run([*command, "--corpus", str(corpus), "--output", str(output)], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("error: vocabulary_size: 3 is too small")
    assert done.stderr.count("\n") == 1
