"""Tables and JSON as R, pandas and Excel write them: their rows, and the first line of each row."""

import time
from collections.abc import Callable

import pytest

from hatchery.corpora.csv_tables import csv_rows, has_surplus
from hatchery.corpora.rows import json_lines, json_rows
from hatchery.corpora.text_files import Lines
from hatchery.errors import SourceError
from hatchery.raw.registration import RawSource

Sources = Callable[..., RawSource]
HI = 'He said "hi", then left.'
# Content, and each row with its first line.
TABLES: dict[str, tuple[str, list[tuple[int, dict[str, str]]]]] = {
    # write.table(d, sep = ",") with the default qmethod = "escape".
    "R": (
        '"n","text"\n"1",3,"He said \\"hi\\", then left."\n"2",4,"NA"\n',
        [(2, {"": "1", "n": "3", "text": HI}), (3, {"": "2", "n": "4", "text": "NA"})],
    ),
    "R with names of rows": (
        '"n";"text"\n"first";3;"a"\n"second";4;"b"\n',
        [(2, {"": "first", "n": "3", "text": "a"}), (3, {"": "second", "n": "4", "text": "b"})],
    ),
    "R with blanks": (
        '"n" "text"\n"1" 3 "two words"\n"2" 4 "b"\n',
        [(2, {"": "1", "n": "3", "text": "two words"}), (3, {"": "2", "n": "4", "text": "b"})],
    ),
    "R with tabs": (
        '"n"\t"text"\n"1"\t3\t"He said \\"hi\\", then left."\n"2"\t4\t"b"\n',
        [(2, {"": "1", "n": "3", "text": HI}), (3, {"": "2", "n": "4", "text": "b"})],
    ),
    "R without quotes": (
        "n\ttext\n1\t3\ta\n2\t4\tb\n",
        [(2, {"": "1", "n": "3", "text": "a"}), (3, {"": "2", "n": "4", "text": "b"})],
    ),
    "Excel": (
        '\ufeffsep=;\r\n;\r\n\r\nn;text\r\n3;"two\r\nlines"\r\n4;b\r\n',
        [(5, {"n": "3", "text": "two\nlines"}), (7, {"n": "4", "text": "b"})],
    ),
    "a backslash at the end of a cell": (
        'n,text\n1,"C:\\"\n2,"say ""C:\\"""\n',
        [(2, {"n": "1", "text": "C:\\"}), (3, {"n": "2", "text": 'say "C:\\"'})],
    ),
    "backslashes without quotes around cells": (
        'n,text\n1,a \\"b\\" c\n',
        [(2, {"n": "1", "text": 'a \\"b\\" c'})],
    ),
    "a header in two lines": ('n,"my\ntext"\n1,a\n', [(3, {"n": "1", "my\ntext": "a"})]),
    "a table between bars": ("n|text\n1|a, b; c\n", [(2, {"n": "1", "text": "a, b; c"})]),
}


@pytest.mark.parametrize("written", TABLES)
def test_tables_are_read_as_programs_write_them(make_source: Sources, written: str) -> None:
    content, expected = TABLES[written]
    lines = Lines(make_source({"a.csv": content}), "a.csv")
    found = [(lines.record_line, dict(row), place) for place, row in csv_rows(lines, None)]
    assert [(line, row) for line, row, _ in found] == expected
    assert [place.rpartition(" ")[2] for *_, place in found] == [str(line) for line, _ in expected]


@pytest.mark.parametrize(
    "content",
    [
        "text\nWell, yes\nNo, never\n",  # no quotes, no row numbers
        "n,text\n1,a\n2,b,c\n",  # only one row is longer
        "text\n1, a\n1, b\n",  # a repeated row number
    ],
)
def test_unquoted_texts_with_commas_are_no_names_of_rows(make_source: Sources, content: str) -> None:
    rows = [row for _, row in csv_rows(Lines(make_source({"a.csv": content}), "a.csv"))]
    assert any(map(has_surplus, rows)) and "" not in rows[0]


ROWS = [{"s": "a dog", "n": 1}, {"s": 'say "hi" ]', "n": None}, {"s": "Tür 黒", "n": 2.5}]
LISTS = {
    "pandas, records": '[{"s":"a dog","n":1},{"s":"say \\"hi\\" ]","n":null},{"s":"T\\u00fcr \\u9ed2","n":2.5}]',
    "pandas, columns": '{"s":{"0":"a dog","1":"say \\"hi\\" ]","2":"Tür 黒"},"n":{"0":1,"1":null,"2":2.5}}\n',
    "R, jsonlite": (
        '[\n  {\n    "s": "a dog",\n    "n": 1\n  },\n  {\n    "s": "say \\"hi\\" ]",\n    "n": null\n  }\n'
        '  ,\n\n  {"s": "Tür 黒", "n": 2.5}\n]\n\n'
    ),
    "a bracket alone": (
        '\n[\n\n{"s": "a dog", "n": 1}, {"s": "say \\"hi\\" ]", "n": null}\n, {"s": "Tür 黒", "n": 2.5} ]'
    ),
}


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("written", LISTS)
def test_a_list_of_rows_and_a_table_of_columns_are_rows_that_are_numbered(
    make_source: Sources, written: str, strict: bool
) -> None:
    lines = json_lines(make_source({"a.json": LISTS[written]}), "a.json")
    found = [(lines.record_line, place, dict(row)) for place, row in json_rows(lines, strict)]
    assert [row for *_, row in found] == ROWS
    assert [(line, place.rpartition(", ")[2]) for line, place, _ in found] == [(n, f"item {n}") for n in (1, 2, 3)]


def test_lines_of_objects_that_look_like_a_table_of_columns_are_lines(make_source: Sources) -> None:
    content = '{"a": {"0": 1}}\n{"a": {"0": 2}}\n'
    lines = json_lines(make_source({"a.json": content}), "a.json")
    assert [row for _, row in json_rows(lines)] == [{"a": {"0": 1}}, {"a": {"0": 2}}]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('[{"s": 1},\n{"s": }]', r"line 2: not a JSON object: Expecting value"),
        ('[{"s": 1}\n{"s": 2}]', r"line 2: not JSON: expected ',' or '\]' after an item, got"),
        ('[{"s": 1},', r"line 1: not a JSON object: Expecting value"),
        ('[{"s": 1}', r"line 1: not JSON: expected ',' or '\]' after an item, got ''"),
        ('[{"s": 1}]\n{"s": 2}\n', r"line 2: not JSON: text follows the end of the list"),
        ('[{"s": 1}, 3]', r"item 2: not a JSON object: got int"),
        ('[{"s": "cut\n"}]', r"line 1: not a JSON object: Unterminated string"),
        ('[{"s": 1, "s": 2}]', r"line 1: not a JSON object: the key 's' occurs twice"),
        ('[{"s": [\n1,\n2,\n3\n]},\n{"s": },\n3,\n4]', r"line 6: not a JSON object: Expecting value"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_a_broken_list_is_one_line_with_its_place(make_source: Sources, content: str, message: str) -> None:
    lines = json_lines(make_source({"a.json": content}), "a.json")
    with pytest.raises(SourceError, match=message):
        list(json_rows(lines, strict=True))


@pytest.mark.parametrize(
    "written",
    [
        "[" + ", ".join(['{"s": "' + "word " * 40 + '"}'] * 40_000) + "]",
        '[{"s": [\n' + ",\n".join(['{"n":\n"' + "word " * 8 + '"\n}'] * 5_000) + "]}]",
    ],
    ids=["many items on one line", "one item on many lines"],
)
def test_lists_are_read_in_linear_time(make_source: Sources, written: str) -> None:
    lines = json_lines(make_source({"a.json": written}), "a.json")
    started = time.process_time()
    assert len(list(json_rows(lines, strict=True))) == written.count('"s"')
    # A step of quadratic time would take half a minute.
    assert time.process_time() - started < 5
