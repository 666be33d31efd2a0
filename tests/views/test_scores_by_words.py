"""The figure of scores of models from within a training run, against the number of words seen."""

from pathlib import Path

import polars as pl
import pytest
from figure_readback import assert_nothing_overlaps

from hatchery.analysis.tidy_tables import MEASUREMENTS, RUNS, read_frame, write_rows
from hatchery.evaluation.evaluation import measured
from hatchery.evaluation.minimal_pairs.measurements import ACCURACY, PAIR_AVERAGE, PARADIGM_AVERAGE
from hatchery.experiment.seeded_run import SeededRun
from hatchery.rendering.drawing import NARROW_INCHES
from hatchery.rendering.style import Style
from hatchery.views.figures.needs import MilestonesFigure
from hatchery.views.figures.scores_by_words import draw, panels_of

TRAININGS = tuple(SeededRun.from_seed("plain", seed) for seed in (1, 2))
MARKS = tuple(run.after_words(words) for run in TRAININGS for words in (1_000_000, 10_000_000))
# Words seen by run; scores of minimal pairs are 50 + seed * words / 1e7.
WORDS = {"plain-s1": 100e6, "plain-s2": 100e6} | {run.name: float(run.words) for run in MARKS}
# A run passes a mark within a step, so seeds have seen different numbers of words.
WORDS[MARKS[2].name] = 1_200_000.0


@pytest.fixture
def tables(tmp_path: Path) -> dict[str, Path]:
    runs, rows = [], []
    for run in (*TRAININGS, *MARKS):
        place = {"experiment": "mini", "model": run.model, "run": run.name, "seed": run.seed, "manifest": "ab"}
        runs.append(place | {"label": run.model, "words": int(WORDS[run.name]), "initial": ""})
        value = 50 + run.seed * WORDS[run.name] / 1e7
        shared = {"blind_guess": 50.0, "sampling_deviation": 2.0}
        for suite in ("ewok", "comps"):
            rows.append(
                place
                | {"kind": "minimal_pairs"}
                | measured(suite, PARADIGM_AVERAGE, "average", ACCURACY, value, **shared)
            )
            rows.append(place | {"kind": "minimal_pairs"} | measured(suite, "a", "paradigm", ACCURACY, 0.0, **shared))
        if not run.milestone_of:
            rows.append(place | {"kind": "finetuning"} | measured("glue", "rte", "task", "accuracy_percent", 60.0))
    made = {"measurements": tmp_path / "measurements.parquet", "runs": tmp_path / "runs.parquet"}
    write_rows(made["measurements"], MEASUREMENTS, rows)
    write_rows(made["runs"], RUNS, runs)
    return made


@pytest.mark.parametrize("width", [7.0, NARROW_INCHES])
def test_a_line_goes_over_all_models_of_a_training_to_the_finished_one(tables: dict[str, Path], width: float) -> None:
    settings = MilestonesFigure("mini", TRAININGS, milestones=MARKS, style=Style(width_inches=width))
    figure = draw(settings, tables)
    panels = [axes for axes in figure.axes if axes.get_visible()]
    assert [axes.get_title(loc="left").replace("\n", " ") for axes in panels] == [
        "ewok, accuracy in percent",
        "comps, accuracy in percent",
    ]
    for axes in panels:
        line, chance = axes.lines
        assert list(line.get_xdata()) == [1.1e6, 1e7, 1e8]
        assert list(line.get_ydata()) == pytest.approx([(50.1 + 50.24) / 2, 51.5, 65.0])
        assert list(chance.get_ydata()) == [50.0, 50.0] and axes.get_xscale() == "log"
        assert [text.get_text() for text in axes.texts] == ["chance"]
    assert_nothing_overlaps(figure)


def test_an_axis_of_words_that_are_not_far_apart_is_linear(tables: dict[str, Path]) -> None:
    marks = [mark for mark in MARKS if mark.words == 10_000_000]
    for words, scale in ((WORDS["plain-s1"], "linear"), (199e6, "linear"), (200e6, "log")):
        rows = read_frame(tables["runs"], RUNS)
        finished = pl.col("run").is_in([run.name for run in TRAININGS])
        changed = rows.with_columns(words=pl.when(finished).then(int(words)).otherwise("words"))
        write_rows(tables["runs"], RUNS, changed.to_dicts())
        figure = draw(MilestonesFigure("mini", TRAININGS, milestones=marks), tables)
        assert [axes.get_xscale() for axes in figure.axes if axes.lines] == [scale] * 2
    # Zero words do not count: the other numbers of words are 10 and 100 million.
    counts = {run.name: int(WORDS[run.name]) * (WORDS[run.name] >= 1e7) for run in (*TRAININGS, *MARKS)}
    rows = [row | {"words": counts[row["run"]]} for row in read_frame(tables["runs"], RUNS).to_dicts()]
    write_rows(tables["runs"], RUNS, rows)
    figure = draw(MilestonesFigure("mini", TRAININGS, milestones=MARKS), tables)
    assert [axes.get_xscale() for axes in figure.axes if axes.lines] == ["linear"] * 2


def test_a_model_that_has_seen_no_word_has_a_point_and_one_of_unknown_words_has_none(tables: dict[str, Path]) -> None:
    words = {TRAININGS[0].name: 100, MARKS[0].name: 0, MARKS[1].name: None}
    runs = (TRAININGS[0], *MARKS[:2])
    found = panels_of(
        runs, words, read_frame(tables["measurements"], MEASUREMENTS).filter(pl.col("run").is_in(list(words)))
    )
    assert [[x for x, _, _ in lines.points_of("plain")] for lines in found.values()] == [[0, 100]] * 2


def test_scores_that_do_not_compare_have_panels_of_their_own_unless_they_are_not_drawn(tables: dict[str, Path]) -> None:
    """The seeds have different items of COMPS. `other`, which has other items, has no count of words."""
    rows = read_frame(tables["measurements"], MEASUREMENTS).with_columns(
        basis=pl.when(suite="comps").then(pl.format("items: {}", "seed")).otherwise(pl.lit("items: 7"))
    )
    other = rows.filter(run="plain-s1").with_columns(run=pl.lit("other"), basis=pl.lit("items: 9"))
    runs = (*TRAININGS, *MARKS, SeededRun("other", "other", 1))
    found = panels_of(runs, {name: int(words) for name, words in WORDS.items()}, pl.concat([rows, other]))
    assert {title: sum(map(len, lines.points["plain"].values())) for title, lines in found.items()} == {
        "ewok, accuracy in percent": 6,
        "comps, accuracy in percent, items 1": 3,
        "comps, accuracy in percent, items 2": 3,
    }


def test_a_suite_has_its_mean_over_pairs_if_there_is_one_and_a_task_its_own_first_metric(
    tables: dict[str, Path],
) -> None:
    rows = read_frame(tables["measurements"], MEASUREMENTS)
    ewok = rows.filter(suite="ewok", task=PARADIGM_AVERAGE)
    by_pair = ewok.with_columns(task=pl.lit(PAIR_AVERAGE), value=pl.lit(70.0))
    rte = ewok.with_columns(
        kind=pl.lit("finetuning"), suite=pl.lit("glue"), task=pl.lit("rte"), level=pl.lit("task"), value=pl.lit(60.0)
    )
    second = rte.with_columns(metric=pl.lit("f1_percent"), primary=False)
    transferred = rte.with_columns(task=pl.lit("hans"), main=False)
    found = panels_of(
        (*TRAININGS, *MARKS),
        {name: int(words) for name, words in WORDS.items()},
        pl.concat([rows.filter(suite="ewok"), by_pair, rte, second, transferred]),
    )
    values = {
        title: {value for seeds in lines.points["plain"].values() for _, value, _ in seeds}
        for title, lines in found.items()
    }
    assert values == {"ewok, accuracy in percent": {70.0}, "glue rte, accuracy in percent": {60.0}}


@pytest.mark.parametrize(
    ("seeds", "low", "high"),
    # For one seed, 60 +- 1.96 x 2.0; for two seeds, 65 +- the sample standard deviation of 60 and 70.
    [(1, 56.08, 63.92), (2, 65 - 50**0.5, 65 + 50**0.5)],
)
def test_the_band_is_over_items_with_one_seed_and_over_seeds_with_several(
    tables: dict[str, Path], seeds: int, low: float, high: float
) -> None:
    runs = {"runs": TRAININGS[:seeds], "milestones": [mark for mark in MARKS if mark.seed <= seeds]}
    figure = draw(MilestonesFigure("mini", **runs), tables)
    (band,) = figure.axes[0].collections
    at_the_end = [y for x, y in band.get_paths()[0].vertices if x == 1e8]
    assert (min(at_the_end), max(at_the_end)) == pytest.approx((low, high))


def test_no_band_of_an_accuracy_reaches_above_a_hundred_percent(tables: dict[str, Path]) -> None:
    rows = read_frame(tables["measurements"], MEASUREMENTS).with_columns(value=pl.lit(99.0))
    write_rows(tables["measurements"], MEASUREMENTS, rows.to_dicts())
    marks = [mark for mark in MARKS if mark.seed == 1]
    (band,) = draw(MilestonesFigure("mini", TRAININGS[:1], milestones=marks), tables).axes[0].collections
    box = band.get_paths()[0].get_extents()
    # 99 - 1.96 x 2.0, and the limit instead of 99 + 1.96 x 2.0.
    assert (box.y0, box.y1) == pytest.approx((95.08, 100.0))
