import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hatchery.errors import EvaluationError, SourceError
from hatchery.evaluation.json_lines import decode_lines, read_json_lines


def read(make_source, content):
    return list(read_json_lines(make_source({"rows.jsonl": content}), "rows.jsonl"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"a": 1}\n{"a": 1', "rows.jsonl:2: not a JSON object: "),
        ('{"a": 1, "a": 2}\n', "rows.jsonl:1: .*the key 'a' stands twice"),
        ('{"a": {"b": 1, "b": 2}}\n', "rows.jsonl:1: .*the key 'b' stands twice"),
        ('{"a": "x: y", "a": 2, "c": 1}\n', "rows.jsonl:1: .*the key 'a' stands twice"),
        ('{"a" : 1, "a"\t: ":"}\n', "rows.jsonl:1: .*the key 'a' stands twice"),
        ('{"a": [{"b": 1}, {"c": "\\":", "c": 2}]}\n', "rows.jsonl:1: .*the key 'c' stands twice"),
        ("\n\n[1, 2]\n", "rows.jsonl:3: not a JSON object: got list"),
        (b'{"a": 1}\n{"a": "\xff"}\n', "rows.jsonl: byte 16 is not utf-8 "),
        ("", "rows.jsonl: the file holds no records"),
        ("\n  \n", "rows.jsonl: the file holds no records"),
        ("[" * 200_000, "rows.jsonl:1: not a JSON object"),
        ('{"a": ' + "9" * 5000 + "}", "rows.jsonl:1: not a JSON object"),
    ],
    ids=[
        "cut",
        "repeated",
        "repeated_inside",
        "colons",
        "blanks",
        "quotes",
        "list",
        "latin1",
        "empty",
        "blank",
        "deep",
        "huge_number",
    ],
)
def test_broken_files_are_named_with_their_line(make_source, content, message):
    with pytest.raises((EvaluationError, SourceError), match=message) as caught:
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


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(st.dictionaries(st.text(':" \\a', max_size=4), st.text(':" \\a') | st.lists(st.text(':"')), max_size=4))
def test_colons_and_quotes_in_keys_and_texts_are_no_repeated_keys(make_source, values):
    (record,) = read(make_source, json.dumps(values) + "\n")
    assert record.values == values


def test_dots_reach_into_nested_objects_and_a_field_with_a_dot_comes_first(make_source, json_lines):
    (record,) = read(make_source, json_lines([{"idx": {"question": 3, "deep": {"x": "y"}}, "a.b": "plain", "a": {}}]))
    assert (record.value("idx.question"), record.text("idx.deep.x"), record.text("a.b")) == (3, "y", "plain")
    assert record.has("idx") and not record.has("idx.answer") and not record.has("idx.question.x")
    with pytest.raises(EvaluationError, match=r"rows.jsonl:1: the field 'idx.answer' is missing; .* has: a, a.b, idx"):
        record.value("idx.answer")


def test_a_string_may_be_empty_where_the_caller_allows_it(make_source, json_lines):
    (record,) = read(make_source, json_lines([{"a": "", "b": 3, "c": "\ud800"}]))
    assert record.string("a") == ""
    for name, message in (("b", "must be a text, got 3"), ("c", "half a surrogate pair")):
        with pytest.raises(EvaluationError, match=message):
            record.string(name)


def test_a_missing_field_is_named_with_those_that_exist(make_source, json_lines):
    (record,) = read(make_source, json_lines([{"b": "x", "a": "y"}]))
    with pytest.raises(EvaluationError, match=r"rows.jsonl:1: the field 'c' is missing; the record has: a, b"):
        record.text("c")
