"""Milestones of a training are evaluated without training runs of their own."""

from pathlib import Path

import polars as pl
import pytest
from projects import planned_rules, snakemake

from hatchery.artifacts.manifests import read_manifest

pytestmark = pytest.mark.slow

EXPERIMENT = """\
corpus: tiny
tokenizer: tiny
pretraining: {steps: 12, batch_size: 8, sequence_length: 32, evaluation_interval_steps: 6, evaluation_sequences: 16}
runs:
  whole: {model: ltg_tiny, pretraining: {milestones: [6]}}
  # The same model as one of 0 steps, which starts from it.
  taken: {model: ltg_tiny, pretraining: {steps: 0, initialise_from: {run: whole, step: 6}}}
minimal_pairs: [tiny_pairs]
perplexity: {splits: [dev]}
evaluate_milestones: [minimal_pairs/tiny_pairs, perplexity]
"""


def test_milestones_are_evaluated_without_runs_of_their_own(finished_project: Path) -> None:
    (finished_project / "config/experiments/inside.yaml").write_text(EXPERIMENT, encoding="utf-8")
    target = "results/inside/measurements.parquet"
    planned = planned_rules(finished_project, target)
    several = {"pretrain": 2, "score_minimal_pairs": 3, "measure_perplexity": 3}
    assert planned == {**several, "export_milestone": 1, "collect_measurements": 1}
    done = snakemake(finished_project, "--cores", "2", "--", target)
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    assert planned_rules(finished_project, target) == {}

    shown = finished_project / "results/inside/pretraining/whole-s42-step6/manifest.json"
    made, whole = read_manifest(shown), read_manifest(shown.parents[1] / "whole-s42/manifest.json")
    assert made.inputs == {**whole.inputs, "pretraining": whole.digest}
    assert made.measures["steps"] == 6 and made.settings["objective"] == whole.settings["objective"]
    measured = pl.read_parquet(finished_project / target).filter(pl.col("kind") != "pretraining")
    named = ("experiment", "model", "run", "manifest")
    rows = {run: measured.filter(pl.col("run") == run).drop(named) for run in measured["run"].unique()}
    assert rows.keys() == {"whole-s42", "taken-s42", "whole-s42-step6"}
    assert rows["whole-s42-step6"].equals(rows["taken-s42"]) and len(rows["taken-s42"]) > 10
    assert not rows["whole-s42"].equals(rows["taken-s42"])
    runs = pl.read_parquet(finished_project / "results/inside/runs.parquet")
    facts = ["steps", "tokens", "words", "training_flops", "loss", "development_loss", "parameters", "layers"]
    found = {row["run"]: [row[fact] for fact in facts] for row in runs.to_dicts()}
    assert found["whole-s42-step6"] == found["taken-s42"]
