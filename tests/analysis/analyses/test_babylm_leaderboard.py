"""Scores of BabyLM: an edition's mean of its parts, and the table with published rows."""

from pathlib import Path

import polars as pl
import pytest
from scipy import stats

from hatchery.analysis.analyses.analysis import Study
from hatchery.analysis.analyses.babylm_leaderboard import (
    LeaderboardSettings,
    _model,
    half_interval,
    leaderboard,
    read_published,
)
from hatchery.analysis.babylm_scores import RULES, TASKS, RowCount, official_parts, parts_of
from hatchery.experiment.seeded_run import SeededRun
from hatchery.rendering.templates import FOLDER

PUBLISHED = "config/published/babylm/leaderboard.csv"
SUITES = {"blimp": 80, "supplement": 60, "ewok": 50, "entity_tracking": 20, "comps": 55}
SUITES |= {"global_piqa_parallel": 30, "global_piqa_nonparallel": 50}
SWEPT = "other, rate 1"


@pytest.mark.parametrize(
    ("row", "printed", "computed"),
    [
        ("wwm_curriculum_simplification_40k", 41.8, 41.80),
        ("RecGPT-10M", 41.53, 41.52),
        ("BabySteps SidBert", 45.8, 45.80),
        ("RecGPT-100M", 44.33, 44.33),
    ],
)
def test_the_mean_of_nine_parts_is_that_of_published_rows(repository: Path, row, printed, computed) -> None:
    parts = {number.part: number.points for number in read_published(repository / PUBLISHED) if number.row == row}
    assert round(RULES[2026].mean(parts), 2) == computed
    assert parts["overall"] == printed == pytest.approx(computed, abs=0.011)


def test_with_an_age_of_acquisition_of_0_a_negative_one_does_no_harm(repository: Path) -> None:
    parts = {
        number.part: number.points for number in read_published(repository / PUBLISHED) if number.row == "RecGPT-100M"
    }
    rules = RULES[2026]
    assert rules.mean(parts, acquisition=False) == pytest.approx(rules.mean(parts) + 11.82 / 9)
    assert rules.mean({}) == 0 and rules.mean({"blimp": 90.0, "glue": None}) == 10
    assert (rules.mean({"acquisition": 9.0}), rules.mean({"acquisition": 9.0}, acquisition=False)) == (1, 0)


@pytest.mark.parametrize(("human", "nlp", "macro"), [(24.2, 62.7, 43.5), (22.5, 62.0, 42.3), (26.7, 58.0, 42.3)])
def test_the_macro_average_of_2025_is_that_of_the_halves(human, nlp, macro) -> None:
    rules = RULES[2025]
    parts = dict.fromkeys(rules.language, nlp) | dict.fromkeys(rules.likeness, human)
    assert rules.mean(parts) == pytest.approx(macro, abs=0.06)


def counts_file(folder: Path, **changes: int) -> Path:
    """Write the official numbers of rows; those of `study` equal these, except for `changes` by block."""
    rows = ["set,block,uid,rows"]
    for block in ("blimp", "blimp_supplement", "ewok", "entity_tracking_filtered", "comps"):
        rows += [f"full,{block},p,{changes.get(block, 100)}", f"full,{block},q,200"]
    rows += [f"full,global_piqa_parallel,,{changes.get('piqa', 300)}", "full,global_piqa_nonparallel,,300"]
    rows += [f"full,glue,{task},{changes.get('glue', 20)}" for task in TASKS]
    rows += ["full,reading,reading,1726", "checkpoint,aoa_surprisals,,8005"]
    path = folder / "row_counts.csv"
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def study(experiment, repository: Path, tmp_path: Path) -> Study:
    for seed, right in ((1, 0), (2, 4)):
        run = experiment.add_model("mine", seed, [{"step": 1, "tokens": 10, "loss": 3.0}])
        for suite, percent in SUITES.items():
            # Paradigms have the same weight, independent of size. The seeds' scores differ only in COMPS, by 4 points.
            other = right if suite == "comps" else -right
            pairs = {"a": {"p": (percent + right, 100)}, "b": {"q": (2 * (percent + other), 200)}}
            experiment.add_minimal_pairs(run, f"babylm_2026_{suite}", pairs)
        for task in TASKS[:-1]:
            experiment.add_finetuning(run, f"babylm_2026_{task}", ("f1", "accuracy"), {42: ((0.7, 0.1), "")}, scored=20)
    other = experiment.add_model("other", 1, [{"step": 1, "tokens": 10, "loss": 3.0}])
    experiment.add_minimal_pairs(other, "babylm_2026_blimp", {"a": {"p": (60, 100)}, "b": {"q": (120, 200)}})
    # Another suite is measured for the second seed of this model.
    second = experiment.add_model("other", 2, [{"step": 1, "tokens": 10, "loss": 3.0}])
    experiment.add_minimal_pairs(second, "babylm_2026_supplement", {"a": {"p": (70, 100)}, "b": {"q": (140, 200)}})
    experiment.add_model("never_asked", 1, [{"step": 1, "tokens": 10, "loss": 3.0}])
    names = (("mine", 1), ("mine", 2), ("other", 1), ("other", 2), ("never_asked", 1))
    runs = tuple(SeededRun.from_seed(model, seed, SWEPT if model == "other" else "") for model, seed in names)
    files = {"babylm/leaderboard": repository / PUBLISHED, "babylm/row_counts": counts_file(tmp_path)}
    return Study("demo", runs, tables={"measurements": experiment.collected()}, files=files)


def test_models_stand_beside_published_rows_with_chance_and_intervals(study: Study) -> None:
    found = leaderboard(LeaderboardSettings(), study)
    numbers = {(row["model"], row["part"]): row for row in found.rows}
    mine = {part: numbers["mine", part]["points"] for part in RULES[2026].parts}
    assert mine["blimp"] == 80 and mine["global_piqa"] == 40 and mine["entity_tracking"] == 20
    # There are six of seven tasks: the missing task counts 0.
    assert mine["glue"] == pytest.approx(60) and mine["reading"] is None
    expected = (80 + 60 + 50 + 20 + 57 + 60 + 40) / 9
    assert (
        numbers["mine", "mean"]["points"]
        == pytest.approx(expected, abs=1e-6)
        == numbers["mine", "mean_with_aoa_0"]["points"]
    )
    # The half interval is Student's t with one degree of freedom, 12.7062, times 2, the standard error of 55 and 59.
    assert mine["comps"] == 57 and numbers["mine", "comps"]["half_interval"] == pytest.approx(25.412410, abs=1e-5)
    assert numbers["mine", "mean"]["half_interval"] == pytest.approx(2.823601, abs=1e-5)
    assert numbers["mine", "blimp"]["half_interval"] == 0
    assert numbers["mine", "mean"]["seeds"] == 2 and numbers[SWEPT, "blimp"]["half_interval"] is None
    # A mean score is the mean over the seeds with this score; the mean of all parts counts missing parts as 0.
    assert [numbers[SWEPT, part]["points"] for part in ("blimp", "supplement", "ewok")] == [60, 70, None]
    assert numbers[SWEPT, "mean"]["points"] == pytest.approx((60 / 9 + 70 / 9) / 2, abs=1e-6)
    assert {row["rule"] for row in found.rows} == {"mean of nine parts, BabyLM 2026 (July)"}
    sources = {"mine": "this experiment", "GPT2-Strict-Small": "published", "chance": "chance"}
    assert {model: numbers[model, "blimp"]["source"] for model in sources} == sources
    assert ("never_asked", "mean") not in numbers
    chance = {part: numbers["chance", part]["points"] for part in RULES[2026].parts if part != "glue"}
    # Entity tracking has five candidates. GlobalPIQA has two candidates in one suite and four in the other.
    assert chance == {
        **dict.fromkeys(("blimp", "supplement", "ewok", "comps"), 50.0),
        **{"entity_tracking": 20.0, "global_piqa": (50 + 25) / 2, "reading": 0.0, "acquisition": 0.0},
    }
    assert numbers["chance", "mean"]["points"] is None
    (table,) = found.tables
    assert [group.heading for group in table.groups] == ["this experiment", "published", ""]
    assert f".{table.kind} td small" in (FOLDER / "experiment.css").read_text(encoding="utf-8")
    rows = [row.cells[0] for row in table.rows]
    assert rows[:2] == ["mine (2 seeds)", f"{SWEPT} (2 seeds)"] and rows[-1] == "chance"
    parts = ["BLiMP", "supplement", "EWoK", "entity tracking", "COMPS", "GLUE", "GlobalPIQA", "reading", "AoA"]
    assert [column.heading for column in table.columns] == ["", *parts, "mean", "with AoA 0"]
    shown = [(cell.text, cell.deviation) for cell in table.rows[0].cells if not isinstance(cell, str)]
    assert shown[4:6] == [("57.00", "25.41"), ("60.00", "0.00")] and shown[-1] == ("40.78", "2.82")
    assert rows[2] == "wwm_curriculum_simplification_40k" and "GPT2-Strict-Small" in rows and "GPT2-Strict" not in rows
    assert numbers["GPT2-Strict-Small", "mean"]["points"] == pytest.approx(336.39 / 9, abs=1e-5)
    # AoA 0 replaces -12.15. The second row has only a mean and an AoA of 22.90; a ninth of this AoA is subtracted.
    assert numbers["GPT2-Strict-Small", "mean_with_aoa_0"]["points"] == pytest.approx(348.54 / 9, abs=1e-5)
    deberta = numbers["deberta-base-75k-sam_ext-s1", "mean_with_aoa_0"]["points"]
    assert deberta == pytest.approx(40.62 - 22.90 / 9, abs=1e-5)
    means = [float(row.cells[-2].text) for row in table.rows[2:-1]]
    assert means == sorted(means, reverse=True) and len(means) > 3
    assert "RecGPT-100M" in [
        row.cells[0] for row in leaderboard(LeaderboardSettings(track="strict"), study).tables[0].rows
    ]


@pytest.mark.parametrize(
    ("changes", "marked", "published"),
    [
        ({}, set(), True),
        ({"ewok": 99}, {"ewok", "mean", "mean_with_aoa_0"}, True),
        # GlobalPIQA has two suites; other data in one suite are enough for a mark.
        ({"piqa": 299, "glue": 21}, {"global_piqa", "glue", "mean", "mean_with_aoa_0"}, True),
        (dict.fromkeys(("blimp", "blimp_supplement", "ewok", "entity_tracking_filtered", "comps", "piqa", "glue"), 1),
         {*RULES[2026].parts, "mean", "mean_with_aoa_0"} - {"reading", "acquisition"}, False),
    ],
)  # fmt: skip
def test_numbers_of_other_data_are_marked_and_alone_stand_beside_no_published_row(
    study: Study, tmp_path: Path, changes: dict[str, int], marked: set[str], published: bool
) -> None:
    counts_file(tmp_path, **changes)
    found = leaderboard(LeaderboardSettings(), study)
    (table,) = found.tables
    columns = [*RULES[2026].parts, "mean", "mean_with_aoa_0"]
    mine = dict(zip(columns, table.rows[0].cells[1:], strict=True))
    assert {part for part, cell in mine.items() if getattr(cell, "text", "").endswith("*")} == marked
    headings = [group.heading for group in table.groups]
    caveat = "this experiment; *: not measured on the official data, so not comparable with published rows"
    assert headings[0] == (caveat if marked else "this experiment")
    assert ("published" in headings) == published
    # The first two rows are ours.
    assert not any(getattr(cell, "text", cell).endswith("*") for row in table.rows[2:] for cell in row.cells)
    for notes in (found.notes, table.notes):
        assert any("no published rows are shown" in note for note in notes) != published


def test_scores_of_2025_are_without_published_rows_and_marks_of_2026(study: Study, tmp_path: Path) -> None:
    counts_file(tmp_path, ewok=99)
    (table,) = (found := leaderboard(LeaderboardSettings(edition=2025), study)).tables
    assert [group.heading for group in table.groups] == ["this experiment", ""]
    assert [column.heading for column in table.columns][7:] == [
        "reading",
        "WUG, adjectives",
        "WUG, past",
        "AoA",
        "mean",
        "with AoA 0",
    ]
    assert {row["rule"] for row in found.rows} == {"macro average, BabyLM 2025"}
    assert table.caption == "Leaderboard: macro average, BabyLM 2025"
    numbers = {(row["model"], row["part"]): row["points"] for row in found.rows}
    # The mean of six language tasks is the only half with scores.
    assert numbers["mine", "mean"] == pytest.approx((80 + 60 + 50 + 20 + 57 + 60) / 6 / 2, abs=1e-6)


def test_one_model_on_other_data_marks_a_part(experiment, repository: Path, tmp_path: Path) -> None:
    for name, pairs in (("sampled", 99), ("whole", 100)):
        run = experiment.add_model(name, 1, [{"step": 1, "tokens": 10, "loss": 3.0}])
        experiment.add_minimal_pairs(run, "babylm_2026_blimp", {"a": {"p": (60, pairs)}, "b": {"q": (120, 200)}})
    runs = tuple(SeededRun.from_seed(name, 1) for name in ("sampled", "whole"))
    files = {"babylm/leaderboard": repository / PUBLISHED, "babylm/row_counts": counts_file(tmp_path)}
    study = Study("demo", runs, tables={"measurements": experiment.collected()}, files=files)
    (table,) = leaderboard(LeaderboardSettings(), study).tables
    assert table.groups[0].heading.startswith("this experiment; *")
    # A model with one seed has no number of seeds.
    assert [row.cells[0] for row in table.rows[:2]] == ["sampled", "whole"]


def test_parts_are_official_where_all_rows_are_and_the_rules_are_those_of_2026() -> None:
    counts = [RowCount("full", "blimp", "a", 928), RowCount("full", "blimp", "b", 971)]
    counts += [RowCount("full", "reading", "reading", 1726), RowCount("full", "glue", "rte", 139)]

    def official(
        *rows: tuple[str, str, str, str, str, int], rules: str = "BabyLM 2026 (x)", main: bool = True
    ) -> dict[str, bool]:
        columns = ("kind", "suite", "task", "level", "metric", "items")
        frame = pl.DataFrame(rows, schema=columns, orient="row")
        return official_parts(frame.with_columns(main=main, settings=pl.lit(rules)), "s", "t", counts)

    def pairs(uid: str, items: int) -> tuple[str, str, str, str, str, int]:
        return ("minimal_pairs", "s_blimp", uid, "paradigm", "accuracy_percent", items)

    whole = pairs("a", 928), pairs("b", 971)
    assert official(*whole) == {"blimp": True}
    assert official(*whole, rules="BabyLM 2025 (x)") == {"blimp": False}
    assert official(pairs("a", 927), pairs("b", 971)) == official(pairs("a", 928)) == {"blimp": False}
    assert official(*whole, pairs("c", 5)) == {"blimp": False}
    # The counts are totals of the suites; one of the part's two suites may be missing.
    counts += [RowCount("full", "global_piqa_parallel", "", 3), RowCount("full", "global_piqa_nonparallel", "", 5)]
    parallel = ("minimal_pairs", "s_global_piqa_parallel", "a", "paradigm", "accuracy_percent", 3)
    other = ("minimal_pairs", "s_global_piqa_nonparallel", "a", "paradigm", "accuracy_percent", 4)
    assert (official(parallel), official(parallel, other)) == ({"global_piqa": True}, {"global_piqa": False})
    tuned = ("finetuning", "x", "t_rte", "task", "f1", 139)
    reading = ("reading", "reading", "reading", "average", "gain_percent", 1726)
    words = ("acquisition", "acquisition", "age_of_acquisition", "average", "correlation_percent", 40)
    assert official(tuned, reading, words) == {"glue": True, "reading": True, "acquisition": True}
    # A score of a model that was fine-tuned on another task is no part.
    assert official(tuned, main=False) == {}
    other = official((*tuned[:5], 138), (*reading[:5], 1725), words)
    assert other == {"glue": False, "reading": False, "acquisition": False}


def test_the_second_mean_of_a_model_counts_its_age_of_acquisition_as_0() -> None:
    parts = dict.fromkeys(RULES[2026].parts) | {"blimp": 90.0, "acquisition": -18.0}
    values = _model("mine", [parts], LeaderboardSettings()).values
    # Nine parts: (90 - 18) / 9 and 90 / 9.
    assert (values["mean"], values["mean_with_aoa_0"]) == (8, 10)


def test_an_interval_of_seeds_is_that_of_student() -> None:
    low, high = stats.t.interval(0.95, 2, loc=2, scale=stats.sem([1.0, 2.0, 3.0]))
    assert half_interval([1.0, 2.0, 3.0]) == pytest.approx((high - low) / 2)


def test_parts_of_2025_have_the_correlations_with_people() -> None:
    rows = [
        ("minimal_pairs", "babylm_2025_blimp", "paradigm_average", "average", "accuracy_percent", 70.0),
        ("minimal_pairs", "babylm_2025_blimp", "phenomenon_average", "average", "accuracy_percent", 90.0),
        ("minimal_pairs", "babylm_2025_wug_adjectives", "wug_adj", "phenomenon", "spearman_percent", 40.0),
        ("reading", "reading", "reading", "average", "gain_percent", 6.0),
        ("acquisition", "acquisition", "age_of_acquisition", "average", "correlation_percent", -20.0),
        ("finetuning", "babylm_2025", "babylm_2025_rte", "task", "accuracy_percent", 56.0),
    ]
    columns = ("kind", "suite", "task", "level", "metric", "value")
    frame = pl.DataFrame(rows, schema=columns, orient="row").with_columns(primary=pl.lit(True), main=pl.lit(True))
    # A further metric, and the score of a model that was fine-tuned on another task.
    further = [frame[-1:].with_columns(pl.lit(7.0).alias("value"), pl.lit(False).alias(n)) for n in ("primary", "main")]
    found = parts_of(pl.concat([frame, *further]), "babylm_2025", "babylm_2025", 2025)
    # GLUE has seven tasks, of which one was scored.
    known = {"blimp": 70.0, "wug_adjectives": 40.0, "reading": 6.0, "acquisition": -20.0, "glue": 8.0}
    assert {part: value for part, value in found.items() if value is not None} == known
    # The macro average is the mean of two halves: 78 over six language tasks, and 26 over four human-likeness tasks.
    assert RULES[2025].mean(found) == pytest.approx((78 / 6 + 26 / 4) / 2)
