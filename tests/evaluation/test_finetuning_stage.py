import json
import signal
import subprocess
import time
from types import SimpleNamespace

import numpy as np
import pyarrow.parquet as pq
import pytest
from finetuning_cases import (
    RATES,
    RUNTIME,
    SEEDS,
    SETTINGS,
    TASK,
    changed,
    contents,
    finetuned,
    predictions,
    results,
    sentences,
    short,
)
from forked import Forked
from stage_command import stage_command

from hatchery.artifacts.manifests import read_manifest
from hatchery.errors import ConfigError
from hatchery.evaluation.finetuning import finetune_on_task as stage_module
from hatchery.evaluation.finetuning.batches import Predicted
from hatchery.raw.registration import register_source


@pytest.fixture
def run(model_manifest, source, tmp_path):
    def finetune(name, settings=SETTINGS, others=(), model=model_manifest, **runtime):
        sources = dict.fromkeys([settings["task"]["name"], *others], source.manifest)
        return finetuned(tmp_path / name, settings, model, sources, tmp_path / f"runs of {name}", **runtime)

    return finetune


@pytest.fixture(scope="module")
def finished(model_manifest, tmp_path_factory):
    """The folder of the finished job with `SETTINGS`, which no test changes."""
    folder = tmp_path_factory.mktemp("finished")
    (folder / "raw").mkdir()
    for name, rows in (("train", sentences(60, 0)), ("validation", sentences(40, 1))):
        (folder / "raw" / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    register_source("raw", folder / "raw", folder / "source.json")
    return finetuned(
        folder / "out", SETTINGS, model_manifest, {TASK["name"]: folder / "source.json"}, folder / "checkpoints"
    )


def test_results_and_predictions_agree_and_cover_every_seed_and_rate(finished):
    folder = finished
    rows = results(folder)
    assert [(row["rows"], int(row["seed"]), float(row["learning_rate"]), row["metric"]) for row in rows] == [
        ("validation", seed, rate, metric) for seed in SEEDS for rate in RATES for metric in TASK["metrics"]
    ]
    table = predictions(folder)
    gold = [row["label"] for row in sentences(40, 1)]
    for seed in SEEDS:
        for rate in RATES:
            of_run = [row for row in table if (row["seed"], row["learning_rate"]) == (seed, rate)]
            assert [row["row"] for row in of_run] == list(range(40))
            assert [row["label"] for row in of_run] == gold
            assert all(row["prediction"] == ["bad", "good"][int(np.argmax(row["scores"]))] for row in of_run)
            right = sum(row["label"] == row["prediction"] for row in of_run) / 40
            (value,) = [
                float(row["value"])
                for row in rows
                if (row["seed"], row["learning_rate"], row["metric"]) == (str(seed), str(rate), "accuracy")
            ]
            assert value == pytest.approx(right)
    manifest = read_manifest(folder / "manifest.json")
    manifest.verify()
    measures = manifest.measures
    assert (measures["train_rows"], measures["validation_rows"], measures["truncated_validation_rows"]) == (60, 40, 0)
    assert measures["development_rows"] == 12
    assert measures["majority_accuracy_validation"] == max(gold.count("bad"), gold.count("good")) / 40
    assert measures["failed_runs"] == len({(r["seed"], r["learning_rate"]) for r in rows if r["failed"]})
    assert not (folder / "breakdown.csv").exists() and not (folder / "layer_weights.csv").exists()


def test_the_same_job_twice_gives_the_same_bytes(run, finished):
    assert contents(run("again")) == contents(finished)


def test_a_run_does_not_depend_on_the_runs_before_it(run, finished):
    alone = results(run("alone", changed(seeds=[642], learning_rates=[1e-3])))
    of_all = results(finished)
    assert alone == [row for row in of_all if (row["seed"], row["learning_rate"]) == ("642", "0.001")]


def test_an_interrupted_job_redoes_only_the_missing_runs(run, finished, monkeypatch, tmp_path):
    real, trained = stage_module.train_run, []

    def interrupted(settings, task, encoder, seed, *others):
        if len(trained) == 3:
            raise KeyboardInterrupt
        trained.append((seed, others[0]))
        return real(settings, task, encoder, seed, *others)

    monkeypatch.setattr(stage_module, "train_run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run("out")
    assert not (tmp_path / "out" / "manifest.json").exists()
    (kept,) = (tmp_path / "runs of out").iterdir()
    assert len(list(kept.iterdir())) == 3
    trained.append("restart")
    assert contents(run("out")) == contents(finished)
    assert trained == [(12, 3e-3), (12, 1e-3), (642, 3e-3), "restart", (642, 1e-3)]
    assert json.loads((tmp_path / "out" / "provenance.json").read_text())["runs_resumed"] == 3


def test_compiled_layers_learn_the_same(run, make_model_manifest, compiled_graphs):
    # Dropout is off, because compiled layers draw other dropout masks.
    settings, model = short(dropout=0.0), make_model_manifest(layers=1)
    plain, compiled = (run(choice, settings, model=model, compile=choice) for choice in ("off", "layers"))
    assert contents(compiled) == contents(plain) and compiled_graphs
    made = [json.loads((folder / "provenance.json").read_text())["compile"] for folder in (plain, compiled)]
    assert made == ["off", "layers"]


def test_auto_is_asked_with_the_steps_of_all_runs_together(run, monkeypatch):
    asked = []
    monkeypatch.setattr(stage_module, "chosen_compilation", lambda *about: asked.append(about) or "off")
    # Two runs of one epoch have 8 steps each, for 60 rows.
    for enough in (16, 17):
        monkeypatch.setattr(stage_module, "FINETUNING_COMPILED_FROM_STEPS", enough)
        run(f"from {enough}", short(seeds=[1, 2]))
    assert [(choice, pays) for choice, _, pays in asked] == [("auto", True), ("auto", False)]


def test_a_killed_process_leaves_its_finished_runs_to_the_next(model_manifest, source, tmp_path):
    settings = changed(epochs=8, patience_evaluations=None, seeds=list(range(6)), learning_rates=[3e-3])
    output = tmp_path / "out" / "manifest.json"
    given = {"runtime": RUNTIME, "model": model_manifest, "source": {"agreement": source.manifest}}
    command = stage_command("finetune", settings, output, checkpoints=tmp_path / "checkpoints", **given)
    process = Forked(command, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and len(list(tmp_path.glob("checkpoints/*/run_*.npz"))) < 1:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    kept = list(tmp_path.glob("checkpoints/*/run_*.npz"))
    assert 1 <= len(kept) < 6
    finetuned(tmp_path / "out", settings, model_manifest, {"agreement": source.manifest}, tmp_path / "checkpoints")
    assert json.loads((tmp_path / "out" / "provenance.json").read_text())["runs_resumed"] == len(kept)
    assert len(results(tmp_path / "out")) == 6 * 3


def test_other_settings_do_not_find_the_kept_runs(run, tmp_path):
    for settings in (short(), short(dropout=0.2)):
        run("out", settings)
    assert len(list((tmp_path / "runs of out").iterdir())) == 2


def counting(monkeypatch):
    real, trained = stage_module.train_run, []

    def counted(settings, task, encoder, seed, *others):
        trained.append((seed, others[0]))
        return real(settings, task, encoder, seed, *others)

    monkeypatch.setattr(stage_module, "train_run", counted)
    return trained


def test_one_more_seed_and_one_more_rate_compute_only_themselves(run, monkeypatch):
    expected = contents(run("at once", short(seeds=[1, 2], learning_rates=[1e-3, 3e-3])))
    trained = counting(monkeypatch)
    run("out", short(seeds=[1], learning_rates=[1e-3]))
    run("out", short(seeds=[1, 2], learning_rates=[1e-3]))
    assert trained == [(1, 1e-3), (2, 1e-3)]
    # Of the four runs, two are trained in 12 seconds.
    monkeypatch.setattr(stage_module, "time", SimpleNamespace(monotonic=iter([10.0, 22.0]).__next__))
    folder = run("out", short(seeds=[1, 2], learning_rates=[1e-3, 3e-3]))
    assert contents(folder) == expected and trained[2:] == [(1, 3e-3), (2, 3e-3)]
    made = json.loads((folder / "provenance.json").read_text())
    assert (made["runs_resumed"], made["seconds_per_run"]) == (2, 6.0)


def test_finished_work_whose_manifest_was_deleted_is_taken_unless_it_is_forced_or_damaged(run, monkeypatch, capsys):
    folder = run("out", short())
    expected = contents(folder)
    trained = counting(monkeypatch)
    (folder / "manifest.json").unlink()
    assert contents(run("out", short())) == expected and not trained
    assert "reused the finished result, whose checksums are correct" in capsys.readouterr().err
    (folder / "manifest.json").unlink()
    (folder / "results.csv").write_text("altered")
    assert contents(run("out", short())) == expected and not trained
    monkeypatch.setenv("HATCHERY_FORCED", "1")
    assert contents(run("out", short())) == expected and trained


@pytest.mark.parametrize(("chosen", "failed"), [([0] * 40, "majority_class"), ([0, 1] * 20, "zero_mcc")])
def test_a_collapsed_run_is_named_on_every_row_of_it(run, monkeypatch, make_source, json_lines, chosen, failed):
    balanced = [{"sentence": f"The old dog {i} .", "label": ["bad", "good"][i // 20]} for i in range(40)]
    make_source({"validation.jsonl": json_lines(balanced)})
    scores = np.eye(2, dtype=np.float32)[chosen]
    monkeypatch.setattr(stage_module, "predict", lambda *arguments: Predicted(np.array(chosen), scores))
    folder = run("out", short(seeds=SEEDS, selection="last", development_fraction=0.0))
    rows = results(folder)
    assert len(rows) == 6 and {row["failed"] for row in rows} == {failed}
    assert {row["value"] for row in rows if row["metric"] == "accuracy"} == {"0.5"}
    assert read_manifest(folder / "manifest.json").measures["failed_runs"] == 2


def test_a_diverged_run_has_no_values_and_no_predictions(run):
    folder = run("out", short(epochs=3, learning_rates=[1e30], max_gradient_norm=None, weight_decay=9.0))
    for row in results(folder):
        assert (row["failed"], row["value"], row["best_step"]) == ("nan", "", "")
    table = pq.read_table(folder / "predictions.parquet")
    assert table["prediction"].null_count == table["scores"].null_count == 40
    assert read_manifest(folder / "manifest.json").measures["failed_runs"] == 1


def test_development_rows_are_disjoint_from_training_and_differ_by_seed(run, monkeypatch):
    seen, totals = {}, []
    real, progress = stage_module.train_model, stage_module.Progress

    def texts(data):
        batch = data.batch(np.arange(data.n_units)).inputs
        return {tuple(row[keep].tolist()) for row, keep in zip(*batch.values(), strict=True)}

    def spy(model, train, development, protocol, rate, seed, *rest):
        seen[seed, rate] = [texts(train), texts(development.data)]
        # One epoch in batches of 8 rows.
        assert totals[-1] == -(-train.n_units // 8), "the progress counts the steps on the rows that remain"
        return real(model, train, development, protocol, rate, seed, *rest)

    def counted(total, *rest):
        totals.append(total)
        return progress(total, *rest)

    monkeypatch.setattr(stage_module, "Progress", counted)
    monkeypatch.setattr(stage_module, "train_model", spy)
    run("out", short(seeds=SEEDS))
    assert len(seen) == len(SEEDS)
    assert all(train.isdisjoint(development) for train, development in seen.values())
    assert len({frozenset(development) for _, development in seen.values()}) == len(SEEDS)


def test_validation_rows_never_reach_training(run, make_source, json_lines):
    straight = pq.read_table(run("straight", short()) / "predictions.parquet")
    flipped = [{**row, "label": {"bad": "good", "good": "bad"}[row["label"]]} for row in sentences(40, 1)]
    make_source({"validation.jsonl": json_lines(flipped)})
    other = pq.read_table(run("flipped", short()) / "predictions.parquet")
    assert straight["prediction"].equals(other["prediction"])
    assert not straight["label"].equals(other["label"])


def test_every_file_besides_training_is_a_scored_set(run, make_source, json_lines):
    make_source({"other.jsonl": json_lines(sentences(25, 2))})
    files = {**TASK["files"], "mismatched": "other.jsonl"}
    folder = run("out", short({"files": files}))
    assert [row["rows"] for row in results(folder)] == ["validation"] * 3 + ["mismatched"] * 3
    measures = read_manifest(folder / "manifest.json").measures
    assert measures["mismatched_rows"] == 25 and "majority_accuracy_mismatched" in measures
    assert [row["rows"] for row in predictions(folder)] == ["validation"] * 40 + ["mismatched"] * 25


def test_rows_that_do_not_count_are_predicted_and_kept_but_enter_no_metric(run):
    folder = run("out", short({"scored_rows": {"kind": "one"}}))
    table = predictions(folder)
    kinds = [row["kind"] == "one" for row in sentences(40, 1)]
    assert [row["scored"] for row in table] == kinds
    right = [row["label"] == row["prediction"] for row in table if row["scored"]]
    assert float(results(folder)[0]["value"]) == pytest.approx(sum(right) / len(right))


def transferred(name, labels, rule="most_probable", **more):
    transfer = {"labels": labels, "rule": rule}
    files = {"validation": "validation.jsonl"}
    return {**TASK, "name": name, "files": files, "metrics": ["accuracy"], "transfer": transfer, **more}


def test_a_model_is_also_scored_on_the_tasks_it_is_transferred_to(run, monkeypatch):
    same, swapped = {"bad": ["bad"], "good": ["good"]}, {"bad": ["good"], "good": ["bad"]}
    others = [
        transferred("same", same, facts=["kind"]),
        transferred("swapped", swapped, facts=["kind"]),
        transferred("sums", same, "summed_probabilities", facts=["kind"]),
        transferred("few", same, validation_limit=7),
        transferred("first", same, files={"validation": "validation.jsonl", "other": "train.jsonl"}),
    ]
    passes = []
    real = stage_module.predict
    monkeypatch.setattr(stage_module, "predict", lambda *arguments: passes.append(1) or real(*arguments))
    folder = run("out", short(transfer=others), others=[other["name"] for other in others])
    # One pass for the validation rows, one for the three tasks with the same rows, and one for each of the other tasks.
    assert len(passes) == 4
    of_sets = [row["rows"] for row in predictions(folder)]
    assert {name: of_sets.count(name) for name in ("same", "few", "first")} == {"same": 40, "few": 7, "first": 40}
    values = {(row["rows"], row["metric"]): float(row["value"]) for row in results(folder)}
    accuracy = values["validation", "accuracy"]
    assert values["same", "accuracy"] == values["sums", "accuracy"] == accuracy
    assert values["swapped", "accuracy"] == pytest.approx(1 - accuracy)
    cells = [row for row in results(folder, "breakdown.csv") if row["rows"] == "same" and row["label"]]
    assert {(row["fact"], row["value"]) for row in cells} == {("kind", "one"), ("kind", "many")}
    assert sum(int(row["n"]) * float(row["accuracy"]) for row in cells) / 40 == pytest.approx(accuracy)


def test_sources_must_be_those_of_the_task_and_its_transfers(model_manifest, source, tmp_path):
    with pytest.raises(ConfigError, match="sources: got other, expected one source for each of the tasks agreement"):
        finetuned(tmp_path / "out", short(), model_manifest, {"other": source.manifest}, tmp_path / "c")


def test_the_bias_of_the_classifier_starts_at_the_class_shares_of_its_training_rows(run, monkeypatch):
    biases = []
    real = stage_module.train_model

    def train(model, kept, *rest):
        biases.append((model.output_layer.bias.detach().numpy().copy(), np.bincount(kept.labels, minlength=2)))
        return real(model, kept, *rest)

    monkeypatch.setattr(stage_module, "train_model", train)
    run("zero", short())
    run("prior", short(output_bias="prior"))
    (zero, _), (prior, counts) = biases
    assert not zero.any()
    np.testing.assert_allclose(np.exp(prior), (counts + 1) / (counts.sum() + 2), atol=1e-6)


def test_the_server_gets_the_predictions_of_the_first_seed_and_rate(run):
    task, (first, *_), rates = {"head": {"options": {"pooling": "last_token"}}}, SEEDS, [3e-2, 1e-9]
    folder = run(
        "out", changed(task, seeds=SEEDS, learning_rates=rates, edition=2026, selection="last", development_fraction=0)
    )
    (found,) = json.loads((folder / "predictions.json").read_text()).values()
    of_runs = {
        (seed, rate): [
            ["bad", "good"].index(row["prediction"])
            for row in predictions(folder)
            if (row["seed"], row["learning_rate"]) == (seed, rate)
        ]
        for seed in SEEDS
        for rate in rates
    }
    assert [row["pred"] for row in found["predictions"]] == of_runs.pop((first, rates[0]))
    assert [row["pred"] for row in found["predictions"]] not in of_runs.values()
