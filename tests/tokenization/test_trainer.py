import hashlib
import json
import os
import random
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from hatchery.artifacts.manifests import read_manifest
from hatchery.errors import ConfigError, CorpusError, TokenizationError
from hatchery.runner import run_stage
from hatchery.tokenization.documents import training_lines
from hatchery.tokenization.special_tokens import SPECIAL_SETS
from hatchery.tokenization.stages.train_tokenizer import train_tokenizer
from hatchery.tokenization.tokenizer_file import load_tokenizer

KINDS: dict[str, dict[str, object]] = {
    "byte_wordpiece": {},
    "byte_bpe": {"kind": "byte_bpe", "special_tokens": "roberta", "individual_digits": False},
    "bnc": {
        "special_tokens": "bnc",
        "normalizer": "ltg_bnc",
        "pre_tokenizer": "ltg_bnc",
        "continuing_subword_prefix": "@@",
    },
    "bert": {
        "special_tokens": "bnc",
        "normalizer": "bert_uncased",
        "pre_tokenizer": "bert",
        "continuing_subword_prefix": "##",
    },
    "bpe": {
        "kind": "bpe",
        "special_tokens": "roberta",
        "normalizer": "nmt_nfkc",
        "pre_tokenizer": "metaspace",
        "individual_digits": False,
    },
    "unigram": {
        "kind": "unigram",
        "special_tokens": "roberta",
        "normalizer": "nmt_nfkc",
        "pre_tokenizer": "metaspace",
    },
}
TRAIN_EVERY_KIND = """
import json, sys
from pathlib import Path
from hatchery.runner import run_stage
from hatchery.tokenization.stages.train_tokenizer import train_tokenizer
settings, kinds, corpus, folder = *map(json.loads, sys.argv[1:3]), sys.argv[3], Path(sys.argv[4])
for name, changes in kinds.items():
    run_stage(train_tokenizer, {**settings, **changes}, folder / name / "manifest.json", corpus=[Path(corpus)])
"""


def vocabulary(manifest: Path) -> list[str]:
    return load_tokenizer(manifest.parent / "tokenizer.json").tokens


def train_changed(small: SimpleNamespace, corpus: Path, folder: Path, **changes: object) -> Path:
    manifest = folder / "manifest.json"
    run_stage(train_tokenizer, small.tokenizer_settings(**changes), manifest, corpus=[corpus])
    return manifest


@pytest.mark.slow
def test_six_trainings_with_other_threads_hash_seeds_and_line_orders_give_the_same_bytes(
    small: SimpleNamespace, tmp_path: Path, repository: Path
) -> None:
    settings = json.dumps(small.tokenizer_settings(vocabulary_size=420, min_frequency=0))
    texts = small.documents(90, seed=1)
    running = []
    for index, threads in enumerate((1, 2, 3, 4, 1, 2)):
        lines = [line for text in texts for line in text.split("\n")]
        random.Random(index).shuffle(lines)
        corpus = small.write_corpus(
            tmp_path / f"corpus_{index}", {"train": ["\n".join(lines[::2]), "\n".join(lines[1::2])]}
        )
        surroundings = {
            **os.environ,
            "PYTHONPATH": str(repository / "scripts"),
            "PYTHONHASHSEED": str(1000 + index),
            "RAYON_NUM_THREADS": str(threads),
            "TOKENIZERS_PARALLELISM": "true" if index % 3 else "false",
        }
        command = [sys.executable, "-c", TRAIN_EVERY_KIND, settings, json.dumps(KINDS), str(corpus)]
        running.append(
            subprocess.Popen(
                [*command, str(tmp_path / str(index))], env=surroundings, stderr=subprocess.PIPE, text=True
            )
        )
        if index % 2:
            for process in running[-2:]:
                _, errors = process.communicate(timeout=120)
                assert process.returncode == 0, errors
    for name in KINDS:
        contents = [(tmp_path / str(index) / name / "tokenizer.json").read_bytes() for index in range(6)]
        assert len({hashlib.sha256(content).hexdigest() for content in contents}) == 1, name


@pytest.mark.parametrize("name", KINDS)
def test_the_order_of_documents_and_the_size_of_shards_do_not_change_the_vocabulary(
    small: SimpleNamespace, tmp_path: Path, name: str
) -> None:
    texts = small.documents(60, seed=5)
    forward = small.write_corpus(tmp_path / "forward", {"train": texts}, per_shard=7)
    backward = small.write_corpus(tmp_path / "backward", {"train": texts[::-1]}, per_shard=60)
    changes = {"vocabulary_size": 370, **KINDS[name]}
    trained = [train_changed(small, path, path.parent / "t", **changes) for path in (forward, backward)]
    assert vocabulary(trained[0]) == vocabulary(trained[1])


def test_all_parts_but_vocabulary_and_post_processor_equal_the_published_tokenizer(
    golden_directory: Path, small: SimpleNamespace, corpus: Path, tmp_path: Path
) -> None:
    published = json.loads((golden_directory / "tokenizers/ltg_bert_babylm_10m.json").read_text("utf-8"))
    trained = train_changed(small, corpus, tmp_path, reading="as_published")
    ours = json.loads((trained.parent / "tokenizer.json").read_text("utf-8"))
    for definition in (published, ours):
        del definition["model"]["vocab"], definition["post_processor"]
    assert ours == published


@pytest.mark.parametrize("name", KINDS)
def test_a_vocabulary_that_the_corpus_cannot_fill_is_refused_with_the_size_that_it_supports(
    small: SimpleNamespace, tmp_path: Path, name: str
) -> None:
    corpus = small.write_corpus(tmp_path / "corpus", {"train": ["one two\ntwo three"]})
    with pytest.raises(TokenizationError, match="got 5000, but the text supports only") as refusal:
        train_changed(small, corpus, tmp_path / "t", vocabulary_size=5000, **KINDS[name])
    assert "\n" not in str(refusal.value)
    assert list((tmp_path / "t").iterdir()) == []
    supported = int(str(refusal.value).split("set at most ")[1].split(",")[0])
    for changes in ({"vocabulary_size": supported}, {"vocabulary_size": 5000, "allow_smaller": True}):
        measures = read_manifest(train_changed(small, corpus, tmp_path / "t", **{**KINDS[name], **changes})).measures
        assert measures == {"vocabulary_size": supported, "training_documents": 1, "training_lines": 2}


def test_one_tokenizer_is_trained_on_several_corpora_together(small: SimpleNamespace, tmp_path: Path) -> None:
    english = small.write_corpus(tmp_path / "english", {"train": ["house house\n" * 9]})
    german = small.write_corpus(tmp_path / "german", {"train": ["garten garten\n" * 9]})
    manifest = tmp_path / "t" / "manifest.json"
    settings = small.tokenizer_settings(**KINDS["unigram"], vocabulary_size=22, allow_smaller=True)
    run_stage(train_tokenizer, settings, manifest, corpus=[english, german])
    assert {"▁house", "▁garten"} <= set(vocabulary(manifest))
    assert set(read_manifest(manifest).inputs) == {"corpus", "corpus_2"}


def test_only_documents_of_the_named_sources_are_learned_from(small: SimpleNamespace, tmp_path: Path) -> None:
    # Documents alternate between the sources `speech` and `books`.
    corpus = small.write_corpus(tmp_path / "corpus", {"train": ["said said\n" * 9, "written\n" * 9] * 3})
    learned = vocabulary(train_changed(small, corpus, tmp_path / "t", sources=["speech"], allow_smaller=True))
    assert "Ġsaid" in learned
    assert "Ġwritten" not in learned
    with pytest.raises(CorpusError, match="of the sources letters has no text"):
        train_changed(small, corpus, tmp_path / "u", sources=["letters"])


def test_special_tokens_in_the_text_are_not_learned_as_words(small: SimpleNamespace, tmp_path: Path) -> None:
    line = " ".join(f"word {token}" for token in SPECIAL_SETS["babylm"].order)
    corpus = small.write_corpus(tmp_path / "corpus", {"train": [f"{line}\n[TAB] indented"] * 30})
    learned = vocabulary(
        train_changed(small, corpus, tmp_path / "t", vocabulary_size=2000, min_frequency=0, allow_smaller=True)
    )[7:]
    assert "Ġword" in learned
    assert "Ġindented" in learned
    assert not [token for token in learned for special in SPECIAL_SETS["babylm"].order if special[1:3] in token]


def test_training_lines_are_stripped_and_cut_at_special_tokens() -> None:
    text = "  one \n\n[TAB] two\n three [UNK] [CLS] four\n[PAR]\n \t\n[TAB] "
    assert list(training_lines(text)) == ["one", "two", "three ", " four"]


def test_limited_training_takes_lines_from_the_whole_corpus(small: SimpleNamespace, tmp_path: Path) -> None:
    texts = ["early early early\n" * 10] * 20 + ["late late late\n" * 10] * 20
    corpus = small.write_corpus(tmp_path / "corpus", {"train": texts})
    manifest = train_changed(small, corpus, tmp_path / "t", sentences_limit=30, allow_smaller=True)
    assert read_manifest(manifest).measures["training_lines"] == 30
    assert {"Ġearly", "Ġlate"} <= set(vocabulary(manifest))


def test_a_limit_above_the_size_of_the_corpus_takes_all_lines(small: SimpleNamespace, tmp_path: Path) -> None:
    corpus = small.write_corpus(tmp_path / "corpus", {"train": ["one\ntwo", "three"]})
    manifest = train_changed(small, corpus, tmp_path / "t", sentences_limit=1000, allow_smaller=True)
    assert read_manifest(manifest).measures["training_lines"] == 3


def test_only_the_named_splits_are_learned(small: SimpleNamespace, tmp_path: Path) -> None:
    corpus = small.write_corpus(tmp_path / "corpus", {"train": ["seen\n" * 9], "dev": ["hidden\n" * 9]})
    learned = vocabulary(train_changed(small, corpus, tmp_path / "t", allow_smaller=True))
    assert "Ġseen" in learned
    assert "Ġhidden" not in learned
    both = train_changed(small, corpus, tmp_path / "u", splits=["train", "dev"], allow_smaller=True)
    assert {"Ġseen", "Ġhidden"} <= set(vocabulary(both))


def test_nfkc_makes_ligatures_plain(small: SimpleNamespace, tmp_path: Path) -> None:
    corpus = small.write_corpus(tmp_path / "corpus", {"train": ["fine\n" * 9]})
    tokenizer = load_tokenizer(
        train_changed(small, corpus, tmp_path / "t", normalizer="nfkc", allow_smaller=True).parent / "tokenizer.json"
    )
    assert tokenizer.encode_sentences(["ﬁne"]) == tokenizer.encode_sentences(["fine"])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"continuing_subword_prefix": "@@"}, "continuing_subword_prefix: got '@@', expected an empty text"),
        ({"pre_tokenizer": "ltg_bnc"}, "continuing_subword_prefix: got '', expected a prefix"),
        ({"kind": "byte_bpe", "pre_tokenizer": "metaspace"}, "pre_tokenizer: got 'metaspace', expected byte_level"),
        ({"kind": "bpe"}, "pre_tokenizer: got 'byte_level', expected metaspace, because the kind bpe"),
        (
            {"kind": "byte_bpe", "continuing_subword_prefix": "@@"},
            "continuing_subword_prefix: got '@@', expected an empty text, because the kind byte_bpe has no",
        ),
        ({"vocabulary_size": 262}, "vocabulary_size: got 262, expected at least 263"),
        ({"special_tokens": ["[UNK]", "[PAD]"]}, "special_tokens: got "),
    ],
)
def test_impossible_settings_are_refused_by_key(
    small: SimpleNamespace, corpus: Path, tmp_path: Path, changes: dict[str, object], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        train_changed(small, corpus, tmp_path, **changes)
    assert not (tmp_path / "manifest.json").exists()


def test_a_corpus_without_training_text_is_refused(small: SimpleNamespace, tmp_path: Path) -> None:
    no_split = small.write_corpus(tmp_path / "no_split", {"dev": ["text"]})
    with pytest.raises(CorpusError, match="has no split 'train'"):
        train_changed(small, no_split, tmp_path / "a")
    no_text = small.write_corpus(tmp_path / "no_text", {"train": [" \n \n", "[PAR]"]})
    with pytest.raises(CorpusError, match="no text to train"):
        train_changed(small, no_text, tmp_path / "b")
