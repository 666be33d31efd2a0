"""Settings as text, and differences between two settings."""

from hatchery.rendering.setting_texts import brief, described, differences, flatten, shorten

OLD = {
    "stage": "s",
    "stage_version": 1,
    "rate": 0.1,
    "model": {"size": 2, "kind": "a"},
    "parts": [{"name": "x", "n": 1}],
}


def test_differences_name_the_dotted_key_and_both_values() -> None:
    new = {
        **OLD,
        "stage_version": 2,
        "model": {"size": 3, "kind": "a"},
        "parts": [{"name": "x", "n": None}],
        "more": [1],
    }
    assert [str(difference) for difference in differences(OLD, new)] == [
        "stage version: 1 -> 2",
        "model.size: 2 -> 3",
        "parts[x].n: 1 -> null",
        "more: (none) -> [1]",
    ]


def test_equal_settings_have_no_differences() -> None:
    assert differences(OLD, dict(reversed(OLD.items()))) == []


def test_swapped_values_are_two_differences() -> None:
    assert len(differences({"a": 1, "b": 2}, {"a": 2, "b": 1})) == 2


def test_brief_leaves_out_empty_values_and_tells_lists_by_their_names() -> None:
    settings = {**OLD, "nothing": None, "none": [], "text": "y" * 100}
    assert brief(settings) == [f"rate: 0.1; text: {'y' * 57}...", "model: size 2, kind a", "parts: x"]


def test_described_is_complete() -> None:
    assert described({**OLD, "nothing": None}) == [
        "rate: 0.1", "model.size: 2", "model.kind: a", "parts[x].name: x", "parts[x].n: 1", "nothing: null",
    ]  # fmt: skip


def test_shortened_text_is_one_line() -> None:
    assert shorten("one\n two", 20) == "one two"
    assert len(shorten("word " * 50, 20)) <= 20


def test_named_things_that_came_or_went_are_counted_and_not_told_key_by_key() -> None:
    def run(name: str, rate: float) -> dict[str, object]:
        return {"name": name, "model": name, "pretraining": {"rate": rate, "steps": 10, "model": {"hidden_size": 8}}}

    def texts_of(old: dict[str, object], new: dict[str, object]) -> list[str]:
        return [str(difference) for difference in differences(old, new)]

    old = {"runs": [run("a", 0.1), run("b", 0.2), run("c", 0.3)], "tasks": []}
    new = {"runs": [run("a", 0.15), run("d", 0.2), run("e", 0.3)], "tasks": [{"name": "cola", "seeds": 5}]}
    assert texts_of(old, new) == ["runs[a].pretraining.rate: 0.1 -> 0.15", "runs: 2 new, 2 gone", "tasks: 1 new"]
    # Entries of a mapping by name are also counted, but the few keys of a block are not.
    lines = {name: {"line": name, "values": {"rate": 1, "steps": 2}, "sized": False} for name in "abcd"}
    first, second = ({"swept": {name: lines[name] for name in names}} for names in ("ab", "acd"))
    assert texts_of(first, second) == ["swept: 2 new, 1 gone"]
    assert texts_of({"a": {"b": 1}}, {"a": {"b": 1, "early": {"patience": 3}}}) == ["a.early.patience: (none) -> 3"]
    assert texts_of({"l": [{"x": 1}]}, {"l": [{"x": 2}, {"x": 3}]}) == ["l[0].x: 1 -> 2", "l[1].x: (none) -> 3"]


def test_differences_are_in_the_order_version_changes_and_then_new_and_removed_keys() -> None:
    old = {"z": 1, "gone": 3, "stage_version": 1, "m": 2}
    new = {"z": 2, "came": 4, "stage_version": 2, "m": None}
    assert [str(found) for found in differences(old, new)] == [
        *("stage version: 1 -> 2", "z: 1 -> 2", "m: 2 -> null", "came: (none) -> 4", "gone: 3 -> (none)")
    ]


def test_up_to_six_new_values_of_a_mapping_are_listed_and_more_are_counted() -> None:
    def texts(number: int) -> list[str]:
        added = {f"k{index}": index for index in range(number)}
        return [str(found) for found in differences({"a": {"x": 0}}, {"a": {"x": 0} | added})]

    assert texts(6) == [f"a.k{index}: (none) -> {index}" for index in range(6)]
    assert texts(7) == ["a: 7 new"]


def test_brief_keeps_zero_and_false_nests_mappings_in_brackets_and_shortens_groups() -> None:
    settings = {"zero": 0, "a": {"b": {"c": 1}, "d": None}, "flag": False, "rows": [{"x": 1}, {"x": 2}]}
    assert brief(settings) == ["zero: 0; flag: false", "a: b (c 1)", "rows: 2 entries"]
    (group,) = brief({"a": {f"k{index}": index for index in range(200)}})
    assert len(group) == 480 and group.startswith("a: k0 0, k1 1, ") and group.endswith("...")


def test_entries_with_equal_names_are_numbered() -> None:
    entries = [{"name": "x", "n": 1}, {"name": "x", "n": 2}]
    assert flatten({"p": entries}) == {"p[0].name": "x", "p[0].n": "1", "p[1].name": "x", "p[1].n": "2"}
