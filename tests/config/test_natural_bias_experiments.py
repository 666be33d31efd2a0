"""The experiments of the natural-bias study: a run in two parts is trained like a run planned whole."""

import json
from pathlib import Path

import pytest

from hatchery.config.project import Project
from hatchery.planning.layout import Layout
from hatchery.pretraining.schedules import learning_rate, warmup_steps
from hatchery.pretraining.settings import PretrainSettings, pretrain_settings
from hatchery.stages.registry import stage_settings

PROJECT = Project(Path(__file__).resolve().parents[2] / "config")
ALL = [name for name in PROJECT.names("experiment") if name.startswith("natural_bias")]
EXPERIMENTS = ("natural_bias_iwslt14_de_en", "natural_bias_mini")


def typed(experiment: str, run: str) -> PretrainSettings:
    return pretrain_settings(json.loads(stage_settings(PROJECT, "pretrain", experiment=experiment, run=f"{run}-s0")))


def parts_of(experiment: str) -> list[tuple[str, str]]:
    """Every beginning with the run that goes on from it."""
    runs = PROJECT.experiment(experiment)["runs"]
    starts = {run: block["pretraining"].get("initialise_from") for run, block in runs.items()}
    return [(start["run"], run) for run, start in starts.items() if start]


@pytest.mark.parametrize(
    ("experiment", "beginning", "continuation"),
    [(experiment, *parts) for experiment in EXPERIMENTS for parts in parts_of(experiment)],
)
def test_a_beginning_and_its_continuation_have_the_rates_of_a_run_planned_whole(
    experiment: str, beginning: str, continuation: str
) -> None:
    first, second, whole = (typed(experiment, run) for run in (beginning, continuation, "zero"))
    assert first.steps < second.steps == whole.steps
    assert first.objective.unigram_penalty > 0 == second.objective.unigram_penalty
    rates = [learning_rate(first.optimizer.learning_rate, first.schedule, s, first.steps) for s in range(first.steps)]
    rates += [
        learning_rate(second.optimizer.learning_rate, second.schedule, step, second.steps)
        for step in range(first.steps, second.steps)
    ]
    peak = whole.optimizer.learning_rate
    assert rates == [learning_rate(peak, whole.schedule, step, whole.steps) for step in range(whole.steps)]


def test_every_strength_and_length_of_the_appendix_is_there_once() -> None:
    parts = parts_of("natural_bias_iwslt14_de_en")
    beginnings = [typed("natural_bias_iwslt14_de_en", beginning) for beginning, _ in parts]
    assert [(run.objective.unigram_penalty, run.steps) for run in beginnings] == [
        (strength, steps) for strength in (0.01, 0.1, 0.5) for steps in (500, 1000, 5000)
    ]


@pytest.mark.parametrize(
    "experiment", [name for name in PROJECT.names("experiment") if name.startswith("natural_bias")]
)
def test_the_warm_up_does_not_depend_on_the_length_of_a_run(experiment: str) -> None:
    chosen = typed(experiment, "zero")
    expected = 15 if experiment == "natural_bias_mini" else 4000
    assert warmup_steps(chosen.schedule, chosen.steps) == warmup_steps(chosen.schedule, 1) == expected


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_a_beginning_is_not_translated_and_what_goes_on_from_it_is(experiment: str) -> None:
    translated = {name.rpartition("-s")[0] for name in Layout(PROJECT).translated(experiment)}
    beginnings = {beginning for beginning, _ in parts_of(experiment)}
    assert translated == set(PROJECT.experiment(experiment)["runs"]) - beginnings
    collected = json.loads(stage_settings(PROJECT, "collect_measurements", experiment=experiment))
    assert set(collected["untranslated"]) == beginnings


def test_an_experiment_that_translates_nothing_has_no_such_key() -> None:
    collected = json.loads(stage_settings(PROJECT, "collect_measurements", experiment="demo"))
    assert not collected.keys() & {"translation", "untranslated", "alc_steps"}
