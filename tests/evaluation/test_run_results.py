import numpy as np
import pytest

from hatchery.evaluation.finetuning.predicting import Predicted
from hatchery.evaluation.finetuning.run_results import RunResult, RunStore, SetResult

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
    store.remove()
    assert store.load([(12, 3e-05)]) == {} and list(tmp_path.iterdir()) == []
    store.remove()  # nothing to remove is no error


def test_seeds_and_learning_rates_have_files_of_their_own(tmp_path):
    store = RunStore(tmp_path, "digest")
    runs = [(seed, rate) for seed in (1, 12) for rate in (1e-05, 2e-05, 0.001)]
    for seed, rate in runs:
        store.save(result(seed, rate))
    assert len(list(store.folder.iterdir())) == 6
    assert [(found.seed, found.learning_rate) for found in store.load(runs).values()] == runs


def test_a_run_failed_if_its_main_set_says_so():
    assert (result().failed, result(failed="zero_mcc").failed) == ("", "zero_mcc")


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(path.read_bytes()[:400]),
        lambda path: path.write_bytes(path.read_bytes()[:-40]),
        lambda path: path.write_bytes(b"\xff\xfe"),
        lambda path: path.write_bytes(b""),
        lambda path: np.savez(path, description=np.array("[]")),
        lambda path: np.savez(path, description=np.array('{"sets": []}')),
        lambda path: np.savez(path, other=np.array(1)),
    ],
    ids=["cut", "cut_at_end", "binary", "empty", "list", "no_fields", "no_description"],
)
def test_a_damaged_result_counts_as_absent(tmp_path, damage):
    store = RunStore(tmp_path, "digest")
    store.save(result())
    damage(store.path(12, 3e-05))
    assert store.load([(12, 3e-05)]) == {}


@pytest.mark.parametrize("other", [result(seed=13), result(rate=1e-05), result(failed="tired")])
def test_a_result_of_another_run_or_with_an_unknown_failure_counts_as_absent(tmp_path, other):
    store = RunStore(tmp_path, "digest")
    store.save(other)
    store.path(other.seed, other.learning_rate).rename(store.path(12, 3e-05))
    assert store.load([(12, 3e-05)]) == {}
