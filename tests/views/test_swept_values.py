"""The figure of sweeps and grids: swept values on the axis, means over seeds with a band, one line per other key."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from figure_readback import assert_nothing_overlaps
from matplotlib.axes import Axes
from matplotlib.transforms import Bbox
from measured_rows import frame

from hatchery.analysis.published_values import PublishedValue
from hatchery.analysis.read_tables import read_measurements
from hatchery.analysis.settings import FigureSettings
from hatchery.experiment.project import Project
from hatchery.experiment.seeded_run import SeededRun
from hatchery.rendering.drawing import NARROW_INCHES
from hatchery.rendering.style import Style
from hatchery.typed import build
from hatchery.views.figures.needs import SweptFigure, drawable
from hatchery.views.figures.swept_values import (
    PARAMETERS,
    SweptPanel,
    draw,
    draw_swept,
    main_values,
    published_values,
    swept_panels,
)
from hatchery.views.stages.draw_figure import figure_settings

RATES = {0.001: 20.0, 0.003: 15.0, 0.01: 30.0}
EXPERIMENT = """
corpus: demo
tokenizer: demo
pretraining:
  {steps: 4, batch_size: 2, sequence_length: 32, evaluation_interval_steps: 2, evaluation_sequences: 2}
runs:
  plain: {model: ltg_demo}
  swept:
    model: ltg_demo
    model_changes: {hidden_dropout_prob: {sweep: [0.0, 0.1]}}
    pretraining: {optimizer: {learning_rate: {sweep: [0.003, 0.001, 0.01]}}}
    seeds: [1, 2]
"""
PRINTED = {
    ("phenomenon_average", "accuracy_percent"): 80.0,
    ("paradigm_average", "accuracy_percent"): 70.0,
    ("paradigm_average", "best_temperature_accuracy_percent"): 75.0,
    ("phenomenon_average", "best_temperature_accuracy_percent"): 85.0,
    ("islands", "accuracy_percent"): 60.0,
}
SHARES = "objective: {task: hybrid, causal_share: {sweep: [0.5, 0.75, 1.0]}}"


@pytest.fixture
def settings(repository: Path, tmp_path: Path) -> SweptFigure:
    shutil.copytree(repository / "config", tmp_path / "config")
    (tmp_path / "config/experiments/rates.yaml").write_text(EXPERIMENT)
    project = Project(tmp_path / "config")
    assert "sweeps" in drawable(project, "rates")
    return build(SweptFigure, figure_settings(project, "rates", "swept_values"))


def tables_of(experiment: Any, settings: SweptFigure) -> dict[str, Path]:
    for run in settings.runs:
        values = settings.swept[run.model].values
        perplexity = RATES[float(values["learning_rate"])] * (1 + float(values["hidden_dropout_prob"])) + run.seed
        row = {"step": 1, "tokens": 10, "loss": 3.0, "development_loss": 3.0, "development_perplexity": perplexity}
        experiment.add_model(run.model, run.seed, [row])
    return experiment.tables()


def test_the_rate_is_the_axis_the_other_key_a_line_and_seeds_are_a_band(experiment: Any, settings: SweptFigure) -> None:
    assert {run.model.split("_")[0] for run in settings.runs} == {"swept"}, "what no sweep made has no value"
    figure = draw(settings, tables_of(experiment, settings))
    (axes,) = figure.axes
    assert axes.get_xlabel() == "learning_rate" and axes.get_xscale() == "log"
    assert [label.get_text() for label in axes.get_xticklabels()] == ["0.001", "0.003", "0.01"]
    # Each perplexity has its seed added, 1 or 2, so means are 1.5 higher.
    assert [list(line.get_ydata()) for line in axes.lines] == [
        pytest.approx([factor * value + 1.5 for value in RATES.values()]) for factor in (1.0, 1.1)
    ]
    band = axes.collections[0].get_paths()[0].get_extents()
    assert (band.y0, band.y1) == (pytest.approx(16.5 - 0.5**0.5), pytest.approx(31.5 + 0.5**0.5))
    names = [text.get_text().replace("\n", " ") for text in figure.legends[0].get_texts()]
    assert names == ["swept, hidden_dropout_prob 0", "swept, hidden_dropout_prob 0.1"]


def test_a_suite_has_its_average_over_phenomena_and_a_task_the_mean_of_its_first_metric(
    experiment: Any, settings: SweptFigure
) -> None:
    for number, run in enumerate(settings.runs):
        experiment.add_model(run.model, run.seed, [{"step": 1, "tokens": 10, "loss": 3.0}])
        phenomena = {"agreement": {"a": (90 - number, 100)}, "islands": {"b": (40, 100), "c": (50, 100)}}
        experiment.add_minimal_pairs(run.name, "blimp", phenomena)
        results = {1: ((0.4, 0.9), ""), 2: ((0.5 + number / 100, 0.8), "")}
        # The transferred set must not count as the task.
        transfer = {"hans": ("finetuning", ("accuracy",), {1: ((0.1,), ""), 2: ((0.1,), "")})}
        experiment.add_finetuning(run.name, "cola", ("mcc", "accuracy"), results, transfer=transfer)
    found = main_values(read_measurements(experiment.tables()["measurements"], settings.runs), settings.objectives)
    # The phenomena have 90 and 45; the average over paradigms would be 60.
    for title, mean in (
        ("blimp: accuracy (%)", lambda run: 67.5 - run / 2),
        ("finetuning: cola (%)", lambda run: 45 + run / 2),
    ):
        assert found.pop(title) == pytest.approx({run.name: mean(number) for number, run in enumerate(settings.runs)})
    assert not found
    translated = {"kind": "translation", "suite": "translation", "task": "test_a", "level": "split", "run": "m-s1"}
    rows = [translated | {"metric": metric, "value": value} for metric, value in (("bleu", 30.0), ("chrf", 50.0))]
    assert main_values(frame(rows), {}) == {"test a BLEU": {"m-s1": 30.0}}
    marks = {("m", "blimp", *key): PublishedValue(mean, None, "a paper", True, "") for key, mean in PRINTED.items()}
    assert published_values(marks) == {
        "blimp: accuracy (%)": {"m": 80.0},
        "blimp: accuracy at the best temperature (%)": {"m": 75.0},
    }


def test_no_band_and_no_bar_reaches_above_a_hundred_percent(settings: SweptFigure) -> None:
    for axis, drawn in (("rate", lambda axes: axes.collections[0].get_paths()[0].get_extents()), (PARAMETERS, bars_of)):
        panels = [
            SweptPanel(title, axis, {"swept": [(0.1, 90.0, 20.0), (0.2, 99.0, 2.0)]})
            for title in ("glue: average (%)", "test BLEU")
        ]
        percent, points = (drawn(axes) for axes in draw_swept(settings, panels).axes)
        assert (percent.y0, percent.y1) == (70, 100)
        assert (points.y0, points.y1) == (70, 110)


@pytest.mark.parametrize(("title", "factor"), [("glue: average (%)", 4), ("dev perplexity", 20)])
def test_an_axis_is_logarithmic_from_its_factor_on(settings: SweptFigure, title: str, factor: float) -> None:
    """Factor 4 is for the axis of swept values, factor 20 for the axis of perplexities."""
    scales = []
    for last in (factor, 0.99 * factor):
        points = [(1.0, 1.0, 0.0), (last, last, 0.0)]
        (axes,) = draw_swept(settings, [SweptPanel(title, "rate", {"swept": points})]).axes
        scales.append(axes.get_yscale() if factor == 20 else axes.get_xscale())
    assert scales == ["log", "linear"]


def test_every_swept_value_has_a_tick_if_there_are_few_and_a_value_of_zero_keeps_the_axis_linear(
    settings: SweptFigure,
) -> None:
    def drawn(axis: str, places: list[float], published: Any = ()) -> SweptPanel:
        return SweptPanel("glue (%)", axis, {"swept": [(place, 60.0, 0.0) for place in places]}, published=published)

    nine = [place / 8 for place in range(9)]
    panels = [drawn("dropout", [0.0, 0.1, 0.7], [(0.1, 61.0)]), drawn("dropout", nine), drawn(PARAMETERS, [1.1, 2.3])]
    figure = draw_swept(settings, panels)
    few, many, sizes = figure.axes
    assert few.get_xscale() == "linear" and list(few.get_xticks()) == [0.0, 0.1, 0.7]
    assert list(many.get_xticks()) != nine and list(sizes.get_xticks()) != [1.1, 2.3]
    # Only the first panel has a published value.
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["swept", "published mean"]


def bars_of(axes: Axes) -> Bbox:
    """Return the box around the ends of all error bars."""
    ends = np.vstack([path.vertices for path in axes.collections[0].get_paths()])
    return Bbox([ends.min(axis=0), ends.max(axis=0)])


@pytest.mark.parametrize("width", [7.0, NARROW_INCHES])
def test_nothing_overlaps_at_either_width(experiment: Any, settings: SweptFigure, width: float) -> None:
    tables = tables_of(experiment, settings)
    values = main_values(read_measurements(tables["measurements"], settings.runs), settings.objectives)
    panels = swept_panels(settings.runs, settings.swept, values, {})
    assert_nothing_overlaps(draw_swept(FigureSettings("rates", settings.runs, Style(width_inches=width)), panels))


@pytest.mark.parametrize("width", [7.0, NARROW_INCHES])
def test_perplexities_of_hidden_and_of_next_tokens_have_a_panel_each(
    experiment: Any, configuration: Path, width: float
) -> None:
    shares = EXPERIMENT.replace("optimizer: {learning_rate: {sweep: [0.003, 0.001, 0.01]}}", SHARES)
    (configuration / "experiments/shares.yaml").write_text(shares.replace("{sweep: [0.0, 0.1]}", "0.1"))
    settings = build(SweptFigure, figure_settings(Project(configuration), "shares", "swept_values"))
    assert sorted(settings.objectives.values()) == ["causal", "hybrid", "hybrid"]
    for run in settings.runs:
        row = {"step": 1, "tokens": 10, "loss": 3.0, "development_loss": 3.0, "development_perplexity": 5.0 + run.seed}
        experiment.add_model(run.model, run.seed, [row])
    figure = draw(replace(settings, style=Style(width_inches=width)), experiment.tables())
    panels = {axes.get_title(loc="left"): axes for axes in figure.axes}
    assert list(panels) == [f"development perplexity\nwhile training of {task} models" for task in ("hybrid", "causal")]
    hybrid, causal = ([list(line.get_xdata()) for line in axes.lines] for axes in panels.values())
    assert (hybrid, causal) == ([[0.5, 0.75]], [[1.0]])
    assert_nothing_overlaps(figure)


def test_models_of_a_grid_stand_at_their_parameters_and_sets_and_variants_are_told_apart(repository: Path) -> None:
    project = Project(repository / "config")
    settings = build(SweptFigure, figure_settings(project, "real_scaling", "swept_values"))
    sizes = {run.name: 1000.0 * place for place, run in enumerate(settings.runs, 1)}
    (panel,) = swept_panels(settings.runs, settings.swept, {"loss": dict.fromkeys(sizes, 2.0)}, sizes)
    assert panel.axis == "parameters"
    assert list(panel.lines) == ["small", "small untrained", "large", "large untrained"]
    assert [place for place, _, _ in panel.lines["small untrained"]] == [2000, 4000, 6000, 8000]


def test_values_that_are_words_stand_side_by_side() -> None:
    runs = [SeededRun.from_seed(name, 1) for name in ("lamb", "adamw")]
    swept = build(
        SweptFigure,
        {
            "experiment": "e",
            "runs": [],
            "swept": {name: {"line": "base", "values": {"optimizer.name": name}} for name in ("lamb", "adamw")},
        },
    ).swept
    (panel,) = swept_panels(runs, swept, {"accuracy": {"lamb-s1": 1.0, "adamw-s1": 2.0}}, {})
    assert panel.ticks == ["lamb", "adamw"] and panel.lines["base"] == [(0.0, 1.0, 0.0), (1.0, 2.0, 0.0)]
    # No line joins the dots; the dots of two models are side by side.
    both = replace(panel, lines={"base": panel.lines["base"], "large": [(0.0, 1.0, 0.2), (1.0, 2.0, 0.1)]})
    figure = draw_swept(FigureSettings("words", ()), [both])
    dots = [line for line in figure.axes[0].lines if len(line.get_xdata()) == 2]
    assert {line.get_linestyle() for line in [*dots, *figure.legends[0].get_lines()]} == {"None"}
    assert [line.get_xdata()[0] for line in dots] == pytest.approx([-0.06, 0.06])


def test_in_a_study_lines_of_a_sweep_begin_with_the_name_of_their_experiment(configuration: Path) -> None:
    (configuration / "experiments/rates.yaml").write_text(EXPERIMENT)
    (configuration / "studies/both.yaml").write_text("experiments: [rates, demo]\n")
    project = Project(configuration)
    swept: Any = figure_settings(project, "both", "swept_values")["swept"]
    assert {values["line"] for values in swept.values()} == {"rates/swept"}
    objectives = [figure_settings(project, name, "swept_values")["objectives"] for name in ("rates", "both")]
    assert objectives == [{}, {}], "all models of the sweep predict masked tokens"


def test_an_experiment_without_sweeps_has_no_such_figure(repository: Path) -> None:
    assert "sweeps" not in drawable(Project(repository / "config"), "demo")


def test_models_behind_masks_of_their_own_share_no_panel(experiment: Any, settings: SweptFigure) -> None:
    masks = {
        rate: {"kind": "subword", "mask_probability": share} for rate, share in zip(RATES, (0.1, 0.2, 0.4), strict=True)
    }
    for run in settings.runs:
        values = settings.swept[run.model].values
        row = {"step": 1, "tokens": 10, "loss": 3.0, "development_loss": 3.0, "development_perplexity": 20.0}
        experiment.add_model(run.model, run.seed, [row], objective=masks[float(values["learning_rate"])])
    panels = draw(settings, experiment.tables()).axes
    # Each masking has two models, which differ in their dropout.
    assert [len(axes.lines) for axes in panels] == [2, 2, 2]
    titles = [" ".join(axes.get_title(loc="left").split()) for axes in panels]
    # Panels have the order of the configuration.
    shares = [f"models of {share} % of subwords" for share in (20, 10, 40)]
    assert all(share in title for share, title in zip(shares, titles, strict=True))
    points = {run.model: run for run in settings.runs if settings.swept[run.model].values["hidden_dropout_prob"] == 0.0}
    few = replace(settings, runs=tuple(run for run in settings.runs if run.model in points))
    (alone,) = draw(few, experiment.tables()).axes
    assert not alone.lines and "no two models are comparable" in alone.get_title(loc="left")
