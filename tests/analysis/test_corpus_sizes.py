"""Corpus sizes by source and split, and compared with published sizes."""

from pathlib import Path

import pytest

from hatchery.analysis.corpus_statistics import (
    ALL,
    Selection,
    compare_sizes,
    selection_sizes,
    size_table,
    sources_of,
    splits_of,
)
from hatchery.errors import EvaluationError

HEADER = "paper,table,corpus,source,split,measure,value,unit,note\n"
COUNTS = {
    ("a", "train"): {"documents": 2, "words": 1_100_000},
    ("a", "dev"): {"documents": 0, "words": 0},
    ("b", "train"): {"documents": 1, "words": 400_000},
    ("b", "dev"): {"documents": 3, "words": 50_000},
}


def published(folder: Path, *lines: str) -> Path:
    path = folder / "corpus_sizes.csv"
    path.write_text(HEADER + "".join(line + "\n" for line in lines), encoding="utf-8")
    return path


def test_sums_are_exact_and_rows_without_documents_are_left_out() -> None:
    table = size_table(COUNTS, {("a", "train"): 7, ("b", "dev"): 5})
    assert table[ALL, ALL] == {"documents": 6, "words": 1_550_000, "subwords": 12}
    assert table["b", ALL] == {"documents": 4, "words": 450_000, "subwords": 5}
    assert table[ALL, "train"] == {"documents": 3, "words": 1_500_000, "subwords": 7}
    assert ("a", "dev") not in table
    assert (sources_of(table), splits_of(table)) == (["a", "b"], ["train", "dev"])


def test_an_empty_corpus_keeps_the_row_of_all() -> None:
    assert size_table({("a", "train"): {"documents": 0, "words": 0}}) == {(ALL, ALL): {"documents": 0, "words": 0}}


def test_published_sizes_are_joined_by_corpus_source_split_and_measure(tmp_path: Path) -> None:
    path = published(
        tmp_path,
        "P,Table 1,mine,a,train,words,1.0,million,",
        "P,Table 1,mine,b,development,words,50000,count,as printed",
        "P,Table 1,mine,total,total,words,1.55,million,",
        "P,Table 1,mine,,train,documents,4,count,",
        "P,Table 1,mine,c,train,words,2,million,",
        "P,Table 1,mine,a,train,subwords,3,million,",
        "P,Table 1,mine,a,train,documents,,count,not printed",
        "P,Table 1,other,a,train,words,9,million,",
        "P,Table 2,mine,b,validation,words,50,thousand,",
        "P,Table 2,mine,b,valid,words,0.00005,billion,",
        "P,Table 2,mine,Total,,words,2,million,",
    )
    rows = compare_sizes(path, "mine", size_table(COUNTS), {})
    assert [(r.source, r.split, r.measure, r.ours, r.published, r.difference_percent) for r in rows] == [
        ("a", "train", "words", 1_100_000, 1_000_000, 10.0),
        ("b", "dev", "words", 50_000, 50_000, 0.0),
        (ALL, ALL, "words", 1_550_000, 1_550_000, 0.0),
        (ALL, "train", "documents", 3, 4, -25.0),
        ("c", "train", "words", None, 2_000_000, None),
        ("a", "train", "subwords", None, 3_000_000, None),
        ("a", "train", "documents", 2, None, None),
        *[("b", "dev", "words", 50_000, 50_000, 0.0)] * 2,
        (ALL, ALL, "words", 1_550_000, 2_000_000, -22.5),
    ]
    assert (rows[1].table, rows[1].note) == ("P Table 1", "as printed")
    assert compare_sizes(path, "nobody", size_table(COUNTS), {}) == []


def test_selections_are_compared_by_level_with_the_sequences_and_tokens_made_of_them(tmp_path: Path) -> None:
    selections = [
        Selection("spans", "c4", "span", 30, 3300, 3000),
        Selection("c4_sentences", "c4", "sentence", 270, 4000, 3600),
        Selection("books", "cbt", "sentence", 8, 100, 90),
        Selection("books", "bookcorpus", "sentence", 2, 10, 9),
    ]
    counts = {
        ("spans", "train"): {"documents": 10, "words": 1},
        ("spans", "dev"): {"documents": 1, "words": 1},
        ("c4_sentences", "train"): {"documents": 20, "words": 1},
        ("books", "train"): {"documents": 4, "words": 1},
    }
    table = size_table(counts, {("spans", "train"): 1000, ("spans", "dev"): 100, ("c4_sentences", "train"): 2000})
    path = published(
        tmp_path,
        "R,Table 1,rv,c4,span,spans,30,count,",
        "R,Table 1,rv,c4,sentence,sentences,27,count,",
        "R,Table 1,rv,c4,span,tokens,1,count,",
        "R,Table 1,rv,c4,total,tokens,1,count,",
        "R,Table 1,rv,cbt,sentence,tokens,1,million,",
        "R,Table 1,rv,total,total,sentences_or_spans,308,count,",
        "R,Table 1,rv,total,span,documents,6,count,",
        "R,Table 1,rv,total,total,documents,6,count,",
        "R,Table 1,rv,total,dev,documents,6,count,",
    )
    rows = compare_sizes(path, "rv", table, selection_sizes(selections, table))
    # The tokens of a selection of two sources belong to neither source. The corpus knows the number of all documents.
    assert [row.ours for row in rows] == [30, 270, 1100, 3100, None, 310, 11, 35, 1]


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("P,T,mine,a,train,words,1,million thousand,", "line 2: unit: got 'million thousand'"),
        ("P,T,mine,a,train,words,1,lakh,", "line 2: unit: got 'lakh'"),
    ],
)
def test_a_wrong_published_size_is_named_with_its_line(tmp_path: Path, line: str, complaint: str) -> None:
    with pytest.raises(EvaluationError, match=complaint):
        compare_sizes(published(tmp_path, line), "mine", size_table(COUNTS), {})


def test_the_published_sizes_of_this_checkout_can_be_read(repository: Path) -> None:
    path = repository / "config" / "published" / "corpora" / "sizes.csv"
    assert len(compare_sizes(path, "babylm_100M", size_table(COUNTS), {})) == 11
    assert compare_sizes(path, "bnc", size_table(COUNTS), {})
    assert compare_sizes(path, "reduced_vocabulary", size_table(COUNTS), {})
