"""Parallel text: two files or a table become documents of two lines, and whatever does not fit is one clear line."""

import gzip
import io
import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hatchery.corpora.documents import RawDocument, ReaderContext, Rejections
from hatchery.corpora.readers.parallel_text import EMPTY_SIDE, ParallelTextOptions, beside, files, read
from hatchery.errors import ConfigError, HatcheryError, SourceError
from hatchery.raw.registration import RawSource
from hatchery.typed import build

Sources = Callable[..., RawSource]
PAIRS = [("Ein Hund.", "A dog."), ('Er sagt "ja".', 'He says "yes".'), ("\u00dcber Nacht", "Overnight")]
TEXTS = [f"{german}\n{english}" for german, english in PAIRS]


def documents_of(source: RawSource, rejections: Rejections | None = None, **options: Any) -> list[RawDocument]:
    built = build(ParallelTextOptions, options)
    context = ReaderContext("mine", built, rejections or Rejections(), lambda paragraph: [paragraph])
    return [document for file in files(source, built) for document in read(source, file, context)]


def side(index: int) -> bytes:
    return "".join(f"{pair[index]}\n" for pair in PAIRS).encode()


def parquet() -> bytes:
    sink = io.BytesIO()
    rows = [{"de": german, "en": english} for german, english in PAIRS]
    pq.write_table(pa.table({"id": [1, 2, 3], "translation": rows}), sink)
    return sink.getvalue()


JSON = "".join(json.dumps({"translation": {"de": german, "en": english}}) + "\n" for german, english in PAIRS)
BARE = "".join(f"{number}\t{german}\t{english}\n" for number, (german, english) in enumerate(PAIRS))
CSV = 'de,en\nEin Hund.,A dog.\n"Er sagt ""ja"".","He says ""yes""."\n\u00dcber Nacht,Overnight\n'
TSV = CSV.replace(",", "\t")
CASES: dict[str, tuple[dict[str, bytes | str], dict[str, Any]]] = {
    "two files": ({"t__de": side(0), "t__en": side(1)}, {"files": {"any": ["t.de", "t.en"]}}),
    "two compressed files": (
        {"t__de__gz": gzip.compress(side(0)), "t__en__gz": gzip.compress(side(1))},
        {"files": {"any": ["t.de.gz", "t.en.gz"]}},
    ),
    "a table without a header": ({"t__tsv": BARE}, {"files": {"any": ["t.tsv"]}, "columns": ["2", "3"]}),
    "a table": ({"t__csv": CSV}, {"files": {"any": ["t.csv"]}, "columns": ["de", "en"]}),
    "a table with tabs": ({"t__tsv": TSV}, {"files": {"any": ["t.tsv"]}, "columns": ["de", "en"]}),
    "JSON lines": (
        {"t__jsonl": JSON},
        {"files": {"any": ["t.jsonl"]}, "columns": ["translation.de", "translation.en"]},
    ),
    "Parquet": (
        {"t__parquet": parquet()},
        {"files": {"any": ["t.parquet"]}, "columns": ["translation.de", "translation.en"]},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_every_form_gives_the_same_pairs(source_of: Sources, case: str) -> None:
    contents, options = CASES[case]
    assert [document.text for document in documents_of(source_of(**contents), **options)] == TEXTS


def test_files_say_their_splits_and_the_partner_of_each_is_known(source_of: Sources) -> None:
    source = source_of(train__de=side(0), train__en=side(1), dev__de=side(0), dev__en=side(1))
    named = {"train": ["train.de", "train.en"], "dev": ["dev.de", "dev.en"]}
    documents = documents_of(source, files=named)
    assert [document.split for document in documents] == ["train"] * 3 + ["dev"] * 3
    assert documents[4].doc_id == "mine/dev.de/0000001"
    assert beside(source, "dev.de", build(ParallelTextOptions, {"files": named})) == ["dev.en"]


def test_files_are_paired_by_what_the_wildcards_stand_for(source_of: Sources) -> None:
    # In the order of their names, the second files would be swapped.
    texts = {"de__a": "a\n", "de__b": "b\n", "en__b": "B\n", "en__a": "A\n", "x-de__c": "c\n"}
    documents = documents_of(source_of(**texts), files={"any": ["de.?", "en.[!x]"]})
    assert [document.text for document in documents] == ["a\nA", "b\nB"]


def test_white_space_of_any_kind_becomes_one_space_and_never_a_line(source_of: Sources) -> None:
    source = source_of(t__de=" Ein\tHund \u2028 bellt \r\n".encode(), t__en="A  dog\u00a0barks\r\n".encode())
    assert documents_of(source, files={"any": ["t.de", "t.en"]})[0].text == "Ein Hund bellt\nA dog barks"


def test_a_pair_with_an_empty_side_is_left_out_and_counted(source_of: Sources) -> None:
    rejections = Rejections()
    source = source_of(t__de="Ein Hund.\n\nEs regnet.\n", t__en="A dog.\nA cat.\n \n")
    documents = documents_of(source, rejections, files={"any": ["t.de", "t.en"]})
    assert [document.doc_id for document in documents] == ["mine/t.de/0000000"]
    assert rejections.counts == {EMPTY_SIDE: 2}


def test_a_missing_translation_is_told_with_both_files_and_the_line(source_of: Sources) -> None:
    source = source_of(t__de="Eins.\nZwei.\nDrei.\n", t__en="One.\nTwo.\n")
    with pytest.raises(SourceError, match=r"t\.en: ends after 2 lines, but .*t\.de goes on; expected a translation"):
        documents_of(source, files={"any": ["t.de", "t.en"]})


@pytest.mark.parametrize(
    ("contents", "options", "message"),
    [
        ({"t__tsv": BARE}, {"files": {"any": ["t.tsv"]}}, "needs `columns`"),
        ({"t__tsv": BARE}, {"files": {"any": ["t.tsv"]}, "columns": ["2", "4"]}, "line 1: 3 columns between tabs"),
        ({"t__csv": CSV}, {"files": {"any": ["t.csv"]}, "columns": ["de", "fr"]}, "no column 'fr'; there are: de, en"),
        (
            {"t__parquet": parquet()},
            {"files": {"any": ["t.parquet"]}, "columns": ["id", "translation.en"]},
            "row 1: 'id' holds a number, expected a text",
        ),
        (
            {"a__de": "x\n", "a__en": "x\n", "b__de": "x\n"},
            {"files": {"any": ["*.de", "*.en"]}},
            r"files\.any: b\.de has no partner among the files that \*\.en matches",
        ),
        (
            {"a__de": "x\n", "b__de": "x\n", "a__en": "x\n", "c__en": "x\n"},
            {"files": {"any": ["*.de", "*.en"]}},
            r"b\.de has no partner among the files that \*\.en matches",
        ),
        (
            {"train__de": "x\n", "test__de": "x\n", "train__en": "x\n", "test__en": "x\n"},
            {"files": {"test": ["test.de", "test.en"], "train": ["*.de", "*.en"]}},
            r"test\.de is matched by files\.test: test\.de and by files\.train: \*\.de; expected every file in",
        ),
        (
            {"t__de": "x\n"},
            {"files": {"any": ["t.de", "*.de"]}},
            r"t\.de is matched by files\.any: t\.de and by files\.any: \*\.de",
        ),
        (
            {"a__tsv": BARE},
            {"files": {"train": ["*.tsv"], "dev": ["a.tsv"]}, "columns": ["2", "3"]},
            r"a\.tsv is matched by files\.train: \*\.tsv and by files\.dev: a\.tsv",
        ),
        ({"t__de": "x\n"}, {"files": {"any": ["t.fr", "t.de"]}}, r"no file matches t\.fr"),
    ],
)
def test_what_does_not_fit_is_named(
    source_of: Sources, contents: dict[str, bytes | str], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(HatcheryError, match=message):
        documents_of(source_of(**contents), **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"files": {"any": ["a", "b", "c"]}}, "files.any: got 3 patterns"),
        ({"files": {"any": ["a"]}, "columns": ["1", "2", "3"]}, "columns: got 3"),
        ({"files": {"any": ["a"]}, "columns": ["0", "1"]}, "columns: got '0', expected numbers from 1"),
        (
            {"files": {"dev": ["a", "b"]}, "columns": ["1", "2"]},
            "columns: got columns, expected none beside the two text files of files.dev",
        ),
        ({"files": {}}, "files"),
    ],
)
def test_impossible_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        build(ParallelTextOptions, options)
