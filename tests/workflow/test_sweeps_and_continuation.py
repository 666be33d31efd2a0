"""Runs of a sweep are jobs of their own, and a run that starts from another one waits for it."""

from pathlib import Path

import pytest
from projects import make_project, planned_rules, snakemake

EXPERIMENT = """
corpus: tiny
tokenizer: tiny
pretraining: {steps: 12, batch_size: 8, sequence_length: 32, evaluation_interval_steps: 2, evaluation_sequences: 16}
runs:
  later: {model: ltg_tiny, pretraining: {steps: 30, initialise_from: {run: base, take: training}}}
  base: {model: ltg_tiny, pretraining: {keep_training_state: true}}
  swept: {model: ltg_tiny, pretraining: {optimizer: {learning_rate: {sweep: [0.005, 0.01]}}}}
minimal_pairs: [tiny_pairs]
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Path:
    folder = make_project(tmp_path_factory.mktemp("chain") / "project", repository)
    (folder / "config/experiments/chain.yaml").write_text(EXPERIMENT)
    return folder


def test_every_run_of_a_sweep_is_planned(project: Path) -> None:
    planned = planned_rules(project, "results/chain/summary.csv")
    assert planned["pretrain"] == 4 and planned["score_minimal_pairs"] == 4


def test_the_model_that_a_run_starts_from_is_an_input_of_its_job(project: Path) -> None:
    planned = planned_rules(project, "results/chain/pretraining/later-s42/manifest.json")
    assert planned["pretrain"] == 2
    assert planned_rules(project, "results/chain/pretraining/base-s42/manifest.json")["pretrain"] == 1


def test_a_circle_ends_in_one_line(project: Path) -> None:
    path = project / "config/experiments/circle.yaml"
    path.write_text(EXPERIMENT.replace("{keep_training_state: true}", "{steps: 60, initialise_from: {run: later}}"))
    result = snakemake(project, "--dry-run", "results/circle/summary.csv")
    assert result.returncode == 1
    lines = [line for line in (result.stdout + result.stderr).splitlines() if line.startswith("error: ")]
    assert len(lines) == 1 and "the runs start from each other in a circle" in lines[0]
