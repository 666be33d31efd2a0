"""The figure of trainings that were kept away from the unigram distribution at their beginning."""

import json
from pathlib import Path
from typing import Any

import pytest
from figure_readback import assert_nothing_overlaps, legend
from matplotlib.axes import Axes

from hatchery.analysis.settings import FigureSettings
from hatchery.analysis.tidy_tables import MEASUREMENTS, write_rows
from hatchery.experiment.project import Project
from hatchery.experiment.seeded_run import SeededRun
from hatchery.rendering.drawing import NARROW_INCHES, figure_style
from hatchery.typed import build
from hatchery.views.figures.away_from_unigram import draw
from hatchery.workflow.jobs import Jobs

STARTS = {
    "zero": {"penalty": 0.0, "steps": 0},
    "weak_short": {"penalty": 0.01, "steps": 500},
    "weak_long": {"penalty": 0.01, "steps": 5000},
    "strong_long": {"penalty": 0.5, "steps": 5000},
}
BLEU = {"zero": 30.0, "weak_short": 28.0, "weak_long": 25.0, "strong_long": 11.0}


@pytest.fixture
def tables(tmp_path: Path) -> dict[str, Path]:
    """Two seeds, one above and one below the number of `BLEU`; chrF, and a run without a value, are no part of it."""
    rows: list[dict[str, Any]] = []
    for model, score in BLEU.items():
        for seed, value in ((0, score - 1), (1, score + 1), (2, None)):
            fixed = {"experiment": "demo", "model": model, "run": f"{model}-s{seed}", "seed": seed}
            fixed |= {"kind": "translation", "suite": "translation", "task": "test", "level": "split"}
            rows += [{**fixed, "metric": "bleu", "value": value}, {**fixed, "metric": "chrf", "value": 99.0}]
    path = tmp_path / "measurements.parquet"
    write_rows(path, MEASUREMENTS, rows)
    return {"measurements": path}


def settings_with(**style: Any) -> FigureSettings:
    runs = [vars(SeededRun.of(model, seed)) for model in STARTS for seed in (0, 1, 2)]
    return build(FigureSettings, {"experiment": "demo", "runs": runs, "style": style, "regularised": STARTS})


def lines_of(axes: Axes) -> list[list[tuple[float, float]]]:
    """The joined dots of every line, with places between ticks at the nearest tick."""
    found = [container.lines[0].get_xydata() for container in axes.containers]
    return [[(round(float(x)), float(y)) for x, y in line] for line in found]


def test_lines_join_what_has_the_same_length_or_the_same_strength(tables: dict[str, Path]) -> None:
    settings = settings_with()
    with figure_style(settings.style):
        figure = draw(settings, tables)
        by_penalty, by_steps = figure.axes
        assert lines_of(by_penalty) == [[(0, 28.0)], [(0, 25.0), (1, 11.0)]]
        assert lines_of(by_steps) == [[(0, 28.0), (1, 25.0)], [(1, 11.0)]]
        for axes in figure.axes:
            assert [line.get_ydata()[0] for line in axes.lines if line.get_linestyle() == "--"] == [30.0]
            # A standard error of 1 over two seeds that are 2 apart.
            (bars,) = axes.containers[0].lines[2]
            assert bars.get_segments()[0][:, 1].tolist() == [27.0, 29.0]
        assert [label.get_text() for label in by_penalty.get_xticklabels()] == ["0.01", "0.5"]
        assert legend(figure) == {"500 steps", "5,000 steps", "penalty 0.01", "penalty 0.5", "never"}
        assert_nothing_overlaps(figure)


def test_test_sets_of_several_experiments_are_kept_apart(tmp_path: Path) -> None:
    rows, runs = [], []
    for experiment, score in (("one", 30.0), ("two", 10.0)):
        model = f"{experiment}/weak_short"
        fixed = {"experiment": experiment, "model": model, "run": f"{model}-s0", "seed": 0, "kind": "translation"}
        rows.append(
            {**fixed, "suite": "translation", "task": "test", "level": "split", "metric": "bleu", "value": score}
        )
        runs.append(vars(SeededRun.of(model, 0)))
    write_rows(tmp_path / "measurements.parquet", MEASUREMENTS, rows)
    starts = {run["model"]: STARTS["weak_short"] for run in runs}
    settings = build(FigureSettings, {"experiment": "study", "runs": runs, "regularised": starts})
    figure = draw(settings, {"measurements": tmp_path / "measurements.parquet"})
    found = [(axes.get_title(loc="left"), lines_of(axes)) for axes in figure.axes[::2]]
    assert found == [("one, test", [[(0, 30.0)]]), ("two, test", [[(0, 10.0)]])]


def test_on_a_phone_the_panels_stand_below_each_other(tables: dict[str, Path]) -> None:
    settings = settings_with(width_inches=NARROW_INCHES)
    with figure_style(settings.style):
        figure = draw(settings, tables)
        assert [axes.get_subplotspec().rowspan.start for axes in figure.axes] == [0, 1]
        assert_nothing_overlaps(figure)


def test_starts_are_found_in_the_configuration_with_what_they_are_compared_with(repository: Path) -> None:
    project = Project(repository / "config")
    text = Jobs(project).settings("draw_figure", experiment="natural_bias_iwslt14_de_en", figure="away_from_unigram")
    settings = json.loads(text)
    starts = settings["regularised"]
    assert starts.pop("zero") == {"penalty": 0.0, "steps": 0}
    assert sorted((start["penalty"], start["steps"]) for start in starts.values()) == [
        (penalty, steps) for penalty in (0.01, 0.1, 0.5) for steps in (500, 1000, 5000)
    ]
    assert all(name.startswith("away_") for name in starts)
    assert {run["model"] for run in settings["runs"]} == {"zero", *starts}
    assert "regularised" not in json.loads(
        Jobs(project).settings("draw_figure", experiment="natural_bias_iwslt14_de_en", figure="translation_scores")
    )
