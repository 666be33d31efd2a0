"""Settings as words, and what differs between two of them."""

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
