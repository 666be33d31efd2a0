"""Strict reading of result tables."""

from pathlib import Path

import pytest

from hatchery.errors import EvaluationError
from hatchery.storage.csv_tables import read_rows

COLUMNS = ("name", "value")


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "the table is empty; expected the columns name, value"),
        (b"name,value\n", "a header but no rows"),
        (b"name,other\na,1\n", "lacks the columns value; it has name, other"),
        (b"name,value\na,1\nb,2\na,3\n", "line 4: the row a stands already in line 2"),
        (b"name,value\na,1\nb\n", "line 3: 1 fields, the header has 2"),
        (b"name,value\n\xff,1\n", "not a CSV file in UTF-8"),
        (b'name,value\n"a,1\n', "not a CSV file in UTF-8"),
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


def test_a_missing_table_is_named(tmp_path: Path) -> None:
    with pytest.raises(EvaluationError, match=r"absent\.csv: the table cannot be read"):
        read_rows(tmp_path / "absent.csv", COLUMNS, key=("name",))


@pytest.mark.parametrize("value", ["", "nan", "inf", "abc", "1.5", "-0.1"])
def test_a_number_outside_its_range_names_line_and_column(tmp_path: Path, value: str) -> None:
    path = tmp_path / "results.csv"
    path.write_text(f"name,value\na,{value}\n")
    (row,) = read_rows(path, COLUMNS, key=("name",))
    with pytest.raises(EvaluationError, match=r"results\.csv, line 2: value is"):
        row.number("value", 0.0, 1.0)


@pytest.mark.parametrize("value", ["", "-1", "1.0", "²"])
def test_a_count_must_be_a_whole_number(tmp_path: Path, value: str) -> None:
    path = tmp_path / "results.csv"
    path.write_text(f"name,value\na,{value}\n", encoding="utf-8")
    (row,) = read_rows(path, COLUMNS, key=("name",))
    with pytest.raises(EvaluationError, match="expected a whole number"):
        row.count("value")
