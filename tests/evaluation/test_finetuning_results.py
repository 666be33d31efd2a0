"""Results of one fine-tuning run: kept between attempts, and written as tables."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from faults import DAMAGE
from finetuning_cases import PROTOCOL, TASK, rows_task

from hatchery.evaluation.finetuning.batches import Predicted
from hatchery.evaluation.finetuning.run_results import (
    RunResult,
    RunStore,
    SetResult,
    breakdown_frame,
    layer_weights_frame,
    predictions_json,
    predictions_table,
    results_frame,
    runs_identity,
)
from hatchery.evaluation.finetuning.scored_sets import FactAccuracy
from hatchery.evaluation.scores import csv_of
from hatchery.modeling.heads.targets import IMPOSSIBLE_SCORE

ANSWERS = Predicted(np.array([0, 1]), np.array([[0.1, -3.5], [1e-8, 2.0]], dtype=np.float32))
SEVERAL = Predicted(np.array([[True, False]]), np.array([[0.5, -0.5]], dtype=np.float32))


def result(seed=12, rate=3e-05, failed=""):
    sets = {
        "validation": SetResult({"accuracy": 0.1 + 0.2, "mcc": None}, failed, ANSWERS),
        "hans": SetResult({"accuracy": 1.0}, "majority_class", SEVERAL),
        "lost": SetResult({"accuracy": None}, "nan", None),
    }
    return RunResult(seed, rate, 200, 0.25, 9, 1, sets, [[0.25, 0.75]])


def same(found, expected):
    assert {**vars(found), "sets": None} == {**vars(expected), "sets": None}
    assert list(found.sets) == list(expected.sets)
    for name, kept in found.sets.items():
        other = expected.sets[name]
        assert (kept.values, kept.failed) == (other.values, other.failed)
        assert (kept.answers is None) == (other.answers is None)
        if kept.answers is not None:
            for values, wanted in zip(kept.answers, other.answers, strict=True):
                assert values.dtype == wanted.dtype and np.array_equal(values, wanted)
    return True


def test_a_kept_result_comes_back_exactly(tmp_path):
    store = RunStore(tmp_path, "digest")
    store.save(result())
    found = store.load([(12, 3e-05), (12, 1e-05), (642, 3e-05)])
    assert list(found) == [(12, 3e-05)] and same(found[12, 3e-05], result())
    assert RunStore(tmp_path, "other").load([(12, 3e-05)]) == {}
    # The next attempt of a run removes the partial files of a killed attempt of this run.
    stems = ("run_12_3e-05", "run_642_3e-05")
    partial = [store.folder / f".{stem}.0123abcd.npz.4194305-0123abcd.partial" for stem in stems]
    for path in partial:
        path.write_bytes(b"half")
    store.load([(12, 3e-05)])
    assert [path.exists() for path in partial] == [False, True]


def test_kept_runs_that_were_exchanged_are_made_again(tmp_path, capsys):
    stores = [RunStore(tmp_path, name) for name in ("first", "second")]
    for store in stores:
        store.save(result())
    for old, new in (("first", "kept"), ("second", "first"), ("kept", "second")):
        (tmp_path / old).rename(tmp_path / new)
    for store in stores:
        assert store.load([(12, 3e-05)]) == {}
        assert " of other runs...; this fine-tuning is run again" in capsys.readouterr().err


def test_seeds_and_learning_rates_have_files_of_their_own(tmp_path):
    store = RunStore(tmp_path, "digest")
    runs = [(seed, rate) for seed in (1, 12) for rate in (1e-05, 2e-05, 0.001)]
    for seed, rate in runs:
        store.save(result(seed, rate))
    assert len(list(store.folder.iterdir())) == 6
    assert [(found.seed, found.learning_rate) for found in store.load(runs).values()] == runs


def test_every_set_tells_its_own_values_and_failure_and_layers_count_from_1():
    metrics = {"validation": ["accuracy", "mcc"], "hans": ["accuracy"], "lost": ["accuracy"]}
    sets = [SimpleNamespace(name=name, task=SimpleNamespace(metrics=of)) for name, of in metrics.items()]
    runs = [result(), result(13, 1e-05, "zero_mcc")]
    assert csv_of(results_frame(sets, runs)).splitlines()[1:] == [
        "validation,12,3e-05,accuracy,0.30000000000000004,200,0.25,",
        "validation,12,3e-05,mcc,,200,0.25,",
        "validation,13,1e-05,accuracy,0.30000000000000004,200,0.25,zero_mcc",
        "validation,13,1e-05,mcc,,200,0.25,zero_mcc",
        "hans,12,3e-05,accuracy,1.0,200,0.25,majority_class",
        "hans,13,1e-05,accuracy,1.0,200,0.25,majority_class",
        "lost,12,3e-05,accuracy,,200,0.25,nan",
        "lost,13,1e-05,accuracy,,200,0.25,nan",
    ]
    two = replace(result(), layer_weights=[[0.25, 0.75], [0.5, 0.5]])
    rows = ["12,3e-05,1,1,0.25", "12,3e-05,1,2,0.75", "12,3e-05,2,1,0.5", "12,3e-05,2,2,0.5"]
    assert csv_of(layer_weights_frame([two])).splitlines()[1:] == rows


def test_accuracies_by_fact_name_their_set_and_run_and_a_diverged_run_has_none():
    cells = [FactAccuracy("kind", "one", "", 4, 0.5), FactAccuracy("kind", "one", "yes", 1, 1.0)]
    sets = [SimpleNamespace(name=name, breakdown=lambda answers: cells) for name in ("hans", "lost")]
    frame = breakdown_frame(sets, [result(), result(13, 1e-05)])
    assert csv_of(frame).splitlines() == [
        "rows,seed,learning_rate,fact,value,label,n,accuracy",
        *("hans,12,3e-05,kind,one,,4,0.5", "hans,12,3e-05,kind,one,yes,1,1.0"),
        *("hans,13,1e-05,kind,one,,4,0.5", "hans,13,1e-05,kind,one,yes,1,1.0"),
    ]


@pytest.mark.parametrize(
    "files",
    [
        {"train": "x.train.jsonl", "validation": "full/rte.valid.jsonl"},
        {"train": "x.jsonl", "other": "y.jsonl", "validation": ("rte.valid.1.jsonl", "rte.valid.2.jsonl")},
        # Validation rows are drawn from the training file.
        {"train": "rte.train.jsonl"},
    ],
)
def test_the_server_s_file_names_the_task_after_the_file_of_its_validation_rows(files):
    written = json.loads(predictions_json(rows_task(files=files), ANSWERS))
    assert written == {"rte": {"predictions": [{"id": "rte_0", "pred": 0}, {"id": "rte_1", "pred": 1}]}}


def test_predictions_have_no_text_for_an_unknown_label_and_no_score_of_a_missing_choice():
    scores = np.array([[0.5, IMPOSSIBLE_SCORE], [0.25, 0.75]], dtype=np.float32)
    run = replace(result(), sets={"validation": SetResult({}, "", Predicted(np.array([0, 1]), scores))})
    of_set = {"name": "validation", "labels": np.array([1, -1]), "label_names": ("no", "yes"), "groups": ("a", "b")}
    rows = predictions_table(SimpleNamespace(**of_set, is_scored=np.array([True, False])), run).to_pylist()
    columns = ("row", "group", "scored", "label", "prediction", "scores")
    assert [tuple(row[name] for name in columns) for row in rows] == [
        (0, "a", True, "yes", "no", [0.5]),
        (1, "b", False, None, "yes", [0.25, 0.75]),
    ]


def test_a_run_failed_if_its_main_set_says_so():
    assert (result().failed, result(failed="zero_mcc").failed) == ("", "zero_mcc")


@pytest.mark.parametrize("damage", [DAMAGE["byte flipped"], lambda path: (path.unlink(), path.mkdir())])
def test_a_damaged_result_is_named_and_made_again(tmp_path, damage, capsys):
    store = RunStore(tmp_path, "digest")
    store.save(result())
    (path,) = store.folder.iterdir()
    damage(path)
    assert store.load([(12, 3e-05)]) == {}
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"warning: {path}: damaged: expected the SHA-256 {path.name.split('.')[-2]}..., got ")


@pytest.mark.parametrize("other", [result(seed=13), result(rate=1e-05), result(failed="tired")])
def test_a_result_of_another_run_or_with_an_unknown_failure_counts_as_absent(tmp_path, other):
    store = RunStore(tmp_path, "digest")
    store.save(other)
    (path,) = store.folder.iterdir()
    path.rename(path.with_name(f"run_12_3e-05.{path.name.split('.')[-2]}.npz"))
    assert store.load([(12, 3e-05)]) == {}


def test_every_setting_and_input_identifies_a_run_but_seeds_and_learning_rates():
    settings, inputs = {"task": TASK, "protocol": PROTOCOL}, {"model": "a", "source:x": "b"}
    own = runs_identity(settings, inputs)
    same = {key for key in PROTOCOL if runs_identity({**settings, "protocol": {**PROTOCOL, key: "x"}}, inputs) == own}
    assert same == {"seeds", "learning_rates"}
    assert own not in {runs_identity({**settings, "task": {**TASK, key: "x"}}, inputs) for key in TASK}
    assert own not in {runs_identity(settings, {**inputs, key: "c"}) for key in inputs}


def test_the_result_that_is_made_again_takes_the_place_of_the_old_one(tmp_path):
    store = RunStore(tmp_path, "digest")
    store.save(result())
    store.save(result(failed="zero_mcc"))
    assert len(list(store.folder.iterdir())) == 1
    assert store.load([(12, 3e-05)])[12, 3e-05].failed == "zero_mcc"
