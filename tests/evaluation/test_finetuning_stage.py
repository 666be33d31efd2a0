import csv
import json
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow.parquet as pq
import pytest

from hatchery.errors import EvaluationError
from hatchery.evaluation.finetuning import stage as finetuning_stage
from hatchery.evaluation.finetuning.stage import finetune
from hatchery.storage.manifests import read_manifest

SEEDS = [12, 642, 369]
SETTINGS = {
    "stage": "finetune",
    "stage_version": 1,
    "task": {
        "name": "agreement",
        "format": "glue_jsonl",
        "files": {"train": "train.jsonl", "validation": "validation.jsonl"},
        "fields": ["sentence"],
        "label_field": "label",
        "labels": ["bad", "good"],
        "metrics": ["accuracy", "f1", "mcc", "macro_f1"],
        "train_limit": None,
        "validation_limit": None,
        "split_seed": 0,
    },
    "protocol": {
        "epochs": 4,
        "batch_size": 8,
        "learning_rate": 3e-3,
        "warmup_fraction": 0.1,
        "schedule": "cosine",
        "weight_decay": 0.1,
        "beta1": 0.9,
        "beta2": 0.999,
        "epsilon": 1e-8,
        "max_gradient_norm": 1.0,
        "dropout": 0.1,
        "max_length": 24,
        "development_fraction": 0.2,
        "patience_epochs": 2,
        "selection_metric": "accuracy",
    },
    "seeds": SEEDS,
}
RUNTIME = {"device": "cpu", "threads": 1}


def with_protocol(**changes):
    return {**SETTINGS, "protocol": {**SETTINGS["protocol"], **changes}}


def sentences(n, seed):
    random = np.random.default_rng(seed)
    rows = []
    for _ in range(n):
        plural, agrees = random.integers(2, size=2)
        noun = random.choice(["dog", "cat", "house"]) + "s" * int(plural)
        verb = "sleep" if bool(plural) == bool(agrees) else "sleeps"
        rows.append(
            {"sentence": f"The {random.choice(['old', 'near'])} {noun} {verb} .", "label": ["bad", "good"][agrees]}
        )
    return rows


@pytest.fixture
def source(make_source, json_lines):
    return make_source({"train.jsonl": json_lines(sentences(60, 0)), "validation.jsonl": json_lines(sentences(40, 1))})


@pytest.fixture
def run(model_manifest, source, tmp_path):
    def run_stage(name, settings=SETTINGS):
        finetune(
            settings,
            RUNTIME,
            model_manifest,
            source.manifest,
            tmp_path / "checkpoints",
            tmp_path / name / "manifest.json",
        )
        return tmp_path / name

    return run_stage


def results(folder):
    with (folder / "results.csv").open() as handle:
        return list(csv.DictReader(handle))


def contents(folder):
    return {name: (folder / name).read_bytes() for name in ("results.csv", "predictions.parquet", "manifest.json")}


def test_results_and_predictions_agree_and_cover_every_seed(run, source):
    folder = run("out")
    rows = results(folder)
    assert [(int(row["seed"]), row["metric"]) for row in rows] == [
        (seed, metric) for seed in SEEDS for metric in SETTINGS["task"]["metrics"]
    ]
    predictions = pq.read_table(folder / "predictions.parquet").to_pylist()
    gold = [row["label"] for row in sentences(40, 1)]
    for seed in SEEDS:
        of_seed = [row for row in predictions if row["seed"] == seed]
        assert [row["row"] for row in of_seed] == list(range(40))
        assert [row["label"] for row in of_seed] == gold
        right = sum(row["label"] == row["prediction"] for row in of_seed) / 40
        assert next(float(r["value"]) for r in rows if r["seed"] == str(seed)) == pytest.approx(right)
    manifest = read_manifest(folder / "manifest.json")
    manifest.verify()
    assert manifest.measures["validation_rows"] == 40
    assert not list((folder.parent / "checkpoints").iterdir())


def test_the_same_run_twice_gives_the_same_bytes(run):
    assert contents(run("one")) == contents(run("two"))


def test_a_seed_does_not_depend_on_the_seeds_before_it(run):
    alone = results(run("alone", {**SETTINGS, "seeds": [369]}))
    assert alone == [row for row in results(run("all")) if row["seed"] == "369"]


def test_an_interrupted_stage_redoes_only_the_missing_seeds(run, monkeypatch, tmp_path):
    expected = contents(run("straight"))
    real, trained = finetuning_stage.run_seed, []

    def interrupted(settings, task, encoder, seed, device):
        if seed == SEEDS[2] and len(trained) == 2:
            raise KeyboardInterrupt
        trained.append(seed)
        return real(settings, task, encoder, seed, device)

    monkeypatch.setattr(finetuning_stage, "run_seed", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run("out")
    assert not (tmp_path / "out" / "manifest.json").exists()
    (kept,) = (tmp_path / "checkpoints").iterdir()
    assert sorted(path.name for path in kept.iterdir()) == ["seed_12.json", "seed_642.json"]
    trained.append("restart")
    assert contents(run("out")) == expected
    assert trained == [12, 642, "restart", 369]
    assert not kept.exists()
    assert json.loads((tmp_path / "out" / "provenance.json").read_text())["seeds_resumed"] == 2


def test_a_killed_process_leaves_its_finished_seeds_to_the_next(repository, model_manifest, source, tmp_path):
    settings = with_protocol(epochs=8, patience_epochs=None) | {"seeds": list(range(6))}
    output = tmp_path / "out" / "manifest.json"
    arguments = [
        *(sys.executable, str(repository / "scripts" / "finetune.py")),
        *("--settings", json.dumps(settings)),
        *("--runtime", json.dumps(RUNTIME), "--model", str(model_manifest), "--source", str(source.manifest)),
        *("--checkpoints", str(tmp_path / "checkpoints"), "--output", str(output)),
    ]
    process = subprocess.Popen(arguments, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and len(list(tmp_path.glob("checkpoints/*/seed_*.json"))) < 1:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    kept = {path: path.stat().st_mtime_ns for path in tmp_path.glob("checkpoints/*/seed_*.json")}
    assert 1 <= len(kept) < 6
    for path in kept:  # whole files, whatever the moment of the kill
        assert json.loads(path.read_text())["failed"] in ("", "majority_class", "zero_mcc")
    finetune(settings, RUNTIME, model_manifest, source.manifest, tmp_path / "checkpoints", output)
    assert json.loads((tmp_path / "out" / "provenance.json").read_text())["seeds_resumed"] == len(kept)
    assert len(results(tmp_path / "out")) == 6 * 4


def test_other_settings_do_not_find_the_kept_seeds(run, monkeypatch, tmp_path):
    monkeypatch.setattr(finetuning_stage.SeedStore, "remove", lambda store: None)
    for changed in (SETTINGS, with_protocol(learning_rate=1e-3)):
        run("out", {**changed, "seeds": [12]})
    assert len(list((tmp_path / "checkpoints").iterdir())) == 2


@pytest.mark.parametrize(("prediction", "failed"), [([0] * 40, "majority_class"), ([0, 1] * 20, "zero_mcc")])
def test_a_collapsed_run_is_named_on_every_row_of_its_seed(
    run, monkeypatch, make_source, json_lines, prediction, failed
):
    balanced = [{"sentence": f"The old dog {i} .", "label": ["bad", "good"][i // 20]} for i in range(40)]
    make_source({"validation.jsonl": json_lines(balanced)})
    monkeypatch.setattr(finetuning_stage, "predict", lambda *arguments: np.array(prediction))
    folder = run("out", {**with_protocol(epochs=1), "seeds": [12, 642]})
    rows = results(folder)
    assert len(rows) == 8 and {row["failed"] for row in rows} == {failed}
    assert {row["value"] for row in rows if row["metric"] == "accuracy"} == {"0.5"}
    assert read_manifest(folder / "manifest.json").measures["failed_seeds"] == 2


def test_a_diverged_run_has_no_values_and_no_predictions(run):
    folder = run("out", {**with_protocol(learning_rate=1e30, max_gradient_norm=None, weight_decay=9.0), "seeds": [12]})
    for row in results(folder):
        assert (row["failed"], row["value"], row["best_epoch"]) == ("nan", "", "")
    assert pq.read_table(folder / "predictions.parquet")["prediction"].null_count == 40
    assert read_manifest(folder / "manifest.json").measures["failed_seeds"] == 1


def test_development_rows_are_disjoint_from_training_and_differ_by_seed(run, monkeypatch):
    seen = {}
    real = finetuning_stage.train_classifier

    def spy(model, train, development, protocol, seed, *rest):
        seen[seed] = [{tuple(row.tolist()) for row in part.sequences} for part in (train, development)]
        return real(model, train, development, protocol, seed, *rest)

    monkeypatch.setattr(finetuning_stage, "train_classifier", spy)
    run("out")
    assert all(train.isdisjoint(development) for train, development in seen.values())
    assert len({frozenset(development) for _, development in seen.values()}) == len(SEEDS)


def test_validation_rows_never_reach_training(
    run, monkeypatch, model_manifest, source, tmp_path, make_source, json_lines
):
    straight = pq.read_table(run("straight") / "predictions.parquet")
    flipped = [{**row, "label": {"bad": "good", "good": "bad"}[row["label"]]} for row in sentences(40, 1)]
    make_source({"validation.jsonl": json_lines(flipped)})
    other = pq.read_table(run("flipped") / "predictions.parquet")
    assert straight["prediction"].equals(other["prediction"])
    assert not straight["label"].equals(other["label"])


def test_wrong_rows_stop_the_command_with_one_line(repository, model_manifest, make_source, json_lines, tmp_path):
    source = make_source(
        {
            "train.jsonl": json_lines([*sentences(5, 0), {"sentence": "x", "label": "ugly"}]),
            "validation.jsonl": json_lines(sentences(5, 1)),
        }
    )
    with pytest.raises(EvaluationError, match=r"train.jsonl:6: the label 'ugly' is unknown; the task lists bad, good"):
        finetune(SETTINGS, RUNTIME, model_manifest, source.manifest, tmp_path / "c", tmp_path / "out" / "manifest.json")
    assert not (tmp_path / "out" / "manifest.json").exists()


def test_the_bias_of_the_classifier_starts_at_the_class_shares_of_its_training_rows(run, monkeypatch):
    biases = {}

    real = finetuning_stage.train_classifier

    def train(model, kept, *rest):
        biases[len(biases)] = (model.output_layer.bias.detach().numpy().copy(), np.bincount(kept.labels, minlength=2))
        return real(model, kept, *rest)

    monkeypatch.setattr(finetuning_stage, "train_classifier", train)
    run("zero", {**with_protocol(epochs=1), "seeds": [12]})
    run("prior", {**with_protocol(epochs=1, output_bias="prior"), "seeds": [12]})
    (zero, _), (prior, counts) = biases.values()
    assert not zero.any()
    shares = (counts + 1) / (counts.sum() + 2)
    np.testing.assert_allclose(np.exp(prior), shares, atol=1e-6)
