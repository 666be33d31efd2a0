"""Orders from single runs: the compared runs and numbers, the named models, and the tables of a small experiment."""

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from measured_rows import frame
from stage_command import stage_command
from summary_text import write_summary

from hatchery.analysis.task_averages import BABYLM_GLUE_TASKS, MSGS_AMBIGUOUS_TASKS
from hatchery.errors import ConfigError, EvaluationError
from hatchery.typed import build
from hatchery.views.paper_tables.layout import OrderLayout, read_layout
from hatchery.views.paper_tables.order_table import (
    lists_of_models,
    order_table,
    read_runs,
    run_scores,
    tasks_of_average,
)
from hatchery.views.paper_tables.printed import PrintedTable
from hatchery.views.paper_tables.settings import PaperTablesSettings
from hatchery.views.score_table import OURS, PUBLISHED

ROWS = {"plain": "ltg_bert_base", "elc": "elc_bert_base"}
CONTROL = "msgs_main_verb_control"


@pytest.fixture
def msgs(experiment: Any) -> Any:
    """Add models `plain` and `elc` on the ambiguous tasks and a control: two seeds, two rates; `elc` is better."""
    for model, base in (("plain", -0.5), ("elc", 0.1)):
        run = experiment.add_model(model, 42, [])
        for index, task in enumerate((*MSGS_AMBIGUOUS_TASKS, CONTROL)):
            rates = (1e-5, 2e-5) if index else (3e-5, 4e-5)
            runs = {
                (seed, rate): ((base + 0.01 * index + 0.02 * at + 0.001 * seed,), "")
                for seed in (12, 13)
                for at, rate in enumerate(rates)
            }
            if model == "plain" and index == 0:
                runs[12, 3e-5] = ((0.0,), "zero_mcc")
            experiment.add_finetuning(run, task, ("mcc",), runs, suite="msgs")
    return experiment


def settings_of(experiment: Any, **more: Any) -> dict[str, Any]:
    return {
        "stage": "write_tables",
        "stage_version": 1,
        "experiment": "demo",
        "runs": experiment.runs,
        "tasks": experiment.tasks,
        "published": {"paper": "elc_bert", "track": "strict", "rows": ROWS},
        **more,
    }


def lists(experiment: Any, **more: Any) -> tuple[dict[str, list[float]], dict[str, str]]:
    settings = build(
        PaperTablesSettings, {k: v for k, v in settings_of(experiment, **more).items() if "stage" not in k}
    )
    return lists_of_models(read_runs(settings, experiment.collected()), settings, MSGS_AMBIGUOUS_TASKS)


def test_a_score_is_the_mean_of_a_run_over_the_ambiguous_tasks_collapsed_ones_included(msgs: Any) -> None:
    scores, left_out = lists(msgs)
    # Scores are 100 x (base + 0.001 seed + 0.02 rate index + 0.01 x mean of 0 to 5). One task of the first run is 0.
    first = 100 * (-0.5 + 0.012) + 2.5
    assert scores["plain"] == pytest.approx([first - 100 * (-0.5 + 0.012) / 6, first + 2, first + 0.1, first + 2.1])
    assert scores["elc"] == pytest.approx([13.7, 15.7, 13.8, 15.8])
    assert left_out == {}


def test_a_model_without_all_tasks_is_left_out_and_the_reason_told(msgs: Any) -> None:
    name = MSGS_AMBIGUOUS_TASKS[0]
    lacking = msgs.copied(msgs.folder.parents[1] / "copy/results/demo")
    lacking.tasks.remove(name)
    for run in list(lacking.pretraining):
        del lacking.finetuning[f"{run}:{name}"]
    scores, left_out = lists(lacking)
    assert scores == {}
    assert left_out == {model: f"{model} was not run on {name}" for model in ("plain", "elc")}


def test_the_tasks_of_an_order_are_those_of_the_published_average() -> None:
    assert tasks_of_average("msgs", "average") == MSGS_AMBIGUOUS_TASKS
    assert tasks_of_average("babylm_glue", "average") == BABYLM_GLUE_TASKS
    with pytest.raises(
        ConfigError,
        match="glue average: expected a published average over the first metric of each task",
    ):
        tasks_of_average("glue", "average")


def write(repository: Path, experiment: Any, folder: Path, hash_seed: str) -> dict[str, bytes]:
    folder.mkdir()
    summary = write_summary(folder.parent, ["demo,elc,msgs,average,score_percent,12.5,1.5,4"])
    table = experiment.collected()
    result = subprocess.run(
        stage_command(
            "write_tables",
            settings_of(experiment),
            folder / "manifest.json",
            summary=summary,
            published=repository / "config/published/values/elc_bert.csv",
            layout=repository / "config/paper_tables/elc_bert.yaml",
            sizes=repository / "config/published/corpora/sizes.csv",
            measurements=table,
            layers=table.with_name("layers.parquet"),
        ),
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        timeout=120,
    )
    assert result.returncode == 0, result.stderr
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "provenance.json"}


def test_the_command_writes_the_order_of_ours_beside_the_printed_one_the_same_again(
    msgs: Any, repository: Path, tmp_path: Path
) -> None:
    first, second = (write(repository, msgs, tmp_path / seed, seed) for seed in ("1", "2"))
    assert first == second
    written = {f"elc_bert_table_{number}.md" for number in ("01", "02", "03", "12")}
    assert {name for name in first if name.endswith(".md")} == written | {"tables.md"}
    text = first["elc_bert_table_12.md"].decode()
    rows = {tuple(line[2:-2].split(" | ")) for line in text.splitlines() if line.startswith("| ")}
    assert ("LTG-BERT-base", "published", "", "-", "1.00", "1.00", "1.00", "1.00") in rows
    assert ("ELC-BERT-base", "published", "", "**0.20**", "-", "**0.28**", "1.00", "0.83") in rows
    # All runs of elc are above all runs of plain, but each model has only one pretraining seed.
    assert ("", "ours: elc", "4", "0.00", "-", "-", "-", "-") in rows
    assert "A claim about models needs several pretraining seeds" in text
    assert ("", "ours: plain", "4", "-", "1.00", "-", "-", "-") in rows
    assert ("", "ours, computed as published: elc", "4", "0.00", "-", "-", "-", "-") in rows
    assert re.search(r"Ours: confidence 0\.95 for the whole matrix, 0\.9750 for a cell \(corrected by Bonferroni", text)
    assert "1000 bootstrap draws, seed 42" in text


Scores = dict[tuple[str, int, float], float | None]


def scores_of(scores: Scores) -> list[float]:
    rows = [
        {"task": task, "finetuning_seed": seed, "learning_rate": rate, "value": value}
        for (task, seed, rate), value in scores.items()
    ]
    return run_scores(frame(rows), sorted({task for task, _, _ in scores}))


def test_a_run_is_averaged_over_its_tasks():
    runs = {("rte", 1, 1e-5): 50.0, ("rte", 2, 1e-5): 60.0, ("wsc", 2, 1e-5): 62.0, ("wsc", 1, 1e-5): 70.0}
    assert scores_of(runs) == [60.0, 61.0]


def test_runs_at_several_learning_rates_stay_apart():
    runs = {(task, 1, rate): rate * 1e5 for task in ("a", "b") for rate in (1e-5, 2e-5, 3e-5)}
    assert scores_of(runs) == pytest.approx([1.0, 2.0, 3.0])


def test_tasks_with_learning_rates_of_their_own_are_matched_by_the_place_in_the_sweep():
    runs = {("qqp", 1, 5e-5): 80.0, ("rte", 1, 7e-5): 60.0, ("qqp", 2, 5e-5): 82.0, ("rte", 2, 7e-5): 50.0}
    assert scores_of(runs) == [70.0, 66.0]


def test_a_run_without_a_value_on_one_task_has_no_average():
    runs = {("a", 1, 1.0): None, ("b", 1, 1.0): 2.0, ("a", 2, 1.0): 3.0, ("b", 2, 1.0): 5.0}
    assert scores_of(runs) == [4.0]


def test_the_order_of_rows_changes_nothing():
    runs = {(task, seed, 1.0): 0.1 * seed + 0.7 * len(task) for task in ("a", "bb", "ccc") for seed in (1, 2)}
    assert scores_of(runs) == scores_of(dict(reversed(runs.items())))


def test_the_same_scores_on_other_tasks_give_the_same_average() -> None:
    rising, falling = (
        scores_of({(task, 1, 1.0): value for task, value in zip("abc", values, strict=True)})
        for values in ((0.1, 0.2, 0.3), (0.3, 0.2, 0.1))
    )
    assert rising == falling


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ({("a", 1, 1.0): 1.0, ("b", 1, 1.0): 1.0, ("a", 2, 1.0): 1.0}, "seed 42, 2 .* no score for b"),
        ({("a", 1, 1.0): 1.0, ("a", 1, 2.0): 1.0, ("b", 1, 1.0): 1.0}, "learning rate 2 .* no score for b"),
        ({("a", 1, 1.0): None}, "got no run with a score for every task"),
    ],
)
def test_gaps_are_refused(scores: Scores, message: str) -> None:
    with pytest.raises(EvaluationError, match=message):
        scores_of(scores)


def test_a_run_that_occurs_twice_is_refused() -> None:
    row = {"task": "a", "finetuning_seed": 1, "learning_rate": 1.0, "value": 1.0}
    with pytest.raises(EvaluationError, match="two scores for a"):
        run_scores(frame([row, row]), ["a"])


def test_a_model_with_one_seed_is_in_no_order_better_than_another(strict: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    single, settings = "our_elc_bert_base", strict.settings()
    settings["runs"].remove({"name": f"{single}-s43", "model": single, "seed": 43})
    monkeypatch.setattr(strict, "settings", lambda: settings)
    better = [[column < row and 1 not in (row, column) for column in range(5)] for row in range(5)]
    for table in strict.orders():
        ours = [line.values for line in table.lines if line.source == OURS]
        assert [[value is not None and value.best for value in values] for values in ours] == better


def test_what_an_order_leaves_out_has_its_label(strict: Any) -> None:
    settings = strict.settings()
    for run in settings["runs"]:
        run["label"] = f"label of {run['model']}"
    model, *_ = strict.rows
    built = build(PaperTablesSettings, settings)
    measured = frame([{"model": model, "task": "msgs_a", "value": 1.0}])
    _, left_out = lists_of_models(measured, built, ("msgs_a", "msgs_b"))
    assert left_out == {model: f"label of {model} was not run on msgs_b"}


def test_an_order_names_several_models_of_a_row_and_the_models_that_it_leaves_out(strict: Any) -> None:
    strict.rows = {"first": "elc_bert_base", "second": "elc_bert_base", "other": "ltg_bert_base"}
    settings = build(PaperTablesSettings, strict.settings())
    layout = read_layout(strict.layout).tables["12"]
    assert isinstance(layout, OrderLayout)
    scores = {"first": [1.0, 2.0], "second": [3.0, 4.0], "other": [5.0, 6.0]}
    printed = PrintedTable(strict.all_numbers, strict.paper, "12")
    table = order_table("12", layout, settings, printed, scores, {"x": "x has a single run"})
    assert [heading for heading in table.headings if "ours" in heading] == [
        "ELC-BERT-base (ours: first)",
        "ELC-BERT-base (ours: second)",
    ]
    assert table.corner == "row better than column"
    assert "Left out: x has a single run" in table.notes
    named = "LTG-BERT-base is other; ELC-BERT-base is first; ELC-BERT-base is second"
    assert f"Models of ours: {named}" in table.notes
    # Three models have three pairs, and each pair has two directions.
    assert any("(corrected by Bonferroni over 6 comparisons)" in note for note in table.notes)
    assert any("(increased for 3 pairs as in the paper's package)" in note for note in table.notes)
    # The printed number of a row is shown once: in the first of the two columns.
    line = next(line for line in table.lines if line.source == PUBLISHED and line.label == "LTG-BERT-base")
    assert [value is None for value in line.values[:3]] == [True, False, True]
