"""Shards are named i-of-n, appear together, and replace those of an earlier run."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hatchery.artifacts.parquet import ROW_GROUP_BYTES, ShardWriter, TableWriter, read_rows, read_tables
from hatchery.errors import ManifestError

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
    assert sum(1 for _ in read_rows(tmp_path / "a.parquet")) == 5


def test_no_rows_make_one_empty_shard(tmp_path: Path) -> None:
    assert read_tables(write(tmp_path, 0, 2)).num_rows == 0


def test_a_new_run_leaves_no_shard_of_the_old_one(tmp_path: Path) -> None:
    write(tmp_path, 5, 1)
    paths = write(tmp_path, 2, 1)
    assert sorted(tmp_path.iterdir()) == paths


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
