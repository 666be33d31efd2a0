import pytest

from hatchery.errors import EvaluationError
from hatchery.evaluation.json_lines import decode_lines, read_json_lines


def read(make_source, content):
    return list(read_json_lines(make_source({"rows.jsonl": content}), "rows.jsonl"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"a": 1}\n{"a": 1', "rows.jsonl:2: not one JSON object per line"),
        ('{"a": 1, "a": 2}\n', "rows.jsonl:1: .*the key 'a' stands twice"),
        ('{"a": {"b": 1, "b": 2}}\n', "rows.jsonl:1: .*the key 'b' stands twice"),
        ("\n\n[1, 2]\n", "rows.jsonl:3: expected a JSON object"),
        (b'{"a": 1}\n{"a": "\xff"}\n', "rows.jsonl:2: not UTF-8 at byte 7"),
        ("", "rows.jsonl: the file holds no records"),
        ("\n  \n", "rows.jsonl: the file holds no records"),
        ("[" * 200_000, "rows.jsonl:1: not one JSON object"),
        ('{"a": ' + "9" * 5000 + "}", "rows.jsonl:1: not one JSON object"),
    ],
    ids=["cut", "repeated", "repeated_inside", "list", "latin1", "empty", "blank", "deep", "huge_number"],
)
def test_broken_files_are_named_with_their_line(make_source, content, message):
    with pytest.raises(EvaluationError, match=message) as caught:
        read(make_source, content)
    assert "\n" not in str(caught.value)


def test_lines_end_only_at_newlines_and_a_byte_order_mark_is_no_text(make_source):
    source = make_source({"rows.txt": "\ufeffone\u2028still one\r\n\r\ntwo\x0bstill two"})
    assert list(decode_lines(source, "rows.txt")) == [(1, "one\u2028still one"), (3, "two\x0bstill two")]


@pytest.mark.parametrize("value", ["", "   ", None, 3, ["a"], "x" * 500 + "\ud800"])
def test_text_that_cannot_be_used_is_refused_with_its_place(make_source, json_lines, value):
    (record,) = read(make_source, json_lines([{"sentence": value}]))
    with pytest.raises(EvaluationError, match=r"rows.jsonl:1: the field 'sentence'") as caught:
        record.text("sentence")
    assert len(str(caught.value)) < 200


def test_a_missing_field_is_named_with_those_that_exist(make_source, json_lines):
    (record,) = read(make_source, json_lines([{"b": "x", "a": "y"}]))
    with pytest.raises(EvaluationError, match=r"rows.jsonl:1: the field 'c' is missing; the record has: a, b"):
        record.text("c")
