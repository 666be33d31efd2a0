"""Mistakes reported before training: settings of a task, and files of suites and tasks."""

import shutil
import subprocess
import sys
import tomllib
from contextlib import nullcontext
from importlib.metadata import packages_distributions
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from finetuning_cases import ROWS_TASK
from first_looks import first_problem

from hatchery.errors import ConfigError, EvaluationError
from hatchery.evaluation import first_rows
from hatchery.evaluation.first_rows import check_registered
from hatchery.evaluation.settings import ScoringSettings
from hatchery.evaluation.surprisal.settings import SurprisalSettings
from hatchery.evaluation.tasks.checks import check_task
from hatchery.evaluation.tasks.settings import HeadSettings, TaskSettings, TransferSettings, VocabularyFilter
from hatchery.raw.registration import register_source
from hatchery.typed import build


def task(**changes):
    return build(TaskSettings, {**ROWS_TASK, **changes}, "task 'mine'")


CHOICE = {"layout": "copa", "fields": (), "labels": (), "head": HeadSettings("multiple_choice")}
TRANSFER = TransferSettings({"0": (0,), "1": (1, 2)})
BY_LABEL = {"format": "labelled_lines", "fields": (), "files": {"0": "a", "1": "b"}}
TREEBANKS = {"format": "treebanks", "fields": (), "labels": (), "head": HeadSettings("word_classification")}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"fields": ("Question: {question} Answer: {answer}", "paragraph")},
        {"labels": (), "head": HeadSettings("regression"), "metrics": ("pearson", "spearman")},
        CHOICE,
        {"layout": "record", "fields": (), "metrics": ("record_f1",)},
        {"files": {"validation": "dev.json"}, "transfer": TRANSFER},
        {"files": {"train": "t.json"}},
        {"format": "rte_xml", "fields": ()},
        BY_LABEL,
        {**TREEBANKS, "files": {"nl": "a", "en": "b"}},
        {"format": "conllu", "fields": (), "labels": (), "head": HeadSettings("span_classification")},
        {"label_values": {"no": 0, "yes": 1}, "expected_rows": {"train": 5}},
    ],
)
def test_settings_that_fit_together_are_accepted(changes):
    check_task(task(**changes))


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"files": {}}, "files"),
        ({"files": {"validation": "dev.json"}}, "files"),
        ({"files": {"train": "a", "mismatched": "b"}}, "files"),
        ({"format": "labelled_lines", "files": {"0": "a"}}, "files"),
        ({"expected_rows": {"test": 3}}, "expected_rows"),
        # The files of a label or of a language are not a set.
        ({**BY_LABEL, "expected_rows": {"0": 3}}, "expected_rows"),
        ({**BY_LABEL, "scored_rows": {"condition": "test"}}, "scored_rows"),
        ({**TREEBANKS, "files": {"nl": "a", "validation": "b"}}, "files"),
        ({"sorted_labels": True, "labels": (), "format": "rte_xml"}, "sorted_labels"),
        ({"files": {"train": "a"}, "scored_rows": {"condition": "test"}}, "scored_rows"),
        ({"head": HeadSettings("span_classification")}, "head.kind"),
        ({"head": HeadSettings("multiple_choice")}, "head.kind"),
        ({**CHOICE, "head": HeadSettings()}, "head.kind"),
        ({"format": "jiant"}, "head.kind"),
        ({**CHOICE, "labels": (0, 1)}, "labels"),
        ({"labels": (0, 1), "head": HeadSettings("regression")}, "labels"),
        ({"labels": ()}, "labels"),
        ({"labels": (1,)}, "labels"),
        ({"labels": (1, "1")}, "labels"),
        ({"layout": "record", "fields": (), "labels": (0, 1, 2)}, "labels"),
        ({"label_values": {"x": 2}}, "label_values"),
        ({"transfer": TransferSettings({"0": (0,)})}, "transfer.labels"),
        ({"layout": "wic"}, "fields"),
        ({"head": HeadSettings("marked_words_classification")}, "head.kind"),
        ({"layout": "wic", "fields": (), "normalisation": "ltg"}, "normalisation"),
        ({"layout": "wic", "fields": (), "format": "rte_xml"}, "format"),
        ({"fields": ()}, "fields"),
        ({"fields": ("a", "b", "c", "d")}, "fields"),
        ({"fields": ("Question: {question",)}, "fields"),
        ({"fields": ("{}",)}, "fields"),
        ({"layout": "wic", "fields": (), "vocabulary": VocabularyFilter(("a",))}, "layout"),
    ],
)
def test_settings_that_exclude_each_other_are_refused_with_task_and_key(changes, key):
    with pytest.raises(ConfigError, match=rf"^task 'mine'(: |\.){key}(\.\w+)?: .*(expected|allowed)") as caught:
        check_task(task(**changes))
    assert "\n" not in str(caught.value)


GOOD = [("It rains.", "good"), ("Rains it.", "bad")]


def written(**changes: object) -> dict[str, object]:
    values = {
        "name": "mine",
        "suite": "own",
        "format": "rows",
        "files": {"train": "train.*", "validation": "dev.*"},
        "labels": ["good", "bad"],
        "metrics": ["accuracy"],
        "fields": ["sentence"],
    }
    return {**values, **changes}


def json_lines(rows: list[tuple[str, str]]) -> str:
    return "".join(f'{{"sentence": "{text}", "label": "{label}"}}\n' for text, label in rows)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("train", "dev"):
        (tmp_path / f"{name}.jsonl").write_text(json_lines(GOOD), encoding="utf-8")
    return tmp_path


def test_a_sound_task_has_no_problem(folder: Path) -> None:
    assert first_problem(build(TaskSettings, written()), folder) is None


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            {"fields": ["text"]},
            "train.jsonl:1: the field 'text' of the task 'mine' is missing; the record has: label, sen",
        ),
        ({"fields": ["Is {text} good?"]}, "train.jsonl:1: the field 'text' of the task 'mine' is missing"),
        ({"label_field": "gold"}, "train.jsonl:1: the field 'gold' of the task 'mine' is missing"),
        ({"labels": ["good", "worse"]}, "train.jsonl:2: the label 'bad' in 'label' is unknown; the task 'mine' lists"),
        ({"labels": ["good", "bad", "ugly"]}, "no training row of the task 'mine' has the label 'ugly'"),
        (
            {"files": {"train": "trian.*", "validation": "dev.*"}},
            "no file matches 'trian.*', the 'train' files of 'mine'",
        ),
        ({"group_fields": ["idx"]}, "train.jsonl:1: the field 'idx'"),
        ({"vocabulary": {"fields": ["origin"]}}, "train.jsonl:1: the field 'origin' is missing"),
    ],
)
def test_what_the_files_do_not_have_is_named(changes: dict[str, object], expected: str, folder: Path) -> None:
    problem = first_problem(build(TaskSettings, written(**changes)), folder)
    assert problem is not None
    assert expected in problem
    assert "\n" not in problem


def test_tables_and_parquet_are_looked_into_and_archives_are_not(tmp_path: Path) -> None:
    columns = {"sentence": [text for text, _ in GOOD], "label": [label for _, label in GOOD]}
    (tmp_path / "data").mkdir()
    pq.write_table(pa.table(columns), tmp_path / "data/dev.parquet")
    (tmp_path / "data/train.tsv").write_text("sentence\tlabel\nIt rains.\tgood\nRains it.\tbad\n")
    archive = shutil.make_archive(str(tmp_path / "data"), "zip", tmp_path / "data")
    wrong = build(TaskSettings, written(fields=["text"]))
    assert first_problem(build(TaskSettings, written()), tmp_path / "data") is None
    assert "train.tsv:2: the field 'text'" in (first_problem(wrong, tmp_path / "data") or "")
    assert first_problem(wrong, archive) is None


def test_only_the_first_lines_of_a_long_file_are_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_rows, "HEAD_BYTES", 200)
    monkeypatch.setattr(first_rows, "SMALL_BYTES", 200)
    rows = [GOOD[0]] * 50 + [("It is late.", "unheard")]
    (folder / "train.jsonl").write_text(json_lines(rows), encoding="utf-8")
    # Only the first lines are read: the unknown label at the end is not seen, and a missing label is not reported.
    assert first_problem(build(TaskSettings, written()), folder) is None
    assert first_problem(build(TaskSettings, written(fields=["text"])), folder) is not None


def test_small_files_of_every_format_are_read_whole_and_large_ones_not_at_all(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    xml = build(TaskSettings, written(format="rte_xml", fields=[]))
    assert "train.jsonl:1: malformed XML" in (first_problem(xml, folder) or "")
    monkeypatch.setattr(first_rows, "SMALL_BYTES", 20)
    assert first_problem(xml, folder) is None


def test_a_small_file_is_read_to_its_end(folder: Path) -> None:
    rows = [*GOOD * 800, ("It is late.", "unheard")]
    (folder / "train.jsonl").write_text(json_lines(rows), encoding="utf-8")
    assert "train.jsonl:1601: the label 'unheard'" in (first_problem(build(TaskSettings, written()), folder) or "")


@pytest.mark.parametrize(
    ("drawn", "expected"), [(3, None), (4, "drawn: got 4, expected at most 3, the number of texts")]
)
def test_a_text_that_a_figure_cannot_show_is_noticed_before_training(
    tmp_path: Path, drawn: int, expected: str | None
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/a.txt").write_text("It rains.\n\nA dog.\n", encoding="utf-8")
    (tmp_path / "data/b.txt").write_text("Er schläft.\n", encoding="utf-8")
    settings = {"drawn": drawn, "files": "*.txt"}
    problem = first_problem(build(SurprisalSettings, settings), tmp_path / "data")
    assert problem is None if expected is None else problem is not None and problem.endswith(expected)
    register_source("mine", tmp_path / "data", tmp_path / "source.json")
    readings = {"texts": {"kind": "surprisal", "settings": settings}}
    with nullcontext() if expected is None else pytest.raises(EvaluationError, match=expected):
        check_registered(tmp_path / "source.json", readings)


def test_a_spreadsheet_of_sentences_is_a_task(folder: Path) -> None:
    for name in ("train", "dev"):
        (folder / f"{name}.csv").write_text(
            'sentence;label\n"It rains; twice.";good\nRains it.;bad\n', encoding="utf-8"
        )
    files = {"train": "train.csv", "validation": "dev.csv"}
    assert first_problem(build(TaskSettings, written(files=files)), folder) is None
    problem = first_problem(build(TaskSettings, written(files=files, label_field="gold")), folder) or ""
    assert "train.csv:2: the field 'gold' of the task 'mine' is missing; the record has: label, sentence" in problem


SUITE = {"suite": "mine", "format": "rows", "files": "*.csv", "columns": {"good": "right", "bad": "wrong"}}


def test_the_pairs_of_a_suite_are_read_as_far_as_their_files_are_small(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.csv").write_text("right,wrong\n" + "He eats.,He eat.\n" * 20 + "They eat.,\n", encoding="utf-8")
    problem = first_problem(build(ScoringSettings, SUITE), tmp_path)
    assert problem == "a.csv:22: the field 'wrong' must be a non-empty text, got ''"
    monkeypatch.setattr(first_rows, "SMALL_BYTES", 200)
    assert first_problem(build(ScoringSettings, SUITE), tmp_path) is None
    assert "no file matches '*.tsv'" in (
        first_problem(build(ScoringSettings, {**SUITE, "files": "*.tsv"}), tmp_path) or ""
    )


def test_a_large_table_whose_first_texts_are_empty_is_not_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.csv").write_text("item,text\n" + "1,\n" * 600 + "2,He eats.\n", encoding="utf-8")
    monkeypatch.setattr(first_rows, "SMALL_BYTES", 200)
    assert first_problem(SurprisalSettings(column="text"), tmp_path) is None


def test_a_registered_input_is_read_to_the_end_of_its_large_files(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_rows, "SMALL_BYTES", 200)
    rows = [*GOOD * 800, ("It is late.", "unheard")]
    (folder / "train.jsonl").write_text(json_lines(rows), encoding="utf-8")
    (folder / "a.csv").write_text("right,wrong\n" + "He eats.,He eat.\n" * 20 + "They eat.,\n", encoding="utf-8")
    manifest = tmp_path / "manifest" / "source.json"
    manifest.parent.mkdir()
    register_source("mine", folder, manifest)
    check_registered(manifest, {})
    for file, settings, expected in (
        ("task", written(), "tasks/mine.yaml: train.jsonl:1601: the label 'unheard' in 'label' is unknown"),
        ("task", written(expected_rows={"train": 3}, labels=["good", "bad", "unheard"]), "has 1601 rows, expected 3"),
        ("suite", SUITE, "suites/mine.yaml: a.csv:22: the field 'wrong' must be a non-empty text"),
    ):
        kind, of = {"task": ("finetuning", TaskSettings), "suite": ("minimal_pairs", ScoringSettings)}[file]
        typed: Any = build(of, settings)
        assert first_problem(typed, folder) is None
        with pytest.raises(EvaluationError, match=expected):
            check_registered(manifest, {f"config/{file}s/mine.yaml": {"kind": kind, "settings": settings}})


def test_registered_data_is_checked_with_the_packages_of_its_environment(
    folder: Path, tmp_path: Path, repository: Path
) -> None:
    groups = tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))["dependency-groups"]
    others = {name.lower() for group in groups.values() for name in group} - {
        name.lower() for name in groups["sources"]
    }
    modules = packages_distributions()
    absent = sorted(module for module, names in modules.items() if {name.lower() for name in names} & others)
    assert {"torch", "polars", "jinja2"} <= set(absent)
    (folder / "a.csv").write_text("right,wrong\nHe eats.,He eat.\n", encoding="utf-8")
    register_source("mine", folder, tmp_path / "source.json")
    texts = {"kind": "surprisal", "settings": {"files": "*.csv", "column": "right"}}
    readings = {
        "suite": {"kind": "minimal_pairs", "settings": SUITE},
        "task": {"kind": "finetuning", "settings": written()},
        "texts": texts,
    }
    code = (
        "import sys\n"
        f"sys.modules |= dict.fromkeys({absent!r})\n"
        "from pathlib import Path\n"
        "from hatchery.evaluation.stages import register_source\n"
        "from hatchery.evaluation.first_rows import check_registered\n"
        f"check_registered(Path({str(tmp_path / 'source.json')!r}), {readings!r})\n"
    )
    environment = {"PYTHONPATH": str(repository / "scripts"), "PATH": ""}
    ended = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr


WHOLE_CELLS = b'a,b\n"x\ny",1\n"z'


@pytest.mark.parametrize(
    ("name", "content", "read"),
    [
        ("a.jsonl", b"{}\n" * 9, b"{}\n" * 5),
        ("a.csv", WHOLE_CELLS + b'\nz",2\n' * 3, b'a,b\n"x\ny",1\n'),
        ("a.CSV", WHOLE_CELLS + b'\nz",2\n' * 3, b'a,b\n"x\ny",1\n'),
        # These files cannot be read in part: one JSON list, one long line, and Parquet.
        ("a.json", b" [{},\n{},\n{},\n{},\n{}]\n", None),
        ("a.txt", b"x" * 20 + b"\n", None),
        ("a.parquet", b"PAR1\n" * 5, None),
    ],
)
def test_of_a_large_file_the_complete_rows_in_its_first_bytes_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, content: bytes, read: bytes | None
) -> None:
    monkeypatch.setattr(first_rows, "SMALL_BYTES", 17)
    monkeypatch.setattr(first_rows, "HEAD_BYTES", 17)
    (tmp_path / name).write_bytes(content)
    source = first_rows.FirstLines(tmp_path, "a", "folder", tmp_path, {name: (len(content), "")})
    with source.open(name) as handle:
        assert handle.read() == (content if read is None else read)


def test_a_folder_of_too_many_files_is_not_checked(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = build(TaskSettings, written(fields=["text"]))
    for most, is_checked in ((2, True), (1, False)):
        monkeypatch.setattr(first_rows, "MOST_FILES", most)
        assert (first_problem(wrong, folder) is not None) == is_checked


def test_files_that_are_small_together_are_read_whole_and_of_others_the_first_rows():
    sizes = {"first": first_rows.SMALL_BYTES - 10, "second": 11, "third": 10, "fourth": 1}
    most_rows = first_rows._first_rows(SimpleNamespace(size=sizes.get))
    assert [most_rows(name) for name in (*sizes, *sizes)] == [None, 500, None, 500] * 2
