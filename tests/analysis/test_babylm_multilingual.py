"""The page's tables of BabyLM's multilingual track."""

import dataclasses
from types import SimpleNamespace

import polars as pl
import pytest

from hatchery.analysis.analyses import babylm_multilingual
from hatchery.analysis.analyses.babylm_multilingual import ANALYSIS, MultilingualSettings, multilingual
from hatchery.experiment.project import Project


@dataclasses.dataclass
class Run:
    name: str
    label: str
    model: str = "m"


@dataclasses.dataclass
class Study:
    runs: list[Run]
    tables: dict[str, str]


def test_means_and_parts_of_a_model_are_those_of_its_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two seeds have 42 and 28 points in an English task: 35 / 8 of its group, 35 / 14 of English, 35 / 42 overall."""
    columns = ("run", "kind", "suite", "task", "level", "metric", "value")
    rows = [
        (f"m-s{seed}", "finetuning", "t", "y_arc_en", "task", "accuracy_percent", points)
        for seed, points in ((1, 42.0), (2, 28.0))
    ]
    pairs = ("pair_average", "average", "accuracy_percent")
    rows.append(("m-s1", "minimal_pairs", "x_hanzi_pinyin", *pairs, 60.0))
    # A score of Hanzi, which is in no mean, is enough for a column.
    rows.append(("o-s1", "minimal_pairs", "x_hanzi_structure", *pairs, 50.0))
    frame = pl.DataFrame(rows, schema=columns, orient="row")
    monkeypatch.setattr("hatchery.analysis.tidy_tables.read_frame", lambda path, kind: frame)
    runs = [Run("m-s1", "Mine"), Run("m-s2", "Mine"), Run("n-s1", "Other", "n"), Run("o-s1", "Third", "o")]
    study = Study(runs, {"measurements": "x"})
    found = multilingual(MultilingualSettings(suites="x", tasks="y"), study)
    numbers = {row["part"]: row["points"] for row in found.rows if row["model"] == "Mine"}
    assert numbers["en/fine-tuning/arc"] == 35.0 and numbers["en/zero-shot/blimp"] is None
    assert numbers["en/fine-tuning"] == pytest.approx(35 / 8, abs=1e-6)
    assert numbers["en/mean"] == 2.5 and numbers["overall"] == pytest.approx(2.5 / 3, abs=1e-6)
    assert numbers["hanzi_pinyin"] == 60.0
    # A run without any part has no column.
    assert list(dict.fromkeys(row["model"] for row in found.rows)) == ["Mine", "Third"]
    assert len(found.tables) == 4 and any("inferred" in note for note in found.notes)
    shown = [
        {row.cells[0]: getattr(row.cells[1], "text", row.cells[1]) for row in table.rows} for table in found.tables
    ]
    assert [column.heading for column in found.tables[0].columns] == ["", "Mine", "Third"]
    captions = [f"Multilingual track: {name}" for name in ("means", "English", "Dutch", "Mandarin")]
    assert [table.caption for table in found.tables] == captions
    assert list(shown[0])[:4] == ["overall", "en, zero-shot", "en, fine-tuning", "en, mean"] and len(shown[0]) == 10
    assert (shown[0]["overall"], shown[0]["en, fine-tuning"], shown[0]["nl, mean"]) == ("0.83", "4.38", "0.00")
    # English has 6 zero-shot parts and 8 fine-tuning parts, Dutch 7 and 8, Mandarin 6 and 9 and two tasks of Hanzi.
    assert [len(rows) for rows in shown[1:]] == [14, 15, 17]
    assert (shown[1]["en, fine-tuning, arc"], shown[1]["en, zero-shot, blimp"]) == ("35.00", "-")
    assert list(shown[3].items())[-2:] == [("hanzi structure", "-"), ("hanzi pinyin", "60.00")]


def test_an_experiment_with_the_key_has_the_analysis(repository) -> None:
    project = Project(repository / "config")
    assert ANALYSIS.own is not None
    found = ANALYSIS.own(project.experiment("babylm_multilingual_mini"))
    assert found == {"suites": "demo_multilingual", "tasks": "demo_multilingual"}
    submission = SimpleNamespace(suites="my_suites", tasks="my_tasks")
    assert ANALYSIS.own(SimpleNamespace(multilingual_submission=submission)) == vars(submission)  # type: ignore[arg-type]
    assert ANALYSIS.own(project.experiment("babylm_mini")) is None and babylm_multilingual.NOTES
