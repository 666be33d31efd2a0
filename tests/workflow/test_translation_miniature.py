"""The translation experiments of the natural-bias study in miniature, from generated pairs to the study's table."""

import re
from pathlib import Path

import pytest
from projects import ONE_CONVERTS, make_project, rows_of, snakemake

from hatchery.artifacts.manifests import read_manifest
from hatchery.evaluation.sentences_file import read_examples

pytestmark = pytest.mark.slow

STUDY, EXPERIMENT = "natural_bias_demo", "natural_bias_mini"
STARTS = {"no_bias": 1, "zero": 2, "unigram": 2}
# Only the models of `STARTS` must learn, so all other models get few steps. Two of these starts keep two seeds, because
# `paired_bootstrap` compares models of the same seed.
SHORTER = {
    # Beam search with two unfinished translations takes less time than with the usual five.
    "    task: translation\n": "    task: translation\n    search: {beam: 2}\n",
    "no_bias: {model: nmt_demo, seeds: [0, 1],": "no_bias: {model: nmt_demo, seeds: [0],",
    "pretraining: {output_bias: {kind: unigram, counts: larger_corpus,": (
        "pretraining: {steps: 20, early_stopping: null, output_bias: {kind: unigram, counts: larger_corpus,"
    ),
    "pretraining: {initialise_from: {run: away_begins,": (
        "pretraining: {steps: 30, early_stopping: null, initialise_from: {run: away_begins,"
    ),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Path:
    """A project folder in which the study ran to its table and its analyses."""
    folder = make_project(tmp_path_factory.mktemp("translation") / "project", repository)
    path = folder / f"config/experiments/{EXPERIMENT}.yaml"
    # Leave out the initial bias `unigram_as_published`, whose output matrix is `unigram`'s times a factor.
    text, left_out = re.subn(r"  unigram_as_published:\n(    .*\n)+", "", path.read_text(encoding="utf-8"))
    assert left_out == 1
    for long, short in SHORTER.items():
        assert text.count(long) == 1
        text = text.replace(long, short)
    path.write_text(text, encoding="utf-8")
    analyses = [f"results/{STUDY}/analyses/{name}/manifest.json" for name in ("starts", "paired_bootstrap")]
    targets = (
        f"results/{STUDY}/summary.csv",
        *analyses,
        f"results/{EXPERIMENT}/filled_sentences/zero-s0/manifest.json",
    )
    result = snakemake(folder, *ONE_CONVERTS, "--cores", "2", *targets, timeout=1200)
    assert result.returncode == 0, (result.stdout + result.stderr)[-6000:]
    return folder


def test_every_start_translates_above_sixty_points_over_its_seeds(folder: Path) -> None:
    rows = {(row["model"], row["task"], row["metric"]): row for row in rows_of(folder / f"results/{STUDY}/summary.csv")}
    for start, seeds in STARTS.items():
        row = rows[f"{EXPERIMENT}/{start}", "test", "bleu"]
        assert float(row["mean"]) > 60
        assert row["n"] == str(seeds)
        assert float(row["mean"]) > float(rows[f"{EXPERIMENT}/{start}", "other_domain", "bleu"]["mean"])
        for task, metric in (
            ("first_150_steps", "alc_bleu"),
            ("first_150_steps", "alc_chrf"),
            ("development", "best_bleu"),
        ):
            assert (f"{EXPERIMENT}/{start}", task, metric) in rows
    # These models trained for fewer steps.
    shorter = tuple(f"{EXPERIMENT}/{start}" for start in ("away_begins", "unigram_larger"))
    assert not any(model in shorter and metric == "alc_bleu" for model, _, metric in rows)


def test_the_starts_stand_side_by_side_with_their_differences(folder: Path) -> None:
    rows = rows_of(folder / f"results/{STUDY}/analyses/starts/numbers.csv")
    unigram = next(row for row in rows if row["model"].endswith("/unigram") and row["metric"] == "alc_bleu")
    zero = next(row for row in rows if row["model"].endswith("/zero") and row["metric"] == "alc_bleu")
    assert zero["difference"] == ""
    assert float(unigram["difference"]) == pytest.approx(float(unigram["mean"]) - float(zero["mean"]), abs=1e-3)


def test_the_kept_weights_are_those_of_the_best_development_bleu(folder: Path) -> None:
    measures = read_manifest(folder / f"results/{EXPERIMENT}/pretraining/zero-s0/manifest.json").measures
    assert measures["early_stopping"]["best_development_bleu"] > 60


def test_a_run_that_was_kept_away_from_unigram_goes_on_with_the_usual_loss(folder: Path) -> None:
    manifest = read_manifest(folder / f"results/{EXPERIMENT}/pretraining/away-s0/manifest.json")
    assert manifest.measures["initial_model"]["take"] == "training"
    assert manifest.measures["initial_model"]["earlier_steps"] == 20
    assert manifest.settings["objective"]["unigram_penalty"] == 0


def test_differences_on_drawn_sentences_are_those_of_pairs_of_runs(folder: Path) -> None:
    rows = rows_of(folder / f"results/{STUDY}/analyses/paired_bootstrap/numbers.csv")
    models = {row["model"] for row in rows}
    assert f"{EXPERIMENT}/zero" not in models and f"{EXPERIMENT}/unigram" in models
    assert all(float(row["low"]) <= float(row["value"]) <= float(row["high"]) for row in rows)


def test_a_model_shows_sentences_that_it_translated(folder: Path) -> None:
    written = read_examples(folder / f"results/{EXPERIMENT}/filled_sentences/zero-s0/manifest.json")
    assert written.task == "translate" and written.examples
