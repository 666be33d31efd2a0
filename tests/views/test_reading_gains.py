"""The figure of gains of reading times against perplexity and against words seen."""

from pathlib import Path

import pytest
from figure_readback import assert_nothing_overlaps

from hatchery.analysis.read_tables import read_measurements
from hatchery.analysis.tidy_tables import MEASUREMENTS, RUNS, write_rows
from hatchery.evaluation.evaluation import measured
from hatchery.evaluation.reading_times.measurements import LOG_LIKELIHOOD, PER_WORD, PERPLEXITY_OF_WORDS, SUITE
from hatchery.experiment.seeded_run import SeededRun
from hatchery.rendering.drawing import NARROW_INCHES
from hatchery.rendering.style import Style
from hatchery.views.figures.needs import MilestonesFigure
from hatchery.views.figures.reading_gains import Gains, draw, rows_of

TRAININGS = tuple(SeededRun.from_seed("plain", seed) for seed in (1, 2))
OTHERS = SeededRun.of_baseline("gpt2")
MARKS = tuple(run.after_words(words) for run in TRAININGS for words in (1_000_000, 10_000_000))
WORDS = {"plain-s1": 100e6, "plain-s2": 100e6} | {run.name: float(run.words) for run in MARKS}


@pytest.fixture
def tables(tmp_path: Path) -> dict[str, Path]:
    runs, rows = [], []
    for run in (*TRAININGS, *MARKS, OTHERS):
        place = {"experiment": "mini", "model": run.model, "run": run.name, "seed": run.seed, "manifest": "ab"}
        if run is not OTHERS:
            runs.append(place | {"label": run.model, "words": int(WORDS[run.name]), "initial": ""})
        words = WORDS.get(run.name, 1e9)
        shared = {"sampling_deviation": 1.5}
        for task, factor in (("times/first", 1), ("times/total", -1)):
            gain = factor * (words / 1e7 + (run.seed or 0))
            found = (
                measured(SUITE, task, "task", PER_WORD, gain, **shared),
                measured(SUITE, task, "task", LOG_LIKELIHOOD, 99.0, **shared),
            )
            rows += [place | {"kind": "reading_times"} | one for one in found]
        own = measured(SUITE, "times", "task", PERPLEXITY_OF_WORDS, 1e10 / words + 10 * (run.seed or 0))
        rows.append(place | {"kind": "reading_times"} | own)
    made = {"measurements": tmp_path / "measurements.parquet", "runs": tmp_path / "runs.parquet"}
    write_rows(made["measurements"], MEASUREMENTS, rows)
    write_rows(made["runs"], RUNS, runs)
    return made


@pytest.mark.parametrize("width", [7.0, NARROW_INCHES])
def test_a_row_has_the_gain_over_perplexity_and_over_words_seen(tables: dict[str, Path], width: float) -> None:
    settings = MilestonesFigure("mini", (*TRAININGS, OTHERS), milestones=MARKS, style=Style(width_inches=width))
    figure = draw(settings, tables)
    panels = figure.axes
    titles = [axes.get_title(loc="left").replace("\n", " ") for axes in panels]
    assert titles == ["times/first", "times/first", "times/total", "times/total"]
    assert [axes.get_xlabel() for axes in panels] == ["perplexity per word", "words seen"] * 2
    for axes, factor in zip(panels[::2], (1, -1), strict=True):
        plain, others, _ = axes.lines
        # Means over two seeds: 1e10 / words + 15, in the order of the largest number of words first.
        assert list(plain.get_xdata()) == pytest.approx([115.0, 1015.0, 10015.0])
        assert list(plain.get_ydata()) == pytest.approx([factor * value for value in (11.5, 2.5, 1.6)])
        assert list(others.get_xdata()) == pytest.approx([10.0]) and list(others.get_ydata()) == [factor * 100.0]
    # The axis of words is logarithmic, so a model that has seen no word has no point.
    measured_gains = read_measurements(tables["measurements"], TRAININGS, kind="reading_times")
    untrained = rows_of(TRAININGS, dict.fromkeys(("plain-s1", "plain-s2"), 0), measured_gains)
    assert [len(untrained["times/first"].points_of("plain", axis)) for axis in (0, 1)] == [1, 0]
    for axes in panels[1::2]:
        plain, zero = axes.lines
        assert list(plain.get_xdata()) == [1e6, 1e7, 1e8], "nobody knows the words of a model of others"
        assert list(zero.get_ydata()) == [0, 0] and axes.get_xscale() == "log"
    assert_nothing_overlaps(figure)


def test_the_band_of_one_seed_is_the_interval_over_readers(tables: dict[str, Path]) -> None:
    marks = [mark for mark in MARKS if mark.seed == 1]
    figure = draw(MilestonesFigure("mini", TRAININGS[:1], milestones=marks), tables)
    (band,) = figure.axes[1].collections
    at_the_end = [y for x, y in band.get_paths()[0].vertices if x == 1e8]
    assert (min(at_the_end), max(at_the_end)) == pytest.approx((11 - 1.96 * 1.5, 11 + 1.96 * 1.5))


def test_a_milestone_with_an_unknown_place_of_one_seed_has_no_point() -> None:
    gains = Gains({"plain": {"": [(30.0, 1e6, 2.0, None), (None, 2e6, 4.0, None)]}})
    assert gains.points_of("plain", 0) == []
    # The whisker is the sample standard deviation over the seeds.
    assert gains.points_of("plain", 1) == [(1.5e6, 3.0, pytest.approx(2**0.5))]
