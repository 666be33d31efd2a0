"""A look at the first rows tells wrong fields, wrong labels and missing files, and never complains of a sound task."""

import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hatchery.evaluation.tasks import first_rows
from hatchery.evaluation.tasks.first_rows import first_rows_problem
from hatchery.evaluation.tasks.settings import TaskSettings

GOOD = [("It rains.", "good"), ("Rains it.", "bad")]


def task(**changes: object) -> TaskSettings:
    values = {
        "name": "mine",
        "suite": "own",
        "format": "rows",
        "files": {"train": "train.*", "validation": "dev.*"},
        "labels": ("good", "bad"),
        "metrics": ("accuracy",),
        "fields": ("sentence",),
    }
    return TaskSettings(**{**values, **changes})


def json_lines(rows: list[tuple[str, str]]) -> str:
    return "".join(f'{{"sentence": "{text}", "label": "{label}"}}\n' for text, label in rows)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("train", "dev"):
        (tmp_path / f"{name}.jsonl").write_text(json_lines(GOOD), encoding="utf-8")
    return tmp_path


def test_a_sound_task_has_no_problem(folder: Path) -> None:
    assert first_rows_problem(task(), folder) is None


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            {"fields": ("text",)},
            "train.jsonl:1: the field 'text' of the task 'mine' is missing; the record has: label, sen",
        ),
        ({"fields": ("Is {text} good?",)}, "train.jsonl:1: the field 'text' of the task 'mine' is missing"),
        ({"label_field": "gold"}, "train.jsonl:1: the field 'gold' of the task 'mine' is missing"),
        ({"labels": ("good", "worse")}, "train.jsonl:2: the label 'bad' in 'label' is unknown; the task 'mine' lists"),
        ({"labels": ("good", "bad", "ugly")}, "no training row of the task 'mine' has the label 'ugly'"),
        (
            {"files": {"train": "trian.*", "validation": "dev.*"}},
            "no file matches 'trian.*', the 'train' files of 'mine'",
        ),
        ({"group_fields": ("idx",)}, "train.jsonl:1: the field 'idx'"),
    ],
)
def test_what_the_files_do_not_have_is_named(changes: dict[str, object], expected: str, folder: Path) -> None:
    problem = first_rows_problem(task(**changes), folder)
    assert problem is not None
    assert expected in problem
    assert "\n" not in problem


def test_zip_archives_tables_and_parquet_are_looked_into(tmp_path: Path) -> None:
    columns = {"sentence": [text for text, _ in GOOD], "label": [label for _, label in GOOD]}
    pq.write_table(pa.table(columns), tmp_path / "dev.parquet")
    with zipfile.ZipFile(tmp_path / "data.zip", "w") as archive:
        archive.writestr("train.tsv", "sentence\tlabel\nIt rains.\tgood\nRains it.\tbad\n")
        archive.write(tmp_path / "dev.parquet", "dev.parquet")
    assert first_rows_problem(task(), tmp_path / "data.zip") is None
    assert "train.tsv:2: the field 'text'" in (first_rows_problem(task(fields=("text",)), tmp_path / "data.zip") or "")


def test_only_the_first_lines_of_a_long_file_are_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_rows, "HEAD_BYTES", 200)
    rows = [GOOD[0]] * 50 + [("It is late.", "unheard")]
    (folder / "train.jsonl").write_text(json_lines(rows), encoding="utf-8")
    # Neither the strange label far below is seen, nor is a label missed that may stand there.
    assert first_rows_problem(task(), folder) is None
    assert first_rows_problem(task(fields=("text",)), folder) is not None


def test_formats_without_fields_are_left_to_the_stage(folder: Path) -> None:
    assert first_rows_problem(task(format="rte_xml", fields=()), folder) is None
