"""Invented rows with the columns of BabyBabelLM's release: licences, and columns for selection.

The columns are those that the organisers describe; the release itself was never read here (inferred).
"""

import csv
import hashlib
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hatchery.artifacts.manifests import Manifest, read_manifest
from hatchery.corpora.stages.convert_corpus import convert_corpus
from hatchery.corpora.stages.sample_corpus import sample_corpus
from hatchery.errors import HatcheryError
from hatchery.raw.registration import register_source
from hatchery.runner import run_stage

COLUMNS = (
    *("text", "doc-id", "category", "data-source", "script", "age-estimate", "license", "misc", "num-tokens"),
    "language",
)
# Text, category, script, age, licence.
ROWS = [
    ("De kat zit op de mat.\nDe hond slaapt.", "child-books", "Latn", "4-6", "CC BY 4.0"),
    ("Een, twee, drie.", "educational", "Latn", "6-8", "CC BY 4.0"),
    ("vulling", "padding", "Latn", "n/a", "CC0"),
    ("nog meer vulling", "padding-wikipedia", "Latn", "n/a", "CC BY-SA 4.0"),
    ("猫坐在垫子上。", "child-books", "Hans", "4-6", "MIT"),
    ("貓坐在墊子上。", "child-books", "Hant", "4-6", None),
    ('кот, "сидел"', "subtitles", "Cyrl", "7", "  "),
]


def released(folder: Path, ending: str) -> Path:
    folder.mkdir(parents=True)
    rows = [
        (
            *(text, hashlib.sha256(text.encode()).hexdigest(), category, "ours", script, age, licence),
            *(json.dumps({"a": 1}), len(text.split()), "nld"),
        )
        for text, category, script, age, licence in ROWS
    ]
    path = folder / f"babylm-nld_dataset.{ending}"
    if ending == "parquet":
        pq.write_table(pa.table(dict(zip(COLUMNS, map(list, zip(*rows, strict=True)), strict=True))), path)
    else:
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([COLUMNS, *rows])
    return folder


def converted(folder: Path, ending: str, **options: Any) -> Manifest:
    source = folder / "source.json"
    if not source.exists():
        register_source("raw", released(folder / "raw", ending), source)
    named = {"name": "babybabellm", "reader": "plain_text", "options": {"sentences": "line", **options}}
    settings = {"sources": [named], "split": {"development_fraction": 0.0}}
    output = folder / "corpus/manifest.json"
    run_stage(convert_corpus, settings, output, source={"babybabellm": source})
    return read_manifest(output)


def documents(manifest: Manifest) -> dict[str, str | None]:
    """Return the licences of the documents by text."""
    rows = [row for path in manifest.files(".parquet", "train-") for row in pq.read_table(path).to_pylist()]
    return {row["text"]: row.get("licence") for row in rows}


def numbers(manifest: Manifest, column: str = "num-tokens") -> dict[str, float | None]:
    """Return the values of a numeric column by text."""
    rows = [row for path in manifest.files(".parquet", "train-") for row in pq.read_table(path).to_pylist()]
    return {row["text"]: row.get(f"column_{column}") for row in rows}


def table(manifest: Manifest, name: str) -> list[list[str]]:
    with manifest.file(name).open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))[1:]


LICENCES = [
    ["babybabellm", "", "2", "3", str(7 + 12)],
    ["babybabellm", "CC BY 4.0", "2", str(9 + 3), str(21 + 1 + 15 + 16)],
    ["babybabellm", "CC BY-SA 4.0", "1", "3", "16"],
    ["babybabellm", "CC0", "1", "1", "7"],
    ["babybabellm", "MIT", "1", "1", "7"],
]
"""Numbers of documents, words and characters; the lines of the first text have 6 and 3 words, and 21 and 15
characters.
"""


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_the_licence_of_each_document_is_kept_and_summed(tmp_path: Path, ending: str) -> None:
    manifest = converted(tmp_path, ending, licence_column="license")
    assert documents(manifest) == {text: (licence or "").strip() for text, _, _, _, licence in ROWS}
    assert table(manifest, "licences.csv") == LICENCES


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_category_script_and_age_select_rows_and_the_others_are_counted(tmp_path: Path, ending: str) -> None:
    chosen: dict[str, Any] = {"keep": {"script": ["Latn", "Hans"]}, "leave_out": {"category": ["padding*"]}}
    manifest = converted(tmp_path, ending, **chosen)
    # Without a column of licences, the shards have no licences.
    assert documents(manifest) == {ROWS[0][0]: None, ROWS[1][0]: None, ROWS[4][0]: None}
    assert not manifest.listed("licences.csv")
    assert table(manifest, "rejected.csv") == [
        ["babybabellm", "row left out by the option `leave_out`", "2"],
        ["babybabellm", "row not kept by the option `keep`", "2"],
    ]
    assert manifest.measures["train"]["documents"] == 3
    manifest = converted(tmp_path, ending, leave_out={"age-estimate": ["4-*"], "category": ["padding"]})
    assert list(documents(manifest)) == [ROWS[1][0], ROWS[3][0], ROWS[6][0]]


def test_a_sample_keeps_licences(tmp_path: Path) -> None:
    corpus = converted(tmp_path, "parquet", licence_column="license")
    output = tmp_path / "sample/manifest.json"
    parts = {"all": {"sources": ["babybabellm"], "bytes": 60}}
    run_stage(sample_corpus, {"parts": parts}, output, corpus=corpus.path, size_of=None)
    found = documents(read_manifest(output))
    assert found and found.items() <= documents(corpus).items()
    assert sum(int(row[2]) for row in table(read_manifest(output), "licences.csv")) == len(found)
    # The texts have 37 + 16 + 7 + 16 + 21 + 21 + 20 bytes, so this sample has all documents.
    parts = {"all": {"sources": ["babybabellm"], "bytes": 138}}
    run_stage(sample_corpus, {"parts": parts}, output, corpus=corpus.path, size_of=None)
    assert table(read_manifest(output), "licences.csv") == LICENCES


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_numbers_of_documents_are_kept_in_shards_and_samples(tmp_path: Path, ending: str) -> None:
    manifest = converted(tmp_path, ending, numeric_columns=["num-tokens"])
    # Numbers of tokens between white space.
    expected = dict(zip((row[0] for row in ROWS), [9.0, 3.0, 1.0, 3.0, 1.0, 1.0, 2.0], strict=True))
    assert numbers(manifest) == expected
    assert manifest.measures["numeric_columns"] == ["num-tokens"]
    output = tmp_path / "sample/manifest.json"
    parts = {"all": {"sources": ["babybabellm"], "bytes": 60}}
    run_stage(sample_corpus, {"parts": parts}, output, corpus=manifest.path, size_of=None)
    found = numbers(read_manifest(output))
    assert found and found.items() <= expected.items()
    plain = converted(tmp_path, ending)
    assert "numeric_columns" not in plain.measures and set(numbers(plain).values()) == {None}


def test_numbers_and_licences_stay_with_documents_whose_text_changes(tmp_path: Path) -> None:
    line = (
        "This line has more than a hundred characters, so that it counts as a long line, which is left out if repeated."
    )
    table = tmp_path / "raw" / "table.csv"
    table.parent.mkdir()
    table.write_text(f'text,level,licence\n"{line}",1,MIT\n"{line}\nShort.",2.5,CC0\n', encoding="utf-8")
    (tmp_path / "raw" / "other.txt").write_text("Other text.", encoding="utf-8")
    register_source("raw", tmp_path / "raw", tmp_path / "source.json")
    options = {"sentences": "line", "numeric_columns": ["level"], "licence_column": "licence", "files": "*.csv"}
    named = [
        {"name": "table", "reader": "plain_text", "options": options},
        {"name": "text", "reader": "plain_text", "options": {"files": "*.txt"}},
    ]
    settings = {"sources": named, "split": {"development_fraction": 0.0}, "duplicates": "drop_lines"}
    output = tmp_path / "corpus/manifest.json"
    source = dict.fromkeys(("table", "text"), tmp_path / "source.json")
    run_stage(convert_corpus, settings, output, source=source)
    assert numbers(read_manifest(output), "level") == {line: 1.0, "Short.": 2.5, "Other text.": None}
    assert documents(read_manifest(output)) == {line: "MIT", "Short.": "CC0", "Other text.": None}


@pytest.mark.parametrize(("ending", "row"), [("csv", "line 5"), ("parquet", "row 3")])
def test_a_value_that_is_no_number_is_named_with_file_and_row(tmp_path: Path, ending: str, row: str) -> None:
    options: dict[str, Any] = {"keep": {"category": ["padding"]}, "numeric_columns": ["age-estimate"]}
    with pytest.raises(HatcheryError) as caught:
        converted(tmp_path, ending, **options)
    expected = "numeric_columns: got 'n/a' in the column 'age-estimate', expected a finite number"
    assert f"babylm-nld_dataset.{ending}" in str(caught.value) and row in str(caught.value)
    assert expected in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"numeric_columns": ["level"]}, "there is no column 'level'; there are: age-estimate, category"),
        (
            {"numeric_columns": ["num-tokens"], "document_column": "doc-id"},
            "numeric_columns: got ['num-tokens'], which cannot be combined with `document_column`, because a document",
        ),
        ({"licence_column": "licence"}, "there is no column 'licence'; there are: age-estimate, category"),
        (
            {"licence_column": "license", "document_column": "doc-id"},
            "licence_column: got 'license', which cannot be combined with `document_column`, because a "
            "document then consists of several rows",
        ),
        (
            {"licence_column": "license", "lines_per_document": 2},
            "licence_column: got 'license', which cannot be combined with `lines_per_document`",
        ),
    ],
)
def test_a_column_that_is_not_there_is_named(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(HatcheryError) as caught:
        converted(tmp_path, "csv", **options)
    assert message in str(caught.value)
