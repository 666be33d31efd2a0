"""The miniatures of the papers' experiments: the same graphs with the same settings, apart from sizes.

What may differ is listed below, so that one that quietly leaves something out, or trains differently, fails here.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import test_scaling_miniature
import test_translation_miniature
from test_miniatures import RUNS

from hatchery.experiment.project import Project
from hatchery.experiment.raw_inputs import raw_inputs
from hatchery.settings.fields import ABSENT
from hatchery.workflow.registry import stage_settings

PROJECT = Project(Path(__file__).resolve().parents[2] / "config")
EXPERIMENTS = [(name, f"{name}_mini") for name in ("strict", "strict_small", "bnc", "bnc_wikipedia_bookcorpus")]

SIZES = {"steps", "batch_size", "sequence_length", "evaluation_interval_steps", "evaluation_sequences"}
MODEL_SIZES = {
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "position_bucket_size",
    "max_position_embeddings",
    # Twenty steps leave nothing to regularise.
    "hidden_dropout_prob",
    "attention_probs_dropout_prob",
}
# Sixty rows leave nothing to regularise.
PROTOCOL_SIZES = {"epochs", "batch_size", "learning_rates", "seeds", "max_length", "dropout"}
# The full BLiMP is original paradigms, as the generated pairs are.
MINIATURES = {"blimp": "demo_pairs"}


def miniature(name: str) -> str:
    return MINIATURES.get(name, f"demo_{name}")


def settings(experiment: str, run: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(stage_settings(PROJECT, "pretrain", experiment=experiment, run=f"{run}-s42"))
    return found


def without(values: Mapping[str, Any], keys: set[str]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if key not in keys}


def runs(experiment: str) -> list[str]:
    return [run.model for run in PROJECT.seeded_runs(experiment)]


@pytest.mark.parametrize(("original", "mini"), EXPERIMENTS)
def test_a_miniature_has_the_same_runs_suites_tasks_and_perplexities(original: str, mini: str) -> None:
    first, second = PROJECT.experiment(original), PROJECT.experiment(mini)
    assert PROJECT.seeded_runs(mini) == PROJECT.seeded_runs(original)
    assert second.minimal_pairs == tuple(miniature(name) for name in first.minimal_pairs)
    assert list(second.finetuning.tasks) == [miniature(name) for name in first.finetuning.tasks]
    assert second.perplexity == first.perplexity


@pytest.mark.parametrize(("original", "mini"), EXPERIMENTS)
def test_a_miniature_is_pretrained_as_its_original_apart_from_sizes(original: str, mini: str) -> None:
    for run in runs(original):
        first, second = settings(original, run), settings(mini, run)
        assert without(second, {"model", *SIZES}) == without(first, {"model", *SIZES}), run
        assert without(second["model"], MODEL_SIZES) == without(first["model"], MODEL_SIZES), run


@pytest.mark.parametrize(("original", "mini"), EXPERIMENTS)
def test_sizes_of_a_miniature_stand_to_each_other_as_those_of_its_original(original: str, mini: str) -> None:
    base_first, base_second = (settings(name, runs(original)[0]) for name in (original, mini))
    for run in runs(original):
        first, second = settings(original, run), settings(mini, run)
        assert second["steps"] == round(base_second["steps"] * first["steps"] / base_first["steps"]), run
        # A model without training has no batches.
        if first["steps"]:
            share = base_second["batch_size"] * first["batch_size"] / base_first["batch_size"]
            # Batches are multiples of what the long sequences divide them by.
            assert second["batch_size"] == 4 * round(share / 4), run
        assert second["model"]["hidden_size"] == base_second["model"]["hidden_size"], run
        widths = first["model"]["intermediate_size"] / base_first["model"]["intermediate_size"]
        assert second["model"]["intermediate_size"] == base_second["model"]["intermediate_size"] * widths, run


@pytest.mark.parametrize(("original", "mini"), EXPERIMENTS)
def test_a_miniature_fine_tunes_by_the_protocol_of_its_original_apart_from_sizes(original: str, mini: str) -> None:
    for task in PROJECT.experiment(original).finetuning.tasks:
        first, second = PROJECT.protocol_of(original, task), PROJECT.protocol_of(mini, miniature(task))
        others = {"base", "selection_metric", *PROTOCOL_SIZES}
        assert without(vars(second), others) == without(vars(first), others), task
        assert len(second.learning_rates) == len(first.learning_rates), task
        assert set(second.seeds) < set(first.seeds), task


@pytest.mark.parametrize(("original", "mini"), EXPERIMENTS)
def test_a_miniature_task_has_the_head_of_its_original_and_scores_the_miniatures_of_its_transfers(
    original: str, mini: str
) -> None:
    for task in PROJECT.experiment(original).finetuning.tasks:
        first, second = PROJECT.task(task), PROJECT.task(miniature(task))
        assert second.head.kind == first.head.kind, task
        assert second.labels == first.labels or first.head.kind == "span_classification", task
        assert {miniature(name) for name in first.transfer_tasks} <= set(second.transfer_tasks), task


@pytest.mark.parametrize("mini", [mini for _, mini in EXPERIMENTS])
def test_a_miniature_needs_no_data_of_the_user_and_few_steps(mini: str) -> None:
    assert all(
        source["name"].startswith("embedded_") for source in raw_inputs(PROJECT, PROJECT.experiment(mini).corpus)
    )
    for task in PROJECT.experiment(mini).finetuning.tasks:
        assert PROJECT.task(task).embedded is not ABSENT, task
    assert sum(settings(mini, run)["steps"] for run in runs(mini)) <= 1_000


def test_the_miniatures_that_tests_run_to_the_end_are_those_that_are_documented() -> None:
    whole = [
        test_scaling_miniature.CONSTRAINED,
        test_scaling_miniature.UNCONSTRAINED,
        test_scaling_miniature.CHECKPOINTS,
    ]
    run = {name: set(models) for name, models in RUNS.items()}
    run |= {name: set(runs(name)) for name in (*whole, test_translation_miniature.EXPERIMENT)}
    text = (PROJECT.folder.parent / "docs" / "experiments.md").read_text(encoding="utf-8")
    table = text.partition("| miniature | models that tests train to the end |")[2].partition("\n\n")[0]
    documented = {}
    for names, models in re.findall(r"^\| (`.*`) \| (.*) \|$", table, re.MULTILINE):
        for name in re.findall(r"`(\w+)`", names):
            documented[name] = set(runs(name) if models == "all" else re.findall(r"`(\w+)`", models))
    miniatures = [name for name in PROJECT.names("experiment") if name.endswith("_mini")]
    assert documented == {name: run.get(name, set()) for name in miniatures}


@pytest.mark.parametrize("experiment", PROJECT.names("experiment"))
def test_every_job_of_every_experiment_has_settings(experiment: str) -> None:
    block = PROJECT.experiment(experiment)
    for run in PROJECT.seeded_runs(experiment):
        assert stage_settings(PROJECT, "pretrain", experiment=experiment, run=run.name)
        assert stage_settings(PROJECT, "export_model", experiment=experiment, run=run.name)
    for task in block.finetuning.tasks:
        assert stage_settings(PROJECT, "finetune", experiment=experiment, task=task)
    for suite in block.minimal_pairs:
        assert stage_settings(PROJECT, "score_minimal_pairs", suite=suite)
    for stage in ("measure_perplexity", "summarise", "write_cost", "write_page"):
        assert stage_settings(PROJECT, stage, experiment=experiment)
