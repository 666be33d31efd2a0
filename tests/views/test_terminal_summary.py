"""The summary in a terminal: models and measures that do not fit continue below or are counted."""

from pathlib import Path
from typing import Any

import pytest
from summary_cases import write

from hatchery.runner import run_stage
from hatchery.views.stages.summarise import summarise
from hatchery.views.summary_text import MODELS_OF_MANY, MODELS_SHOWN


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
    # Two averages and nine tasks.
    assert [cell for cells in of_last for cell in cells[::2]] == ["44.0"] * 2 + [f"{40 + task}.0" for task in range(9)]
    assert len(of_last) == 3
    # A wide name continues on a second line; the numbers are on the first line.
    wide = [place for place, line in enumerate(tasks) if line.startswith("  elc, hidden_dropout_prob 0.1,")]
    assert len(wide) == 3 and tasks[wide[2]].split()[-2:] == ["28.0", "+-0.0*"]
    assert {tasks[place + 1] for place in wide} == {"    learning_rate 0.3"}


@pytest.mark.parametrize("models", [MODELS_SHOWN, MODELS_SHOWN + 1])
def test_a_terminal_shows_all_models_or_the_first_of_many_and_says_how_many_more_there_are(
    experiment: Any, tmp_path: Path, models: int
) -> None:
    for number in range(models):
        experiment.add_finetuning(experiment.add_model(f"m{number}", 1, []), "cola", ("accuracy",), {12: ((0.7,), "")})
    markdown, text = (path.read_text(encoding="utf-8") for path in write(experiment, tmp_path)[2:])
    shown = [number for number in range(models) if f"\n  m{number} " in text]
    assert shown == [*range(MODELS_OF_MANY if models > MODELS_SHOWN else models)]
    rest = f"The first {MODELS_OF_MANY} models; {models - len(shown)} more are in summary.csv and summary.md."
    assert (rest in text) == (len(shown) < models)
    assert f"| m{models - 1} |" in markdown
