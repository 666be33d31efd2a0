"""Settings as text, and differences between two settings."""

from hatchery.rendering.setting_texts import brief, described, differences, shorten

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
