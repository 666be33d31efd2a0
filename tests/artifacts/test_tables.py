"""Small files must follow their schemas exactly; all Parquet shards of a writer appear together."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hatchery.artifacts import parquet
from hatchery.artifacts.parquet import ROW_GROUP_BYTES, ShardWriter, TableWriter, read_tables
from hatchery.artifacts.records import Record, json_record, json_records, read_records, read_rows
from hatchery.errors import EvaluationError, ManifestError
from hatchery.settings.base import Natural, Share

COLUMNS = ("name", "value")


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "the table is empty; expected the columns name, value"),
        (b"name,value\n", "a header but no rows"),
        (b"name,other\na,1\n", "lacks the columns value; it has name, other"),
        (
            b"name,value\na,1\nb,2\na,3\n",
            "line 4: got the row a a second time, expected each row once; the first is in line 2",
        ),
        (b"name,value\na,1\nb\n", "line 3: got 1 cells, expected 2 as in the header"),
        (b"name,value\n\xff,1\n", "not a CSV file in UTF-8"),
    ],
)
def test_a_damaged_table_is_refused_with_its_name_and_place(tmp_path: Path, content: bytes, complaint: str) -> None:
    path = tmp_path / "results.csv"
    path.write_bytes(content)
    with pytest.raises(EvaluationError) as caught:
        read_rows(path, COLUMNS, key=("name",))
    assert str(caught.value).startswith(str(path))
    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)
    path.unlink()
    with pytest.raises(EvaluationError, match=r"results\.csv: the table cannot be read"):
        read_rows(path, COLUMNS, key=("name",))


@dataclass(frozen=True)
class Number(Record):
    name: str
    value: Share


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('{"name": "a", "value": 1}\n{"name": "b", "value": 2}', "line 2: value: got 2, expected at most 1"),
        ('{"name": "a", "value', "line 1: not JSON"),
        (
            '{"name": "a", "value": 1}\n\n{"name": "a", "value": 0}',
            "line 3: got the name a a second time, expected each name once; the first is in line 1",
        ),
    ],
)
def test_a_wrong_line_of_json_is_named_with_its_key(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(EvaluationError) as caught:
        json_records(path, Number, "name")
    assert str(caught.value).startswith(f"{path}, {complaint}")


def test_json_is_read_by_the_schema_of_its_objects(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"name": "a", "value": 1, "more": null}\n\n', encoding="utf-8")
    assert json_records(path, Number, "name") == [Number("a", 1.0)]
    assert json_record(path, Number) == Number("a", 1.0)
    path.write_bytes(b"\xff")
    with pytest.raises(EvaluationError, match=r"metrics\.jsonl: the file cannot be read"):
        json_record(path, Number)


@dataclass(frozen=True)
class Result(Record):
    name: str
    seed: Natural
    share: Share
    value: float | None
    failed: Literal["", "nan"]


@dataclass(frozen=True)
class Grown(Number):
    added: str = "none"


HEADER = "seed,more,name,share,value,failed\n"


def test_a_dataclass_says_what_a_table_holds(tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    path.write_text(f"{HEADER}1,x,a,1,0.5,\n2,y,a,0,,nan\n", encoding="utf-8")
    assert read_records(path, Result, ("name", "seed")) == [
        Result("a", 1, 1.0, 0.5, ""),
        Result("a", 2, 0.0, None, "nan"),
    ]
    path.write_text(HEADER, encoding="utf-8")
    assert read_records(path, Result, may_be_empty=True) == []
    # A file that was written before a column with a default was added.
    path.write_text("name,value\na,1\n", encoding="utf-8")
    assert read_records(path, Grown) == [Grown("a", 1.0, "none")]


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("-1,x,a,1,0.5,", "seed: got '-1', expected at least 0"),
        ("²,x,a,1,0.5,", "seed: got '²', expected a whole number"),
        *(
            (f"1,x,a,{share},0.5,", f"share: got '{share}', expected")
            for share in ("", "nan", "inf", "abc", "1.5", "-0.1")
        ),
        ("1,x,a,1,0.5,why", "failed: got 'why', allowed are: \"\", nan"),
    ],
)
def test_a_field_of_another_kind_names_line_and_column(tmp_path: Path, line: str, complaint: str) -> None:
    path = tmp_path / "results.csv"
    path.write_text(f"{HEADER}{line}\n", encoding="utf-8")
    with pytest.raises(EvaluationError, match=f"line 2: {complaint}"):
        read_records(path, Result)


SCHEMA = pa.schema([("n", pa.int32())])


def write(folder: Path, rows: int, rows_per_shard: int) -> list[Path]:
    with ShardWriter(folder, "train", SCHEMA, rows_per_shard) as writer:
        for n in range(rows):
            writer.write({"n": n})
    return writer.paths


def test_shards_hold_all_rows_in_order(tmp_path: Path) -> None:
    paths = write(tmp_path, 5, 2)
    assert [path.name for path in paths] == [f"train-{i:05d}-of-00003.parquet" for i in range(3)]
    assert read_tables(paths)["n"].to_pylist() == [0, 1, 2, 3, 4]


def test_tables_are_cut_into_shards_like_rows(tmp_path: Path) -> None:
    with ShardWriter(tmp_path, "train", SCHEMA, 4) as writer:
        writer.write({"n": 0})
        writer.write_table(pa.table({"n": list(range(1, 10))}, SCHEMA))
        writer.write({"n": 10})
    assert [read_tables([path])["n"].to_pylist() for path in writer.paths] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10]]


def test_rows_are_written_in_groups_of_bounded_size(tmp_path: Path) -> None:
    schema = pa.schema([("text", pa.string())])
    with TableWriter(tmp_path / "a.parquet", schema) as writer:
        for _ in range(5):
            writer.write({"text": "x" * (ROW_GROUP_BYTES // 2)})
    assert pq.ParquetFile(tmp_path / "a.parquet").metadata.num_row_groups == 3
    assert sum(1 for _ in parquet.read_rows(tmp_path / "a.parquet")) == 5


@pytest.mark.parametrize("cut", [1, 7, 100])
def test_tables_give_the_bytes_of_their_rows(cut: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "ROW_GROUP_BYTES", 300)
    schema = pa.schema([("name", pa.string()), ("n", pa.int32()), ("text", pa.string())])
    rows: list[dict[str, Any]] = [
        {"name": f"é{n}", "n": n, "text": None if n % 9 == 0 else "ü" * (n * 37 % 140)} for n in range(100)
    ]
    with ShardWriter(tmp_path, "train", schema, 30) as by_row:
        for row in rows:
            by_row.write(row)
    expected = [path.read_bytes() for path in by_row.paths]
    with ShardWriter(tmp_path, "train", schema, 30) as by_table:
        for start in range(0, 100, cut):
            by_table.write_rows(pa.Table.from_pylist(rows[start : start + cut], schema=schema))
    assert [path.read_bytes() for path in by_table.paths] == expected
    # A row counts as 16 bytes plus its name and its text; the row that reaches 300 ends its row group.
    assert pq.ParquetFile(by_table.paths[0]).metadata.num_row_groups == 7


def test_no_rows_make_one_empty_shard(tmp_path: Path) -> None:
    assert read_tables(write(tmp_path, 0, 2)).num_rows == 0


def test_a_new_run_leaves_no_shard_of_the_old_one(tmp_path: Path) -> None:
    with ShardWriter(tmp_path, "dev", SCHEMA, 1) as dev:
        dev.write({"n": 0})
    write(tmp_path, 5, 1)
    paths = write(tmp_path, 2, 1)
    assert sorted(tmp_path.iterdir()) == [*dev.paths, *paths]


def test_a_failure_keeps_the_old_shards_and_leaves_nothing_new(tmp_path: Path) -> None:
    old = write(tmp_path, 2, 1)
    with pytest.raises(RuntimeError), ShardWriter(tmp_path, "train", SCHEMA, 1) as writer:
        writer.write({"n": 7})
        raise RuntimeError("stop")
    assert sorted(tmp_path.iterdir()) == old


def test_a_truncated_file_is_named(tmp_path: Path) -> None:
    path = write(tmp_path, 5, 10)[0]
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(ManifestError, match="train-00000-of-00001"):
        read_tables([path])
