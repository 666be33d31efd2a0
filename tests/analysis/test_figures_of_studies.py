"""The figures of a study whose experiments were evaluated on different things: each draws what there is."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest

from hatchery.analysis.settings import FigureSettings
from hatchery.analysis.stages.collect_measurements import collect_measurements
from hatchery.analysis.stages.join_experiments import join_experiments
from hatchery.analysis.task_averages import MSGS_AMBIGUOUS_TASKS
from hatchery.analysis.tidy_tables import TABLES
from hatchery.experiment.project import Project
from hatchery.rendering.style import model_styles
from hatchery.runner import run_stage
from hatchery.views.figures.draw import remarks
from hatchery.views.figures.registry import declared_figures, tables_of
from hatchery.views.stages.draw_figure import draw_figure
from hatchery.workflow.jobs import Jobs

FIGURES = [name for name, declared in declared_figures().items() if tables_of(declared)]
EVALUATIONS = ("minimal_pairs", "finetuning", "probing", "layer_weights", "other_tasks", "nothing")
PROBE = "seed,learning_rate,span,layer,weight\n12,0.006,0,1,0.4\n12,0.006,0,2,0.6\n"
METRICS = [{"step": 1, "tokens": 10, "loss": 3.0}, {"step": 2, "tokens": 20, "loss": 2.0, "development_loss": 2.5}]


def evaluated(experiment: Any, what: str) -> None:
    """One model, with one kind of numbers alone."""
    alphas = {(1, 0): 1.0, (2, 0): 0.25, (2, 1): 0.75} if what == "layer_weights" else None
    run = experiment.add_model("same", 1, METRICS, alphas=alphas)
    if what == "minimal_pairs":
        experiment.add_minimal_pairs(run, "blimp", {"agreement": {"gender": (80, 100)}, "ellipsis": {"n": (60, 100)}})
    elif what == "finetuning":
        experiment.add_finetuning(run, "cola", ("accuracy", "mcc"), {12: ((0.7, 0.1), ""), 13: ((0.72, 0.2), "")})
        for task in MSGS_AMBIGUOUS_TASKS[:2]:
            experiment.add_finetuning(run, task, ("mcc",), {12: ((0.5,), "")}, suite="msgs")
    elif what == "other_tasks":
        experiment.add_finetuning(run, "rte", ("accuracy",), {12: ((None,), "nan")})
        experiment.add_finetuning(run, MSGS_AMBIGUOUS_TASKS[-1], ("mcc",), {12: ((None,), "nan")}, suite="msgs")
        experiment.add_minimal_pairs(run, "another", {"binding": {"c": (30, 40)}})
    elif what == "probing":
        experiment.add_finetuning(run, "pos", ("micro_f1",), {12: ((0.5,), "")}, suite="probing", probe=PROBE)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory, two_models_once: Any) -> dict[str, Path]:
    """The tables of a study of an experiment for each kind of evaluation."""
    folder, made = tmp_path_factory.mktemp("parts"), {}
    for what in EVALUATIONS:
        experiment = type(two_models_once)(folder / what)
        evaluated(experiment, what)
        made[what] = folder / what / "measurements.parquet"
        settings = experiment.collect_settings() | {"experiment": what}
        run_stage(collect_measurements, settings, made[what], **experiment.inputs)
    parts = {table.name: {name: table.beside(path) for name, path in made.items()} for table in TABLES}
    settings = {"stage": "join_experiments", "stage_version": 1, "experiment": "all", "experiments": EVALUATIONS}
    run_stage(join_experiments, settings, folder / "all/measurements.parquet", **parts)
    return {table.name: folder / f"all/{table.name}.parquet" for table in TABLES}


def drawn(figure: str, models: tuple[str, ...], tables: dict[str, Path], output: Path) -> str:
    runs = [{"name": f"{model}/same-s1", "model": f"{model}/same", "seed": 1} for model in models]
    settings = {"stage": "draw_figure", "stage_version": 1, "figure": figure, "version": 1, "experiment": "all"}
    given = {name: tables[name] for name in tables_of(declared_figures()[figure])}
    run_stage(draw_figure, settings | {"runs": runs, "style": {}}, output, tables=given)
    return output.read_text(encoding="utf-8")


@pytest.mark.parametrize("figure", FIGURES)
def test_a_model_without_such_numbers_is_left_out_and_nothing_raises(
    figure: str, tables: dict[str, Path], tmp_path: Path
) -> None:
    text = drawn(figure, EVALUATIONS, tables, tmp_path / "figure.svg")
    assert "NaN" not in text and not re.search(r'="[^"]*\bnan\b', text)


@pytest.mark.parametrize(("figure", "models"), [("phenomena", 5), ("bias_violins", 4), ("feature_dots", 4)])
def test_a_panel_says_which_models_have_no_numbers_in_it(
    figure: str, models: int, tables: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "hatchery.rendering.drawing.figure_style", lambda style: mpl.rc_context({"svg.fonttype": "none"})
    )
    text = drawn(figure, EVALUATIONS, tables, tmp_path / "figure.svg")
    if figure == "feature_dots":
        assert text.count(">not run<") >= models
    else:
        assert f"not evaluated: {models} models" in text


def test_models_of_experiments_that_were_not_evaluated_so_are_not_among_those_that_are_drawn(
    repository: Path, tmp_path: Path
) -> None:
    shutil.copytree(repository / "config", tmp_path / "config")
    study = "experiments: [reduced_vocabulary_constrained, demo]\n"
    (tmp_path / "config/studies/both.yaml").write_text(study, encoding="utf-8")
    project = Project(tmp_path / "config")
    pairs = json.loads(Jobs(project).settings("draw_figure", experiment="both", figure="phenomena"))
    # Otherwise its 138 models would be the first, and there would be nothing to draw.
    assert {run["model"].partition("/")[0] for run in pairs["runs"]} == {"demo"}
    assert pairs["without"] == ["reduced_vocabulary_constrained"] and "left_out" not in pairs
    # They have the colours that they would have among all.
    assert len(pairs["all_models"]) == 138 + 3 and pairs["all_models"][-3:] == [run["model"] for run in pairs["runs"]]
    settings = FigureSettings("both", (), all_models=("a", "b", "c"))
    assert settings.looks(["c"])["c"] == model_styles(["a", "b", "c"], settings.style)["c"]
    curves = json.loads(Jobs(project).settings("draw_figure", experiment="both", figure="learning_curves"))
    assert curves["left_out"] > 100 and "without" not in curves
    assert list(remarks(FigureSettings("both", (), without=("a", "b")))) == ["not evaluated in this way: a, b"]


def test_many_models_of_a_grid_are_told_apart_by_their_sets(
    repository: Path, tables: dict[str, Path], tmp_path: Path
) -> None:
    project = Project(repository / "config")
    made = json.loads(Jobs(project).settings("draw_figure", experiment="reduced_vocabulary", figure="learning_curves"))
    assert len(made["runs"]) == len(made["sets"]) == 194 and "left_out" not in made
    assert set(made["sets"].values()) == {"set_1", "set_2", "set_3", "larger", "unconstrained", "checkpoints"}
    page = json.loads(Jobs(project).settings("write_page", experiment="reduced_vocabulary"))
    assert page["sets"] == made["sets"]
    few = json.loads(Jobs(project).settings("draw_figure", experiment="demo", figure="learning_curves"))
    assert "sets" not in few
    sets = {f"{what}/same": "odd" if place % 2 else "even" for place, what in enumerate(EVALUATIONS)}
    runs = [{"name": f"{model}-s1", "model": model, "seed": 1} for model in sets]
    settings = {"stage": "draw_figure", "stage_version": 1, "figure": "learning_curves", "version": 1}
    given = {name: tables[name] for name in ("curves", "runs")}
    run_stage(
        draw_figure, settings | {"experiment": "all", "runs": runs, "sets": sets}, tmp_path / "figure.svg", tables=given
    )
    drawing = (tmp_path / "figure.svg").read_text(encoding="utf-8")
    assert set(re.findall(r"<!-- (\w+) \(\d+ models?\) -->", drawing)) == {"odd", "even"}  # the legend
