"""Tables of hundreds of models stay readable, and what they leave out is said."""

import matplotlib as mpl
import polars as pl
import pytest
from matplotlib.figure import Figure

from hatchery.analysis.settings import FigureSettings, SummarySettings
from hatchery.analysis.summary import Summary, summarised
from hatchery.experiment.seeded_run import SeededRun
from hatchery.rendering.drawing import save_drawings
from hatchery.rendering.style import Style
from hatchery.views.figures.draw import remarks
from hatchery.views.summary_markdown import markdown_summary
from hatchery.views.summary_text import MODELS_OF_MANY, MODELS_SHOWN, text_summary

TASKS = ("first", "second")


def summary(models: int) -> Summary:
    runs = tuple(SeededRun(f"m{number}-s1", f"m{number}", 1) for number in range(models))
    measured = pl.DataFrame(
        [
            {
                **{"experiment": "many", "model": run.model, "run": run.name, "seed": 1, "kind": "finetuning"},
                **{"suite": "suite", "task": task, "level": "task", "metric": "accuracy", "value": 50.0},
                **{"finetuning_seed": 1, "learning_rate": 1e-3, "origin": task, "primary": True, "main": True},
                **{"failed": "", "manifest": "ab", "items": 10, "sampling_deviation": None, "blind_guess": None},
            }
            for run in runs
            for task in TASKS
        ]
    )
    return summarised(SummarySettings("many", runs, tasks=TASKS), measured, {})


def test_a_terminal_shows_all_of_a_few_models() -> None:
    text = text_summary(summary(MODELS_SHOWN))
    assert f"m{MODELS_SHOWN - 1} " in text or f"m{MODELS_SHOWN - 1}\n" in text
    assert "more are in summary.csv" not in text


def test_a_terminal_shows_the_first_of_many_models_and_says_how_many_more_there_are() -> None:
    text = text_summary(summary(300))
    assert len(text.splitlines()) < 40
    assert f"The first {MODELS_OF_MANY} models; {300 - MODELS_OF_MANY} more are in summary.csv and summary.md." in text
    assert "m299" not in text and "m299" in markdown_summary(summary(300))


def test_a_figure_says_how_many_models_it_leaves_out(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(mpl.rcParams, "svg.fonttype", "none")
    for left_out, said in ((0, False), (1260, True)):
        remark = "\n".join(remarks(FigureSettings("many", (), left_out=left_out)))
        save_drawings(lambda _: Figure(layout="constrained"), Style(), tmp_path / "figure.svg", "title", remark)
        text = (tmp_path / "figure.svg").read_text(encoding="utf-8")
        assert ("1,260 more models are not drawn: see summary.csv" in text) is said
