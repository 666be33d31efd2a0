"""The summary for a terminal: models and measures that do not fit continue below, or are counted."""

from pathlib import Path
from typing import Any

import polars as pl
from summary_cases import write

from hatchery.analysis.settings import SummarySettings
from hatchery.analysis.summary import Summary, summarised
from hatchery.experiment.seeded_run import SeededRun
from hatchery.runner import run_stage
from hatchery.views.stages.summarise import summarise
from hatchery.views.summary_text import MODELS_OF_MANY, MODELS_SHOWN, markdown_summary, text_summary


def test_text_continues_in_a_further_block_when_the_models_do_not_fit(experiment: Any, tmp_path: Path) -> None:
    names = [f"model_with_quite_a_long_name_{index}" for index in range(3)] + ["m" * 120]
    for name in names:
        run = experiment.add_model(name, 1, [])
        experiment.add_finetuning(run, "cola", ("accuracy",), {12: ((0.7,), "")})
    text = write(experiment, tmp_path)[3].read_text(encoding="ascii")
    assert max(map(len, text.splitlines())) <= 100
    assert all(name[:60] in text for name in names)
    assert text.count("  cola ") > 1


def test_from_five_models_on_these_are_the_rows_and_measures_continue_below(experiment: Any, tmp_path: Path) -> None:
    for number in range(5):
        run = experiment.add_model(f"m{number}", 1, [])
        for task in range(9):
            values = {seed: ((number / 10 + task / 100,), "" if seed else "majority_class") for seed in (0, 1)}
            experiment.add_finetuning(run, f"task_of_number_{task}", ("accuracy",), values)
    settings = experiment.summary_settings()
    settings["runs"][2]["label"] = "elc, hidden_dropout_prob 0.1, learning_rate 0.3"
    text = tmp_path / "summary.txt"
    run_stage(summarise, settings, tmp_path / "summary.csv", measurements=experiment.collected(), text=text)
    lines = text.read_text(encoding="ascii").splitlines()
    assert max(map(len, lines)) <= 100
    tasks = lines[next(place for place, line in enumerate(lines) if line.startswith("Fine-tuning")) :]
    of_last = [line.split()[1:] for line in tasks if line.startswith("  m4 ")]
    # Two averages, and the nine tasks.
    assert [cell for cells in of_last for cell in cells[::2]] == ["44.0"] * 2 + [f"{40 + task}.0" for task in range(9)]
    assert len(of_last) == 3
    # A wide name has a second line; the numbers stand in the first.
    wide = [place for place, line in enumerate(tasks) if line.startswith("  elc, hidden_dropout_prob 0.1,")]
    assert len(wide) == 3 and tasks[wide[2]].split()[-2:] == ["28.0", "+-0.0*"]
    assert {tasks[place + 1] for place in wide} == {"    learning_rate 0.3"}


def summary_of_many(models: int) -> Summary:
    runs = tuple(SeededRun(f"m{number}-s1", f"m{number}", 1) for number in range(models))
    measured = pl.DataFrame(
        [
            {
                **{"experiment": "many", "model": run.model, "run": run.name, "seed": 1, "kind": "finetuning"},
                **{"suite": "suite", "task": task, "level": "task", "metric": "accuracy", "value": 50.0},
                **{"finetuning_seed": 1, "learning_rate": 1e-3, "origin": task, "primary": True, "main": True},
                **{
                    "failed": "",
                    "manifest": "ab",
                    "items": 10,
                    "sampling_deviation": None,
                    "blind_guess": None,
                    "settings": "",
                    "basis": "",
                },
            }
            for run in runs
            for task in ("first", "second")
        ]
    )
    return summarised(SummarySettings("many", runs, tasks=("first", "second")), measured, {})


def test_a_terminal_shows_all_of_a_few_models() -> None:
    text = text_summary(summary_of_many(MODELS_SHOWN))
    assert f"m{MODELS_SHOWN - 1} " in text or f"m{MODELS_SHOWN - 1}\n" in text
    assert "more are in summary.csv" not in text


def test_a_terminal_shows_the_first_of_many_models_and_says_how_many_more_there_are() -> None:
    text = text_summary(summary_of_many(300))
    assert len(text.splitlines()) < 40
    assert f"The first {MODELS_OF_MANY} models; {300 - MODELS_OF_MANY} more are in summary.csv and summary.md." in text
    assert "m299" not in text and "m299" in markdown_summary(summary_of_many(300))
