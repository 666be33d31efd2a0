import pytest

from hatchery.evaluation.finetuning.run_results import SeedResult, SeedStore

RESULT = SeedResult(12, {"accuracy": 0.1 + 0.2, "mcc": None}, 3, 0.25, "", [0, 1], 9, 1)


def test_a_kept_result_comes_back_exactly(tmp_path):
    store = SeedStore(tmp_path, "digest")
    store.save(RESULT)
    assert store.load([12, 642]) == {12: RESULT}
    assert SeedStore(tmp_path, "other").load([12]) == {}
    store.remove()
    assert store.load([12]) == {} and list(tmp_path.iterdir()) == []
    store.remove()  # nothing to remove is no error


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_text(path.read_text()[:40]),
        lambda path: path.write_bytes(b"\xff\xfe"),
        lambda path: path.write_text("[]"),
        lambda path: path.write_text("{}"),
        lambda path: path.write_text(path.read_text().replace('"seed": 12', '"seed": 13')),
        lambda path: path.write_text(path.read_text().replace('"failed": ""', '"failed": "tired"')),
    ],
    ids=["cut", "binary", "list", "empty", "other_seed", "unknown_failure"],
)
def test_a_damaged_result_counts_as_absent(tmp_path, damage):
    store = SeedStore(tmp_path, "digest")
    store.save(RESULT)
    damage(store.path(12))
    assert store.load([12]) == {}
