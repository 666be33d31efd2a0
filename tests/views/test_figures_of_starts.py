"""Figures of the start of training: lines over steps, probability by frequency, and unigram regularisation."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from figure_readback import assert_nothing_overlaps, legend, row_names
from matplotlib.axes import Axes

from hatchery.analysis.settings import FigureSettings
from hatchery.analysis.summary import SUMMARISED_LEVELS
from hatchery.analysis.tidy_tables import CURVES, MEASUREMENTS, write_rows
from hatchery.artifacts.manifests import read_manifest, stage_run
from hatchery.evaluation.evaluation import Evaluated
from hatchery.evaluation.perplexity.measurements import perplexity_rows
from hatchery.experiment.project import Project
from hatchery.experiment.seeded_run import SeededRun
from hatchery.rendering.drawing import NARROW_INCHES, figure_style
from hatchery.typed import build
from hatchery.views.figures import start_scores
from hatchery.views.figures.away_from_unigram import draw
from hatchery.views.figures.marks import Panel, draw_steps, points_by_model
from hatchery.views.figures.needs import RegularisedFigure
from hatchery.views.figures.token_frequency import points
from hatchery.workflow.jobs import Jobs


def test_a_panel_of_starts_names_models_within_their_experiment_and_spans_half_a_point(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fixed = {"task": "test", "metric": "bleu", "standard_error": ""}
    rows = [fixed | {"model": model, "mean": mean} for model, mean in (("one/zero", "30.0"), ("one/unigram", "30.1"))]
    rows += [rows[0] | {"metric": "alc_bleu", "task": "first_9_steps", "mean": "20"}]
    monkeypatch.setattr(start_scores, "numbers_of", lambda tables, name: {"entry": rows})
    runs = (SeededRun("one/zero-s1", "one/zero", 1, "one/bias 0"), SeededRun("one/unigram-s1", "one/unigram", 1))
    figure = start_scores.draw(FigureSettings("demo", runs), {})
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    expected = [f"one\n{task}, {metric}" for task in ("test", "area, first 9 steps") for metric in ("BLEU", "chrF")]
    assert titles == expected
    bleu = figure.axes[0]
    assert row_names(bleu)[::-1] == ["bias 0", "unigram"]
    low, high = bleu.get_xlim()
    assert (high - low, (low + high) / 2) == pytest.approx((0.5, 30.05))


def test_a_point_is_the_mean_of_the_seeds_with_its_standard_error() -> None:
    rows = [("a", 4, 1.0), ("a", 0, 3.0), ("a", 4, 2.0), ("a", 4, 6.0), ("b", 0, None), ("a", 2, None)]
    points = points_by_model(rows)
    assert list(points) == ["a"]
    assert points["a"][0] == (0, 3.0, 0.0)
    step, mean, error = points["a"][1]
    # The standard deviation of 1, 2 and 6 is sqrt(7).
    assert (step, mean, error) == (4, 3.0, pytest.approx((7 / 3) ** 0.5))


def test_the_axis_says_that_it_is_logarithmic(tmp_path: Path) -> None:
    path = tmp_path / "curves.parquet"
    write_rows(path, CURVES, [])
    settings = FigureSettings("demo", (SeededRun("plain-s1", "plain", 1),))
    (axes,) = draw_steps(settings, {"curves": path}, [Panel("loss", "Loss")]).axes
    assert (axes.get_xscale(), axes.get_xlabel()) == ("symlog", "optimiser steps (logarithmic)")


PERPLEXITY = (
    "split,sequences,labelled_tokens,loss_nats,perplexity,accuracy,pseudo_perplexity\ndev,5,50,1.0,2.718,0.5,\n"
)
FREQUENCY = """split,lowest,tokens,metric,value,standard_error
dev,,50,frequency_slope,0.8,0.01
dev,-7.5,50,log_frequency_nats,-7.2,0.02
dev,-7.5,50,log_probability_nats,-6.5,0.1
"""


def test_bins_and_slopes_are_measurements_and_slopes_alone_are_summarised(tmp_path: Path) -> None:
    with stage_run(tmp_path / "manifest.json", {"stage": "measure_perplexity"}) as run:
        for name, text in (("perplexity.csv", PERPLEXITY), ("frequency.csv", FREQUENCY)):
            (tmp_path / name).write_text(text)
            run.add_output(tmp_path / name)
    found = perplexity_rows(Evaluated(made := read_manifest(tmp_path / "manifest.json"), made))
    rows = {(row["task"], row["metric"]): SimpleNamespace(**row) for row in found}
    slope, mean = rows["dev", "frequency_slope"], rows["dev_from_-7.5", "log_probability_nats"]
    assert (slope.value, slope.sampling_deviation, slope.items) == (0.8, 0.01, 50)
    assert (mean.value, mean.sampling_deviation, mean.level) == (-6.5, 0.1, "bin")
    assert slope.level in SUMMARISED_LEVELS and mean.level not in SUMMARISED_LEVELS


def test_a_point_is_the_mean_over_seeds_and_a_bin_of_few_tokens_has_none() -> None:
    def of_bin(model: str, task: str, x: float, values: tuple[float, float], tokens: int = 20) -> list[tuple]:
        metrics = ("log_frequency_nats", "log_probability_nats", "log_probability_without_bias_nats")
        return [(model, task, metric, value, tokens, 0.5) for metric, value in zip(metrics, (x, *values), strict=True)]

    rows = [
        *of_bin("zero", "dev_from_-3", -2.5, (-1.0, -2.0)),
        *of_bin("zero", "dev_from_-12", -11.5, (-9.0, -8.0)),
        *of_bin("zero", "dev_from_-12", -11.5, (-7.0, -4.0)),
        *of_bin("zero", "dev_from_-13", -12.5, (-9.0, -8.0), tokens=19),
        *of_bin("unigram", "test_from_-3", -2.5, (-1.0, -5.0)),
    ]
    found = points(rows)
    # The standard error is over seeds; with one seed, over tokens.
    assert found["dev", "log_probability_nats", "zero"] == [
        (-11.5, -8.0, pytest.approx(1.0)),
        (-2.5, -1.0, 0.5),
    ]
    assert found["dev", "log_probability_without_bias_nats", "zero"][0] == (-11.5, -6.0, pytest.approx(2.0))
    assert found["test", "log_probability_without_bias_nats", "unigram"] == [(-2.5, -5.0, 0.5)]
    assert len(found) == 4


STARTS = {
    "zero": {"penalty": 0.0, "steps": 0},
    "weak_short": {"penalty": 0.01, "steps": 500},
    "weak_long": {"penalty": 0.01, "steps": 5000},
    "strong_long": {"penalty": 0.5, "steps": 5000},
}
BLEU = {"zero": 30.0, "weak_short": 28.0, "weak_long": 25.0, "strong_long": 11.0}


@pytest.fixture
def tables(tmp_path: Path) -> dict[str, Path]:
    """Two seeds, one point below and above the score in `BLEU`; chrF and the run without a value do not count."""
    rows: list[dict[str, Any]] = []
    for model, score in BLEU.items():
        for seed, value in ((0, score - 1), (1, score + 1), (2, None)):
            fixed = {"experiment": "demo", "model": model, "run": f"{model}-s{seed}", "seed": seed}
            fixed |= {"kind": "translation", "suite": "translation", "task": "test", "level": "split"}
            rows += [{**fixed, "metric": "bleu", "value": value}, {**fixed, "metric": "chrf", "value": 99.0}]
    path = tmp_path / "measurements.parquet"
    write_rows(path, MEASUREMENTS, rows)
    return {"measurements": path}


def settings_with(**style: Any) -> RegularisedFigure:
    runs = [vars(SeededRun.from_seed(model, seed)) for model in STARTS for seed in (0, 1, 2)]
    return build(RegularisedFigure, {"experiment": "demo", "runs": runs, "style": style, "regularised": STARTS})


def lines_of(axes: Axes) -> list[list[tuple[float, float]]]:
    """Return the dots of every line; positions between ticks are rounded to the nearest tick."""
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
            # Two seeds that differ by 2 have a standard error of 1.
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
        runs.append(vars(SeededRun.from_seed(model, 0)))
    write_rows(tmp_path / "measurements.parquet", MEASUREMENTS, rows)
    starts = {run["model"]: STARTS["weak_short"] for run in runs}
    settings = build(RegularisedFigure, {"experiment": "study", "runs": runs, "regularised": starts})
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
