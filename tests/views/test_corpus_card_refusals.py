"""Corpora of which no card is made: wrong tables, damaged shards, and missing or foreign inputs."""

import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from card_cases import described, tokens_of, two_sources_corpus, write_corpus

from hatchery.errors import CorpusError, HatcheryError, ManifestError
from hatchery.views.cards.measure_corpus import read_documents


@pytest.fixture
def two_sources(tmp_path: Path) -> Path:
    """A corpus with sources alpha and beta, two documents each, and one rejected text."""
    return two_sources_corpus(tmp_path)


def refused(corpus: Path, folder: Path, **inputs: Path) -> str:
    with pytest.raises(HatcheryError) as caught:
        described(corpus, folder, **inputs)
    assert "\n" not in str(caught.value)
    # No partial file remains.
    assert not folder.exists() or list(folder.iterdir()) == []
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("statistics.csv", "source,split\n", r"statistics\.csv: the table lacks the columns documents"),
        ("statistics.csv", "source,split,documents,sentences,words,characters\n", "no rows"),
        ("statistics.csv", "source,split,documents,sentences,words,characters\na,half,1,1,1,1\n", "line 2: split"),
        (
            "statistics.csv",
            "source,split,documents,sentences,words,characters\na,train,1,1,3,5\n",
            "3 words, but the shards contain 2",
        ),
        ("statistics.csv", "source,split,documents,sentences,words,characters\nz,train,1,1,1,5\n", "source 'a'"),
        ("rejected.csv", "source,reason,count\na,short,-1\n", r"rejected\.csv, line 2: count: got '-1', expected at"),
        ("samples.csv", "source,outcome,reason,text\na,perhaps,x,y\n", r"samples\.csv, line 2: outcome"),
        ("samples.csv", 'source,outcome,reason,text\na,rejected,"x\n', r"samples\.csv: not a CSV file"),
        ("samples.csv", "source,outcome,reason,text\na,rejected\n", r"samples\.csv, line 2: got 2 cells"),
    ],
)
def test_a_wrong_table_is_named(tmp_path: Path, name: str, text: str, complaint: str) -> None:
    corpus = write_corpus(tmp_path / "corpus", [("x", "a", "train", "Yes .")], tables={name: text})
    assert re.search(complaint, refused(corpus, tmp_path / "card"))


def test_a_damaged_shard_is_named(two_sources: Path, tmp_path: Path) -> None:
    shard = two_sources.parent / "train-00000-of-00002.parquet"
    shard.write_bytes(shard.read_bytes()[:-9])
    assert str(shard) in refused(two_sources, tmp_path / "card")
    with pytest.raises(CorpusError, match="cannot be read"):
        list(read_documents(shard, "train"))


def test_a_shard_with_other_columns_or_another_split_is_named(two_sources: Path, tmp_path: Path) -> None:
    shard = two_sources.parent / "train-00000-of-00002.parquet"
    with pytest.raises(CorpusError, match=r"document 'a/1' has the split 'train'"):
        list(read_documents(shard, "dev"))
    pq.write_table(pq.read_table(shard).drop(["n_words"]), tmp_path / "less.parquet")
    with pytest.raises(CorpusError, match=r"less\.parquet: lacks the column 'n_words'"):
        list(read_documents(tmp_path / "less.parquet", "train"))


def test_missing_and_foreign_inputs_are_named(two_sources: Path, tmp_path: Path) -> None:
    (two_sources.parent / "rejected.csv").unlink()
    assert "rejected.csv" in refused(two_sources, tmp_path / "card")
    other = write_corpus(tmp_path / "other", [("x", "a", "train", "Yes .")])
    tokens = tokens_of(two_sources, tmp_path / "tokens")
    assert "encoded from another corpus than" in refused(other, tmp_path / "card", tokens=tokens)
    with pytest.raises(ManifestError, match=r"nowhere\.json"):
        described(tmp_path / "nowhere.json", tmp_path / "card")
