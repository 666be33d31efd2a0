"""Encoding of documents into tokens, word starts, and counts of the encoded corpus."""

import csv
import itertools
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from stage_command import stage_command

from hatchery.artifacts.manifests import read_manifest, stage_run
from hatchery.artifacts.parquet import read_table, write_table
from hatchery.errors import CorpusError, HatcheryError
from hatchery.runner import run_stage
from hatchery.tokenization.documents import ANY_SPECIAL_TOKEN, split_sentences
from hatchery.tokenization.encoder import DocumentEncoder
from hatchery.tokenization.special_tokens import SPECIAL_SETS, TEXT_MARKERS
from hatchery.tokenization.stages.encode_corpus import encode_corpus
from hatchery.tokenization.token_counts import frequency_at_95_percent
from hatchery.tokenization.token_shards import TokenShards
from hatchery.tokenization.tokenizer_file import Tokenizer, WordMark, load_tokenizer, open_backend
from hatchery.tokenization.word_starts import ASCII_SPACE, OTHER_SPACE, WordStarts, _spread, text_word_starts


def encode(corpus: Path, tokenizer: Path, folder: Path) -> Path:
    manifest = folder / "manifest.json"
    run_stage(encode_corpus, {}, manifest, corpus=corpus, tokenizer=tokenizer)
    return manifest


@pytest.fixture
def one_document(small: SimpleNamespace, tokenizer_manifests: dict[str, Path], tmp_path: Path):
    """Return a function that encodes one document and returns the text of its tokens, and the document."""

    def run(text: str):
        corpus = small.write_corpus(tmp_path / "corpus", {"train": [text]})
        shards = TokenShards.open(encode(corpus, tokenizer_manifests["wordpiece"], tmp_path / "out"), "train")
        tokens = load_tokenizer(tokenizer_manifests["wordpiece"].parent / "tokenizer.json").tokens
        document = shards.document(0)
        return [tokens[index] for index in document.ids], document

    return run


def test_shards_are_one_uncompressed_batch_with_the_columns_of_the_contract(tokens: Path, corpus: Path) -> None:
    assert [path.stem for path in read_manifest(tokens).files(".arrow")] == [
        path.stem for path in read_manifest(corpus).files(".parquet")
    ]
    for path in read_manifest(tokens).files(".arrow"):
        with pa.memory_map(str(path)) as source:
            reader = pa.ipc.open_file(source)
            assert reader.num_record_batches == 1
            before = pa.total_allocated_bytes()
            batch = reader.get_batch(0)
            assert pa.total_allocated_bytes() == before, "a compressed batch would have been unpacked into memory"
        types = {field.name: str(field.type) for field in batch.schema}
        assert types == {
            "doc_id": "string",
            "ids": "list<item: uint16 not null>",
            "sentence_starts": "list<item: int32 not null>",
            "word_starts": "list<item: bool not null>",
        }


def test_every_document_is_its_sentences_in_order_with_par_behind_each_paragraph(
    corpus: Path, tokens: Path, tokenizer_manifests: dict[str, Path]
) -> None:
    tokenizer = load_tokenizer(tokenizer_manifests["wordpiece"].parent / "tokenizer.json", TEXT_MARKERS)
    for split in ("train", "dev"):
        shards = TokenShards.open(tokens, split)
        tables = [read_table(path) for path in read_manifest(corpus).files(".parquet", split)]
        texts = [text for table in tables for text in table["text"].to_pylist()]
        assert shards.n_documents == len(texts)
        for index, text in enumerate(texts):
            document = shards.document(index)
            expected: list[int] = []
            starts = []
            for paragraph in text.split("\n\n"):
                for ids in tokenizer.encode_sentences(paragraph.split("\n")):
                    starts.append(len(expected))
                    expected += ids
                expected.append(tokenizer.par_id)
            assert document.ids.tolist() == expected
            assert document.sentence_starts.tolist() == starts
            assert document.word_starts[starts].all()
            assert shards.doc_id(index) == f"{split}/{index}"


def test_a_document_is_one_text_with_its_newlines_where_the_tokenizer_of_gpt_bert_says_so(
    golden_directory: Path,
) -> None:
    definition = json.loads((golden_directory / "gpt_bert/tokenizer/tokenizer.json").read_text(encoding="utf-8"))
    tokenizer = Tokenizer(open_backend(definition, "golden"), SPECIAL_SETS["gpt_bert"], WordMark("byte_level"))
    text = "The otters near the river are quiet.\nThey swim.\n\nA cat sleeps."
    whole = "The otters near the river are quiet. They swim.\nA cat sleeps."
    table = DocumentEncoder(tokenizer, "documents").encode(["a", "b", "c"], ["One.", "", text])
    own = table.ids[table.document_starts[2] :]
    assert own.tolist() == tokenizer.backend.encode(whole, add_special_tokens=False).ids
    assert tokenizer.decode(own.tolist()) == whole
    starts = table.sentence_starts[table.sentence_bounds[2] :]
    cut = [tokenizer.decode(part.tolist()).strip() for part in np.split(own, starts[1:])]
    assert cut == ["The otters near the river are quiet.", "They swim.", "A cat sleeps."]
    assert np.diff(table.sentence_bounds).tolist() == [1, 0, 3]
    words = table.word_starts[table.document_starts[2] :]
    assert words.sum() == len(whole.split())
    apart = DocumentEncoder(tokenizer).encode(["c"], [text])
    assert len(apart.ids) < len(own) and apart.word_starts.sum() == words.sum()


def test_structural_tokens_in_raw_text_stay_letters_and_text_markers_are_recognised(one_document) -> None:
    tokens, _ = one_document("[TAB] a [MASK] [CLS]\nb [PAR] [PAD] [UNK]\n\nc [SEP]")
    specials = [token for token in tokens if len(token) > 3 and token.startswith("[")]
    assert specials == ["[TAB]", "[UNK]", "[PAR]", "[PAR]"]
    assert tokens[-1] == "[PAR]"
    assert "".join(tokens).count("[MASK]") == 1


def test_blank_lines_and_stray_white_space_do_not_make_sentences(one_document) -> None:
    tokens, document = one_document("\n\n  ba \n\t\n\n \nti  \nko\n\n")
    assert "".join(tokens) == "Ġba[PAR]ĠtiĠko[PAR]"
    assert len(document.sentence_starts) == 3


lines = st.lists(st.sampled_from(["a", " b ", "", " ", "\t"]), max_size=12)


@given(lines)
def test_sentences_are_the_non_blank_lines_and_paragraphs_end_at_blank_ones(lines: list[str]) -> None:
    sentences, ends = split_sentences("\n".join(lines))
    assert sentences == [line.strip() for line in lines if line.strip()]
    joined = "\n".join(line.strip() for line in lines).strip("\n")
    paragraphs = [part for part in joined.split("\n\n") if part.strip()]
    assert sum(ends) == len(paragraphs)
    assert not ends or ends[-1]


def test_threads_batch_size_and_call_size_do_not_change_a_byte(
    corpus: Path, tokenizer_manifests: dict[str, Path], tmp_path: Path, repository: Path
) -> None:
    scripts = repository / "scripts"
    outputs = []
    for threads, documents_per_batch, sentences_per_call in ((1, 1, 8192), (2, 7, 8192), (4, 1000, 5)):
        output = tmp_path / str(len(outputs)) / "manifest.json"
        script = (
            f"import functools, runpy, sys; sys.path.insert(0, {str(scripts)!r});"
            f"import hatchery.tokenization.encoder as e; e.SENTENCES_PER_CALL = {sentences_per_call};"
            f"e.read_batches = functools.partial(e.read_batches, documents_per_batch={documents_per_batch});"
            f"runpy.run_path({str(scripts / 'run.py')!r}, run_name='__main__')"
        )
        given = {"corpus": corpus, "tokenizer": tokenizer_manifests["wordpiece"], "threads": threads}
        command = [sys.executable, "-c", script, *stage_command("encode_corpus", {}, output, **given)[2:]]
        surroundings = {**os.environ, "PYTHONHASHSEED": str(threads)}
        subprocess.run(command, check=True, env=surroundings, capture_output=True, timeout=60)
        provenance = json.loads((output.parent / "provenance.json").read_text("utf-8"))
        assert provenance["threads"] == threads
        manifest = json.loads(output.read_text("utf-8"))
        outputs.append({key: manifest[key] for key in ("outputs", "measures", "inputs")})
    assert outputs[0] == outputs[1] == outputs[2]


def test_statistics_equal_a_count_by_hand(corpus: Path, tokens: Path, tokenizer_manifests: dict[str, Path]) -> None:
    tokenizer = load_tokenizer(tokenizer_manifests["wordpiece"].parent / "tokenizer.json", TEXT_MARKERS)
    expected: dict[tuple[str, str], Counter] = {}
    for path in read_manifest(corpus).files(".parquet"):
        for row in read_table(path).to_pylist():
            counted = expected.setdefault((row["split"], row["source"]), Counter())
            sentences = [line for line in row["text"].split("\n") if line]
            rows = tokenizer.encode_sentences(sentences)
            flat = [index for ids in rows for index in ids]
            counted["documents"] += 1
            counted["sentences"] += len(sentences)
            counted["tokens"] += len(flat) + len(row["text"].split("\n\n"))
            counted["subwords"] += sum(index != tokenizer.tab_id for index in flat)
            counted["unknown"] += flat.count(tokenizer.unknown_id)
    with (tokens.parent / "statistics.csv").open(encoding="utf-8", newline="") as handle:
        rows = list(csv.DictReader(handle))
    assert [(row["split"], row["source"]) for row in rows] == sorted(expected)
    for row in rows:
        counted = expected[row["split"], row["source"]]
        assert {key: int(row[key]) for key in counted} == dict(counted)
        assert float(row["fertility"]) == pytest.approx(int(row["subwords"]) / int(row["words"]), abs=1e-6)
        assert 0 < float(row["unknown_rate"]) == pytest.approx(counted["unknown"] / counted["subwords"], abs=1e-6)
    splits = read_manifest(tokens).measures["splits"]
    for split in ("train", "dev"):
        for key in ("documents", "sentences", "tokens", "words", "subwords", "unknown"):
            assert splits[split][key] == sum(int(row[key]) for row in rows if row["split"] == split)


def test_unigram_counts_are_those_of_the_train_split_alone(tokens: Path) -> None:
    unigram = json.loads((tokens.parent / "unigram.json").read_text("utf-8"))
    shards = TokenShards.open(tokens, "train")
    expected = np.zeros(shards.vocabulary_size, dtype=int)
    for document in shards:
        np.add.at(expected, document.ids, 1)
    assert unigram["counts"] == expected.tolist()
    assert sum(unigram["counts"]) == shards.n_tokens


def test_frequency_at_95_percent_is_that_of_the_type_at_the_rank() -> None:
    assert frequency_at_95_percent(np.array([0, 3, *range(100, 119)])) == 3
    assert frequency_at_95_percent(np.array([0, 3, *range(100, 139)])) == 100
    assert frequency_at_95_percent(np.zeros(5, dtype=int)) == 0


def test_documents_without_text_are_left_out_and_counted(small, tokenizer_manifests, tmp_path: Path) -> None:
    corpus = small.write_corpus(tmp_path / "corpus", {"train": ["ba", " \n\n", "ti", ""], "dev": [""]})
    manifest = encode(corpus, tokenizer_manifests["wordpiece"], tmp_path / "out")
    shards = TokenShards.open(manifest, "train")
    assert [shards.doc_id(index) for index in range(shards.n_documents)] == ["train/0", "train/2"]
    assert read_manifest(manifest).measures["empty_documents"] == 3
    assert TokenShards.open(manifest, "dev").n_documents == 0


def test_a_corpus_without_any_text_is_refused(small, tokenizer_manifests, tmp_path: Path) -> None:
    corpus = small.write_corpus(tmp_path / "corpus", {"train": ["", " \n"], "dev": [""]})
    with pytest.raises(CorpusError, match=r"corpus/manifest\.json: all 3 documents of the corpus are empty"):
        encode(corpus, tokenizer_manifests["wordpiece"], tmp_path / "out")
    assert not (tmp_path / "out" / "manifest.json").exists()


def test_shards_of_an_earlier_run_are_removed(small, tokenizer_manifests, tmp_path: Path) -> None:
    texts = small.documents(9, seed=3)
    for per_shard in (2, 9):
        corpus = small.write_corpus(tmp_path / str(per_shard), {"train": texts}, per_shard)
        encode(corpus, tokenizer_manifests["wordpiece"], tmp_path / "out")
    assert [path.name for path in sorted((tmp_path / "out").glob("*.arrow"))] == ["train-00000-of-00001.arrow"]


def test_a_shard_that_is_not_documents_is_named(tokenizer_manifests, tmp_path: Path) -> None:
    path = tmp_path / "train-00000-of-00001.parquet"
    tables: list[tuple[pa.Table | None, str]] = [
        (pa.table({"doc_id": ["a"], "text": ["b"]}), "lacks the column 'source'"),
        (
            pa.table({"doc_id": ["a"], "source": ["s"], "text": pa.array([None], pa.string())}),
            "missing or not a string",
        ),
        (None, "not a readable document shard"),
    ]
    for table, message in tables:
        with stage_run(tmp_path / "manifest.json", {}) as run:
            path.write_bytes(b"PAR1 but no Parquet") if table is None else write_table(path, table)
            run.add_output(path)
        with pytest.raises(CorpusError, match=f"{path.name}: .*{message}"):
            encode(tmp_path / "manifest.json", tokenizer_manifests["wordpiece"], tmp_path / "out")


def test_an_incomplete_corpus_is_refused(small, tokenizer_manifests, tmp_path: Path) -> None:
    corpus = small.write_corpus(tmp_path, {"train": small.documents(5, seed=1)}, per_shard=2)
    manifest = json.loads(corpus.read_text("utf-8"))
    manifest["outputs"] = [output for output in manifest["outputs"] if "00001-of" not in output["path"]]
    corpus.write_text(json.dumps(manifest), encoding="utf-8")
    corpus.with_name("provenance.json").unlink()
    with pytest.raises(HatcheryError, match="the shards of split 'train' are not complete"):
        encode(corpus, tokenizer_manifests["wordpiece"], tmp_path / "out")


ANY_CHARACTER = st.characters(exclude_categories=["Cs"])
TRICKY_CHARACTER = st.sampled_from("ab'1٣ \t\n\u00a0\u3000\u2003\u2028\x1d.é中¿ж\u0301")
sentences = (
    st.text(TRICKY_CHARACTER | ANY_CHARACTER, max_size=20)
    .map(str.strip)
    .filter(lambda text: text and not ANY_SPECIAL_TOKEN.search(text))
)


def words_of(sentence: str) -> list[str]:
    return sentence.split()


def ids_and_starts(tokenizer: Tokenizer, texts: list[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return ids, offsets of the sentences, and word starts of consecutive sentences."""
    rows = tokenizer.encode_sentences(texts)
    ids = np.array([index for row in rows for index in row])
    offsets = np.cumsum([0] + [len(row) for row in rows])[:-1]
    return ids, offsets, WordStarts(tokenizer)(ids, offsets, texts)


def groups(tokenizer: Tokenizer, text: str) -> list[str]:
    """Return the text of each run of tokens from one word start to the next."""
    ids, _, starts = ids_and_starts(tokenizer, [text])
    return [tokenizer.decode(part.tolist()) for part in np.split(ids, np.flatnonzero(starts)[1:])]


@pytest.mark.parametrize("kind", ["wordpiece", "byte_bpe"])
@given(texts=st.lists(sentences, min_size=1, max_size=3))
def test_tokens_between_word_starts_are_the_words_of_the_text(
    tokenizers: dict[str, Tokenizer], kind: str, texts: list[str]
) -> None:
    ids, _, starts = ids_and_starts(tokenizers[kind], texts)
    found = [tokenizers[kind].decode(part.tolist()) for part in np.split(ids, np.flatnonzero(starts)[1:])]
    assert [text.strip() for text in found] == [word for text in texts for word in words_of(text)]


def test_white_space_of_words_is_that_of_python() -> None:
    spaces = {character for character in map(chr, range(0x110000)) if f"a{character}b".split() == ["a", "b"]}
    found = {character for character in map(chr, range(0x110000)) if OTHER_SPACE.match(character)}
    assert found.isdisjoint(ASCII_SPACE) and found | set(ASCII_SPACE) == spaces


@given(texts=st.lists(sentences, min_size=1, max_size=3))
def test_words_are_counted_right_when_characters_are_unknown(
    tokenizers: dict[str, Tokenizer], texts: list[str]
) -> None:
    _, offsets, starts = ids_and_starts(tokenizers["observed"], texts)
    # One unknown token, for example for ":\x1f:", may represent several words.
    tokens = np.diff([*offsets, len(starts)])
    assert starts.sum() == sum(min(len(words_of(text)), count) for text, count in zip(texts, tokens, strict=True))


@pytest.mark.parametrize("kind", ["wordpiece", "byte_bpe"])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("in 2001 don't", [" in", " 2001", " don't"]),
        ("a  b\tc", [" a ", " b", "\tc"]),
        ("say [UNK] again", [" say ", "[UNK]", " again"]),
        ("[TAB] start here", ["[TAB]", " start", " here"]),
        ("glued[PAR]", [" glued", "[PAR]"]),
        ("'[UNK]'", [" '", "[UNK]", " '"]),
    ],
)
def test_white_space_and_special_tokens_separate_words(
    tokenizers: dict[str, Tokenizer], kind: str, text: str, expected: list[str]
) -> None:
    assert groups(tokenizers[kind], text) == expected


def test_an_unknown_word_behind_a_special_token_starts_a_word(tokenizers: dict[str, Tokenizer]) -> None:
    tokenizer = tokenizers["observed"]
    ids, _, starts = ids_and_starts(tokenizer, ["[TAB]ж [UNK]ж'ж"])
    assert [tokenizer.tokens[index] for index in ids] == ["[TAB]", "[UNK]", "Ġ", "[UNK]", "[UNK]", "'", "[UNK]"]
    assert starts.tolist() == [True, True, False, True, True, False, False]


@pytest.mark.parametrize(
    ("sentence", "bounds", "words"),
    [
        ("[M]a\u00a0bc", (0, 3, 6, 7), 3),  # the special token, a, bc
        ("[M]ab", (0, 3, 4, 5), 2),
        ("[M] a\u00a0bc", (0, 3, 7, 8), 3),
        ("[M]a\u00a0b\u00a0cde", (0, 3, 8, 9, 10), 4),
    ],
)
def test_words_behind_a_special_token_are_counted_within_tokens_too(
    sentence: str, bounds: tuple[int, ...], words: int
) -> None:
    spans = list(itertools.pairwise(bounds))
    special = SimpleNamespace(unknown="[U]")
    tokenizer: Any = SimpleNamespace(n_special=2, unknown_id=1, special=special, token_spans=lambda texts: [spans])
    ids = np.array([0, *range(2, len(spans) + 1)])
    assert text_word_starts(tokenizer, [sentence], np.array([0]), ids).sum() == words


def test_several_starts_in_a_token_move_to_the_nearest_free_tokens() -> None:
    counts = np.array([1, 0, 3, 0, 0, 0])
    _spread(counts, np.zeros(6, dtype=bool))
    assert counts.tolist() == [1, 1, 1, 1, 0, 0]
