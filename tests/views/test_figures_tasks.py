"""The figure of the tasks' scores, and the published marks on the bars of the phenomena."""

import statistics
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from figure_readback import PRINTED, ROWS, STRICT, assert_nothing_overlaps, dots, legend, published, row_names, typed
from matplotlib.axes import Axes
from matplotlib.container import ErrorbarContainer

from hatchery.analysis.aggregates import Aggregate
from hatchery.analysis.read_tables import read_measurements
from hatchery.analysis.settings import FigureSettings
from hatchery.analysis.task_averages import BABYLM_GLUE_TASKS, PARADIGMS_OF_PHENOMENON
from hatchery.experiment.project import Project
from hatchery.rendering.drawing import NARROW_INCHES, figure_style
from hatchery.rendering.style import MARKERS
from hatchery.settings.fields import ABSENT
from hatchery.typed import build, stage_body
from hatchery.views.figures import task_scores
from hatchery.views.figures.marks import comparable_values
from hatchery.views.figures.phenomena import draw_phenomena, suite_bars
from hatchery.views.stages.draw_figure import figure_settings

SEEDS = (12, 13, 14)


@pytest.fixture
def glue(experiment: Any) -> Any:
    """Two models on eleven tasks. On WSC, one run of `ltg` predicts one class; no run of `elc` has a value. The second
    metric of MRPC and QQP is an accuracy of 30 %, which the figure does not show.
    """
    for index, model in enumerate(ROWS):
        cell = experiment.add_model(model, 42, [])
        for place, task in enumerate(BABYLM_GLUE_TASKS):
            has_f1 = task in ("babylm_mrpc", "babylm_qqp")
            metrics, second = (("f1", "accuracy"), (0.3,)) if has_f1 else (("accuracy",), ())
            base = 0.6 + 0.02 * place + 0.05 * index
            results: dict[Any, Any] = {seed: ((base + 0.01 * (seed - 13), *second), "") for seed in SEEDS}
            if task == "babylm_wsc" and model == "ltg":
                results[12] = ((0.614,), "majority_class")
            if task == "babylm_wsc" and model == "elc":
                results = dict.fromkeys(SEEDS, ((None,), "nan"))
            majority = {"validation": 0.614 if task == "babylm_wsc" else 0.5}
            experiment.add_finetuning(cell, task, metrics, results, suite="babylm_glue", majority=majority)
    return experiment


def means(axes: Axes, marker: str) -> dict[str, float]:
    """Return a model's mean marks by the task of their group; marks of single runs are smaller."""
    names = [name.split(" (")[0] for name in row_names(axes)]
    marks = [line for line in axes.lines if line.get_marker() == marker and line.get_markersize() > 4]
    return {names[round(float(line.get_ydata()[0]))]: float(line.get_xdata()[0]) for line in marks}  # type: ignore[index]


@pytest.mark.parametrize(
    ("experiment", "figures"),
    [("strict", ("task_scores", "phenomena", "feature_dots", "bias_violins")), ("bnc", ("layer_contributions",))],
)
def test_figures_of_what_models_are_evaluated_on_have_models_of_others_last(
    experiment: str, figures: tuple[str, ...], repository: Path
) -> None:
    project = Project(repository / "config")
    ours, others = project.seeded_runs(experiment), project.experiment(experiment).baselines
    for name, drawn in (*((figure, others) for figure in figures), ("learning_curves", ())):
        told = figure_settings(project, experiment, name)
        settings = build(FigureSettings, {key: value for key, value in told.items() if value is not ABSENT})
        assert [run.model for run in settings.runs] == [*(run.model for run in ours), *drawn], name
        assert [run.model for run in settings.runs if run.is_baseline] == list(drawn)


def test_a_model_of_others_is_drawn_like_ours_under_its_name_alone(glue: Any) -> None:
    glue.add_baseline("gpt")
    told = glue.figure_settings()
    told["runs"] = [*told["runs"], {"name": "gpt", "model": "gpt", "seed": 0, "is_baseline": True}]
    settings = build(FigureSettings, stage_body(told | {"published": None}))
    figure = task_scores.draw(settings, glue.tables())
    # `add_baseline` copies the scores of our first model.
    assert means(figure.axes[0], MARKERS[2]) == means(figure.axes[0], MARKERS[0])
    assert {"gpt", "ltg (1 seed)"} <= set(legend(figure))


def test_every_task_has_its_mean_its_deviation_and_its_runs(glue: Any) -> None:
    figure = task_scores.draw(typed(glue), glue.tables())
    (axes,) = figure.axes
    tasks = [f"babylm {task.removeprefix('babylm_').replace('_', ' ')}" for task in sorted(BABYLM_GLUE_TASKS)]
    assert [name.split(" (")[0] for name in row_names(axes)] == [*tasks, "average", "average without wsc"]
    assert row_names(axes)[tasks.index("babylm mrpc")] == "babylm mrpc (f1)"
    values = {f"babylm {t[7:].replace('_', ' ')}": 60 + 2 * place for place, t in enumerate(BABYLM_GLUE_TASKS)}
    drawn = means(axes, MARKERS[0])
    for task in tasks[:-1]:
        assert drawn[task] == pytest.approx(values[task])
    # The mean includes the collapsed run, as in the summary; its dot is hollow.
    wsc = [61.4, values["babylm wsc"], values["babylm wsc"] + 1]
    assert drawn["babylm wsc"] == pytest.approx(statistics.mean(wsc))
    assert [x for x, _ in dots(axes, MARKERS[0], failed=True)] == [pytest.approx(61.4)]
    small = [x for x, _ in dots(axes, MARKERS[0], failed=False)]
    assert len(small) == 11 * 3 - 1 + len(drawn)
    texts = [text.get_text() for text in axes.texts]
    assert texts[2 * tasks.index("babylm boolq")] == "76.0 ± 1.0"
    whiskers = [
        bar.lines[2][0].get_segments()[0][:, 0] for bar in axes.containers if isinstance(bar, ErrorbarContainer)
    ]
    assert whiskers[2 * tasks.index("babylm boolq")] == pytest.approx([75.0, 77.0])
    assert texts[2 * tasks.index("babylm wsc")] == f"{statistics.mean(wsc):.1f} ± {statistics.stdev(wsc):.1f}, 1 failed"


def test_a_model_of_which_no_run_gave_a_number_says_so_and_has_no_mean(glue: Any) -> None:
    figure = task_scores.draw(typed(glue), glue.tables())
    axes = figure.axes[0]
    assert "babylm wsc" not in means(axes, MARKERS[1])
    assert "average" not in means(axes, MARKERS[1])
    assert "average without wsc" in means(axes, MARKERS[1])
    assert dots(axes, MARKERS[1], failed=True) == []
    assert "3 failed" in [text.get_text() for text in axes.texts]
    assert legend(figure) == {"ltg (1 seed)", "elc (1 seed)", "run", "failed run", "most frequent label"}


def test_the_most_frequent_label_is_a_line_where_the_score_is_an_accuracy(glue: Any) -> None:
    axes = task_scores.draw(typed(glue), glue.tables()).axes[0]
    lines = [line for line in axes.lines if line.get_linestyle() == "--" and line.get_color() == "black"]
    names = [name.split(" (")[0] for name in row_names(axes)]
    found = {}
    for line in lines:
        low, high = (float(y) for y in line.get_ydata())  # type: ignore[union-attr]
        found[names[round((low + high) / 2)]] = float(line.get_xdata()[0])  # type: ignore[index]
        assert 0.5 < high - low < 1
    assert len(found) == 9
    assert not {"babylm mrpc", "babylm qqp"}.intersection(found)
    assert (found["babylm wsc"], found["babylm rte"]) == (pytest.approx(61.4), pytest.approx(50.0))


def test_published_scores_stand_in_the_row_of_their_model_and_task(glue: Any, repository: Path) -> None:
    figure = task_scores.draw(typed(glue, STRICT), glue.tables(repository / PRINTED))
    axes = figure.axes[0]
    names = [name.split(" (")[0] for name in row_names(axes)]
    marks = {(names[round(y)], y > round(y)): x for x, y in published(axes)}
    # ELC-BERT Table 9 and its averages. The second model is below the middle of the group.
    assert marks["babylm rte", False] == pytest.approx(54.7)
    assert marks["babylm rte", True] == pytest.approx(60.0)
    assert marks["average", False] == pytest.approx(77.9)
    assert marks["average", True] == pytest.approx(78.3)
    assert len(marks) == 2 * 13
    # The published 92.0 on SST-2 is higher than all our scores.
    assert 92.0 in marks.values() and axes.get_xlim()[1] > 92.0
    assert "published mean" in legend(figure)


def test_published_scores_that_are_not_comparable_have_no_mark(glue: Any, repository: Path) -> None:
    small = {"paper": "elc_bert", "track": "strict_small", "rows": {"ltg": "t5_base"}}
    axes = task_scores.draw(typed(glue, small), glue.tables(repository / PRINTED)).axes[0]
    names = [name.split(" (")[0] for name in row_names(axes)]
    # ELC-BERT Table 9: CoLA and SST-2 are probably swapped, so these scores and their average are not comparable.
    left_out = {"babylm cola", "babylm sst2", "average", "average without wsc"}
    assert sorted(names[round(y)] for _, y in published(axes)) == sorted({*names} - left_out)


def test_suites_are_panels_with_their_own_range(experiment: Any) -> None:
    cell = experiment.add_model("elc", 42, [])
    transfer = {"hans": ("hans", ("accuracy",), {12: ((0.51,), "")})}
    experiment.add_finetuning(
        cell, "glue_mnli", ("accuracy",), {12: ((0.8,), "")}, "glue", {"mismatched": {12: ((0.81,), "")}}, transfer
    )
    experiment.add_finetuning(cell, "msgs_main_verb_control", ("mcc",), {12: ((-0.4,), "")}, "msgs")
    figure = task_scores.draw(typed(experiment), experiment.tables())
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["glue", "hans", "msgs"]
    assert row_names(figure.axes[0])[:2] == ["glue mnli (accuracy)", "glue mnli mismatched (accuracy)"]
    # From the ten below the lowest value minus 1 to the ten above the highest value plus 1, with a margin of 2 %.
    ranges = [(70 - 0.4, 90 + 0.4), (50 - 0.2, 60 + 0.2), (-50 - 0.4, -30 + 0.4)]
    assert [axes.get_xlim() for axes in figure.axes] == list(map(pytest.approx, ranges))


def test_no_axis_of_scores_goes_beyond_what_a_score_can_be(experiment: Any) -> None:
    cell = experiment.add_model("elc", 42, [])
    experiment.add_finetuning(cell, "glue_rte", ("accuracy",), {12: ((1.0,), ""), 13: ((0.98,), "")}, "glue")
    experiment.add_finetuning(cell, "msgs_main_verb_control", ("accuracy",), {12: ((0.0,), "")}, "msgs")
    axes, other = task_scores.draw(typed(experiment), experiment.tables()).axes
    assert other.get_xlim() == pytest.approx((-0.2, 10.2)) and min(other.get_xticks()) == 0
    assert max(axes.get_xticks()) == 100
    # The margin is half a mark.
    assert 100 < axes.get_xlim()[1] < 101


def test_with_more_than_300_scores_only_the_averages_are_drawn_if_there_are_any() -> None:
    score = task_scores.TaskScore(Aggregate(50.0, None, 1), (), None)

    def scores_of(models: int, average: bool = False) -> task_scores.TaskScores:
        scores = {f"m{index}": score for index in range(models)}
        return task_scores.TaskScores("t", "accuracy_percent", scores, average=average)

    small = {"a": [scores_of(298), scores_of(1, average=True)], "b": [scores_of(1)]}
    assert task_scores.readable_part(small) == small
    large = {**small, "b": [scores_of(2)]}
    assert task_scores.readable_part(large) == {"a": small["a"][1:]}
    without = {"a": [scores_of(301)]}
    assert task_scores.readable_part(without) == without


@pytest.mark.parametrize("style", [{}, {"width_inches": 6, "font_size": 8}, {"width_inches": NARROW_INCHES}])
def test_twelve_models_with_long_names_do_not_overlap(experiment: Any, style: dict[str, Any]) -> None:
    for index in range(12):
        cell = experiment.add_model(f"elc_bert_with_a_rather_long_name_of_variant_{index}", 42, [])
        for task in ("babylm_rte", "babylm_wsc", "a_task_with_a_name_that_needs_more_than_a_line_beside_its_rows"):
            runs = {12: ((0.5 + 0.02 * index,), ""), 13: ((0.52 + 0.02 * index,), ""), 14: ((None,), "nan")}
            experiment.add_finetuning(cell, task, ("accuracy",), runs, "glue", majority={"validation": 0.5})
    settings = typed(experiment, **style)
    with figure_style(settings.style):
        figure = task_scores.draw(settings, experiment.tables())
        assert len(legend(figure)) == 12 + 3
        assert_nothing_overlaps(figure)


@pytest.fixture
def blimp(experiment: Any) -> Any:
    cell = experiment.add_model("ltg", 42, [])
    phenomena = {name: {f"{name}_{i}": (60, 100) for i in range(n)} for name, n in PARADIGMS_OF_PHENOMENON.items()}
    for suite in ("blimp", "blimp_filtered"):
        experiment.add_minimal_pairs(cell, suite, phenomena)
    return experiment


@pytest.mark.parametrize(
    ("paper", "track", "row", "suite", "printed", "averages"),
    [
        # Averages are from ELC-BERT Tables 7 and 2, and from LTG-BERT Tables 8 and 2, which average over paradigms.
        (
            *("elc_bert", "strict", "ltg_bert_base", "blimp_filtered"),
            *({"quantifiers": 72.2, "phenomenon_average": 85.8}, ["phenomenon_average"]),
        ),
        (
            *("ltg_bert", "", "ltg_bert_base_subword", "blimp"),
            *({"quantifiers": 68.88, "paradigm_average": 83.42}, ["phenomenon_average", "paradigm_average"]),
        ),
    ],
)
def test_published_accuracies_are_marked_on_the_bars(
    *, blimp: Any, repository: Path, paper: str, track: str, row: str, suite: str, printed: Any, averages: list[str]
) -> None:
    settings = typed(blimp, {"paper": paper, "track": track, "rows": {"ltg": row}})
    values = comparable_values(settings, {"published": repository / f"config/published/values/{paper}.csv"})
    runs = read_measurements(blimp.tables()["measurements"], settings.runs)
    panel = suite_bars(suite, runs.filter(pl.col("suite") == suite), values)
    figure = draw_phenomena(settings, [panel])
    marks = {panel.phenomena[panel.places().index(y)]: x for x, y in published(figure.axes[0])}
    assert {name: marks[name] for name in printed} == pytest.approx(printed)
    assert panel.phenomena[12:] == averages
    assert legend(figure) == {"ltg (1 seed)", "published mean"}
    assert_nothing_overlaps(figure)
