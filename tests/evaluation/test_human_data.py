"""Tables of reading times and of children's words: planning an experiment reports their mistakes."""

import json
from pathlib import Path
from typing import Any

import pytest
from first_looks import first_problem

from hatchery.evaluation.surprisal.human_data import NUMBERS, read_children, read_contexts, read_words
from hatchery.evaluation.surprisal.settings import AcquisitionSettings, ReadingSettings
from hatchery.raw.registration import open_source, register_source
from hatchery.typed import build

COLUMNS = ("item", "word", "prev_item", "prev_word", *NUMBERS)
ROW = dict(zip(COLUMNS, ["The wée", "男", "The", "wée", *["5"] * len(NUMBERS)], strict=True))
CHILDREN = [["word", "16", "17", "18"], ["dög", "0", "0.5", "1"], ["猫", "", "NA", "NaN"]]


def table(rows: list[list[str]]) -> str:
    return "".join(",".join(row) + "\n" for row in rows)


def reading_rows(number: int = 30) -> list[list[str]]:
    """Return rows with increasing times."""
    rising = {name: [str(place + 100) for place in range(number)] for name in NUMBERS[4:]}
    rows = [{**ROW, **{name: values[place] for name, values in rising.items()}} for place in range(number)]
    return [list(COLUMNS), *(list(row.values()) for row in rows)]


def problem_of_reading(folder: Path, rows: list[list[str]]) -> str | None:
    (folder / "reading_data.csv").write_text(table(rows), encoding="utf-8")
    return first_problem(build(ReadingSettings, {"files": "*reading_data.csv"}), folder)


@pytest.mark.parametrize(
    ("column", "cell", "expected"),
    [
        ("RTfirstfix", "0", None),
        ("RTfirstfix", " 203.5 ", None),
        ("RTgopast", "", None),
        ("RTgopast", "NA", None),
        ("Subtlex_log10", "-0.5", None),
        ("length", "1e1", None),
        ("RTfirstpass", "-1", "RTfirstpass: got -1, expected at least 0"),
        ("self_paced_reading_time", "-0.5", "self_paced_reading_time: got -0.5, expected at least 0"),
        ("prev_length", "-2", "prev_length: got -2, expected at least 0"),
        *(
            (column, cell, f"{column}: got {cell!r}, expected a number such as 203.5, or an empty cell")
            for column in ("RTrightbound", "Subtlex_log10")
            for cell in ("inf", "-inf", "1e400", "1_000", "１２", "٣", "None", "null", "0x10", "12 ms", "1.5.2")
        ),
        ("word", "", "the field 'word' must be a non-empty text"),
        ("prev_item", "", "prev_word is set but prev_item is empty, expected the text before the word"),
    ],
)
def test_a_cell_of_reading_times_is_checked_by_row_and_column(
    tmp_path: Path, column: str, cell: str, expected: str | None
) -> None:
    rows = reading_rows(700)
    # The row is past the rows that planning reads of a large file.
    rows[650][COLUMNS.index(column)] = cell
    problem = problem_of_reading(tmp_path, rows)
    assert problem is None if expected is None else problem is not None and problem.startswith("reading_data.csv:651: ")
    assert expected is None or expected in (problem or "")


def test_rows_that_are_cut_and_tables_without_times_are_refused(tmp_path: Path) -> None:
    rows = reading_rows()
    assert problem_of_reading(tmp_path, rows) is None
    cut = [*rows[:-1], rows[-1][:-1]]
    assert (
        problem_of_reading(tmp_path, cut)
        == "reading_data.csv:31: has 12 cells, expected 13, the number of cells in the header"
    )
    place = COLUMNS.index("RTgopast")
    for values, n in ((["7"] * 30, 30), ([""] * 22 + ["1", "2"] * 4, 8)):
        changed = [
            rows[0],
            *([*row[:place], value, *row[place + 1 :]] for row, value in zip(rows[1:], values, strict=True)),
        ]
        assert problem_of_reading(tmp_path, changed) == (
            f"reading_data.csv: RTgopast: got {n} rows without an empty cell in this column and in Subtlex_log10, "
            "length, context_length, expected at least 9, with different times"
        )
    # Self-paced reading has 17 coefficients, including the previous word's. A word without a previous word is left out.
    few = [*reading_rows(18)[:-1], [*rows[1][:2], "", "", *rows[1][4:]]]
    unknown = [
        *reading_rows(18)[:-1],
        ["NA" if name == "prev_length" else cell for name, cell in zip(*rows[:2], strict=True)],
    ]
    for changed in (few, unknown):
        assert "self_paced_reading_time: got 17 rows" in (problem_of_reading(tmp_path, changed) or "")
    assert problem_of_reading(tmp_path, reading_rows(18)) is None


def acquisition_problem(folder: Path, children: str, contexts: Any) -> str | None:
    (folder / "cdi_human.csv").write_text(children, encoding="utf-8")
    text = contexts if isinstance(contexts, str) else json.dumps(contexts)
    (folder / "cdi_childes.json").write_text(text, encoding="utf-8")
    settings = {"contexts": "cdi_childes.json", "children": "cdi_human.csv"}
    return first_problem(build(AcquisitionSettings, settings), folder)


CONTEXTS = {"dög": [{"context": ""}, {"context": "the"}], "猫": [{"context": "the"}, {"context": "男"}]}


@pytest.mark.parametrize(("shortest", "words"), [(1, ["dög", "猫", "or"]), (2, ["dög", "or"]), (3, ["dög"])])
def test_words_of_fewer_characters_than_asked_for_are_left_out(make_source, shortest: int, words: list[str]) -> None:
    text = json.dumps({**CONTEXTS, "or": [{"context": "red"}]})
    found = read_contexts(make_source({"words.json": text}), "words.json", shortest)
    assert list(found) == words and found["dög"] == ["", "the"]


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("0", None),
        ("1.0", None),
        ("1.01", "17: got 1.01, expected a share from 0 to 1; divide percentages by 100"),
        ("45", "17: got 45, expected a share from 0 to 1; divide percentages by 100"),
        ("-0.1", "17: got -0.1, expected a share from 0 to 1"),
        ("50%", "17: got '50%', expected a number"),
        ("０.５", "17: got '０.５', expected a number"),
        (None, "has 3 cells, expected 4, the number of cells in the header"),
    ],
)
def test_shares_of_children_are_checked_by_row_and_month(
    tmp_path: Path, cell: str | None, expected: str | None
) -> None:
    rows = [*CHILDREN, ["birdie", "0.1", *(["0.2"] if cell is None else [cell, "0.3"])]]
    problem = acquisition_problem(tmp_path, table(rows), CONTEXTS)
    assert problem is None if expected is None else problem is not None and problem.startswith("cdi_human.csv:4: ")
    assert expected is None or (problem or "").endswith(expected) or expected in (problem or "")


def test_months_are_written_in_plain_digits(tmp_path: Path) -> None:
    problem = acquisition_problem(tmp_path, "word,１６,²\nbird,0.1,0.2\n", CONTEXTS)
    assert problem == "cdi_human.csv:2: no column has an age in months as its name, such as '16'"


@pytest.mark.parametrize(
    ("contexts", "expected"),
    [
        (CONTEXTS, None),
        ({**CONTEXTS, "cat": [{"context": None}]}, "'cat': context 1: got None, expected a text, which may be empty"),
        ({**CONTEXTS, "cat": [{"context": "a"}, {"context": 5}]}, "'cat': context 2: got 5, expected a text"),
        ({"dog": [{"context": "a"}, {"context": "b"}, {"context": "a"}]}, "'dog': context 3: 'a' occurs twice"),
        ('{"dog": [{"context": "a"}], "dog": [{"context": "b"}]}', "ValueError: the key 'dog' occurs twice"),
        ('{"dog": [{"context": "\\ud800"}]}', "'dog': context 1: character 0 is half of a surrogate pair"),
    ],
)
def test_contexts_are_texts_that_differ(tmp_path: Path, contexts: Any, expected: str | None) -> None:
    problem = acquisition_problem(tmp_path, table(CHILDREN), contexts)
    assert problem is None if expected is None else problem is not None and problem.startswith("cdi_childes.json: ")
    assert expected is None or expected in (problem or "")


def test_missing_numbers_are_missing_and_others_are_themselves(tmp_path: Path) -> None:
    (tmp_path / "cdi_human.csv").write_text(table(CHILDREN), encoding="utf-8")
    (tmp_path / "reading_data.csv").write_text(table(reading_rows()), encoding="utf-8")
    register_source("mine", tmp_path, tmp_path.with_suffix(".json"))
    source = open_source(tmp_path.with_suffix(".json"))
    children = read_children(source, "cdi_human.csv")
    assert (
        children["dög"] == {16.0: 0.0, 17.0: 0.5, 18.0: 1.0} and str(list(children["猫"].values())) == "[nan, nan, nan]"
    )
    second = read_words(source, "reading_data.csv")[1]
    assert (second.context, second.word, second.before) == ("The wée", "男", ("The", "wée"))
    assert second.numbers == {**dict.fromkeys(NUMBERS[:4], 5.0), **dict.fromkeys(NUMBERS[4:], 101.0)}
