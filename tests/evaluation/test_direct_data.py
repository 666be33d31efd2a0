"""Data of direct evaluations: recognised columns of pairs, files of pairs, tables in memory, and archives."""

import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from hatchery.errors import ConfigError
from hatchery.evaluation.direct.data import as_frame, source_at
from hatchery.evaluation.direct.pairs import pairs_of, read_pairs, settings_of_pairs

BLIMP = {"sentence_good": "a", "sentence_bad": "b", "UID": "u", "linguistics_term": "t"}


@pytest.mark.parametrize(
    ("row", "columns"),
    [
        (
            BLIMP,
            {"good": "sentence_good", "bad": "sentence_bad", "paradigm": "UID", "phenomenon": "linguistics_term"},
        ),
        # Of two names of a column, BLiMP's name of a sentence and the plain names of other columns count.
        (
            {"good": "x", "bad": "y", "phenomenon": "q", "paradigm": "p", **BLIMP},
            {"good": "sentence_good", "bad": "sentence_bad", "paradigm": "paradigm", "phenomenon": "phenomenon"},
        ),
        ({"good": "a", "bad": "b", "prefix": "c"}, {"good": "good", "bad": "bad", "prefix": "prefix"}),
        ({"good": "a", "bad_1": "b", "bad_2": "c"}, {"good": "good", "bad": ["bad_1", "bad_2"]}),
    ],
)
def test_columns_of_pairs_are_recognised_by_their_names(row: dict[str, str], columns: dict[str, Any]) -> None:
    found = settings_of_pairs(pl.DataFrame([row]), {"edition": 2026})
    assert found == {"edition": 2026, "format": "rows", "files": "*.parquet", "columns": columns}


def test_lists_of_texts_have_the_good_text_first() -> None:
    assert pairs_of([("a", "b"), ["c", "d"]]).rows(named=True) == [{"good": "a", "bad": "b"}, {"good": "c", "bad": "d"}]
    assert pairs_of([("a", "b", "c")]).rows(named=True) == [{"good": "a", "bad_1": "b", "bad_2": "c"}]


@pytest.mark.parametrize("mark", [",", "\t"])
def test_cells_of_a_table_of_pairs_stay_texts(mark: str, tmp_path: Path) -> None:
    path = tmp_path / {",": "pairs.csv", "\t": "pairs.tsv"}[mark]
    path.write_text(f"good{mark}bad\n1{mark}2\n", encoding="utf-8")
    assert read_pairs(path).rows(named=True) == [{"good": "1", "bad": "2"}]


def test_tables_in_memory_are_data_frames_columns_or_rows() -> None:
    frame = pl.DataFrame({"a": [1, 2]})
    for data in (frame, frame.lazy(), {"a": [1, 2]}, [{"a": 1}, {"a": 2}]):
        assert as_frame(data).equals(frame)
    with pytest.raises(ConfigError, match=r"data: got \[\], expected a table"):
        as_frame([])


def test_an_archive_is_unpacked_into_the_scratch_folder(tmp_path: Path) -> None:
    (tmp_path / "data/deep").mkdir(parents=True)
    (tmp_path / "data/deep/a.csv").write_text("good,bad\n", encoding="utf-8")
    archive = shutil.make_archive(str(tmp_path / "packed"), "zip", tmp_path / "data")
    found = source_at(archive, tmp_path / "scratch")
    assert (found.names("*.csv"), found.root) == (["deep/a.csv"], tmp_path / "scratch/unpacked")
