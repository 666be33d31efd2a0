"""Tables of reading times: their rows, texts, names and files, and refused tables and settings."""

from typing import Any

import polars as pl
import pytest
from reading_cases import settings_of

from hatchery.errors import ConfigError, EvaluationError
from hatchery.evaluation.reading_times.table import ReadTable, read_table, table_files


def table_of(source: Any, **keys: Any) -> ReadTable:
    return read_table(source, settings_of(**keys))


def test_rows_are_grouped_into_texts_by_item_in_the_order_of_positions(make_source) -> None:
    source = make_source(
        {
            "a.csv": "participant,item,position,word,rt\n"
            "p1,b,2, dog ,300\np1,b,10,sees,NA\np1,b,1,The,200.5\np2,b,1,The,\np1,a,1,NA,1e2\np2,b,2,Dog,5\np1,b,,x,7\n"
        }
    )
    table = table_of(source)
    assert [(one.item, one.positions, one.words) for one in table.passages] == [
        ("b", (1.0, 2.0, 10.0), ("The", "dog", "sees")),
        ("a", (1.0,), ("NA",)),
    ]
    assert table.columns["participant"] == ["p1", "p1", "p1", "p2", "p1"]
    assert str(list(table.columns["rt"])) == "[300.0, nan, 200.5, nan, 100.0]"
    assert table.counts == {"without_word": 1, "other_word": 1}, "the row with another word at b:2 is left out"


def test_only_the_rows_of_a_language_are_read(make_source) -> None:
    content = "lang,participant,item,position,word,rt\nen,p,1,1,dog,3\ndu,p,1,1,hond,4\nen,p,1,2,sees,5\n"
    table = table_of(make_source({"a.csv": content}), only={"lang": "du"})
    assert table.passages[0].words == ("hond",) and list(table.columns["rt"]) == [4.0]
    with pytest.raises(EvaluationError, match=r"a\.csv: the table has no row with a word and lang = fr"):
        table_of(make_source({"a.csv": content}), only={"lang": "fr"})


def test_words_of_texts_may_be_in_a_table_of_their_own(make_source) -> None:
    files = {
        "times.csv": "participant,item,position,word,rt\np,1,2,dog,3\np,1,3,cat,4\np,2,1,x,5\n",
        "texts.csv": "item,position,word\n1,1,The\n1,2,dog\n1,3,sees\n1,2,cat\n",
    }
    table = table_of(make_source(files), files="times.csv", texts="texts.csv")
    assert table.passages[0].words == ("The", "dog", "sees"), "of two rows of a word, the first counts"
    assert list(table.columns["position"]) == [2.0] and table.counts["other_word"] == 2


def test_the_first_rows_of_a_table_may_be_those_of_another_language(make_source) -> None:
    content = "lang,participant,item,position,word,rt\nen,p,1,1,dog,3\ndu,p,1,1,hond,4\n"
    settings = settings_of(only={"lang": "du"})
    assert read_table(make_source({"a.csv": content}), settings, lambda name: 1).passages == []
    assert len(read_table(make_source({"a.csv": content}), settings, lambda name: 2).passages) == 1


@pytest.mark.parametrize(
    ("row", "keys", "message"),
    [
        ("p,1,1,dog,abc", {}, r"a\.csv:2: rt: got 'abc', expected a number or a missing value"),
        ("p,,1,dog,1", {}, r"a\.csv:2: item: got '', expected a name"),
        ("p,1,one,dog,1", {}, r"a\.csv:2: position: got 'one', expected a number"),
        ("p,1,1,dog,1", {"response": "ffd"}, r"a\.csv:2: the field 'ffd' is missing; the record has: item, "),
    ],
)
def test_a_mistake_is_reported_with_its_line(make_source, row: str, keys: dict, message: str) -> None:
    source = make_source({"a.csv": f"participant,item,position,word,rt\n{row}\n"})
    with pytest.raises(EvaluationError, match=message):
        table_of(source, **keys)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"participant": None}, "random_effects: got 'slopes', expected none, because `participant` is null"),
        ({"drop_sentence_ends": True}, "drop_sentence_ends: got true, expected false, or a column of the sentences"),
        ({"word_boundaries": "corrected", "joined_by": ""}, "word_boundaries: got 'corrected', expected as_tokens"),
        ({"lowest": 3.0, "highest": 2.0}, "lowest: got 3, expected at most `highest`, 2"),
        (
            {"predictors": {"surprisal": 1}},
            "predictors: got 'surprisal', which is a reserved name; give the column another",
        ),
    ],
)
def test_settings_that_do_not_fit_are_refused(keys: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        settings_of(**keys)


def test_names_are_equal_without_white_space_and_as_whole_numbers_and_words_are_cleaned(make_source, tmp_path) -> None:
    made = pl.DataFrame(
        {"participant": ["p", " p ", "q"], "item": [1.0, 1.0, 2.0], "position": [1, 2, 1], "rt": [3, 4, 5]}
    ).with_columns(word=pl.Series(["the", "dog\u2019s", "x"]))
    made.write_parquet(tmp_path / "made.parquet")
    source = make_source({"a.parquet": (tmp_path / "made.parquet").read_bytes()})
    plain, cleaned = (table_of(source, **keys) for keys in ({}, {"cleaning": "minimal"}))
    assert plain.columns["participant"] == ["p", "p", "q"] and plain.columns["item"] == ["1", "1", "2"]
    assert plain.passages[0].words == ("the", "dog\u2019s") and cleaned.passages[0].words == ("the", "dog's")


def test_the_files_of_a_table_are_its_times_texts_and_frequencies(make_source) -> None:
    files = {
        "times.csv": "participant,item,position,word,rt\np,1,1,dog,3\n",
        "texts.csv": "item,position,word\n1,1,dog\n1,two,cat\n",
        "counts.csv": "word,count\ndog,5\ncat,many\n",
        "other.csv": "",
    }
    source, named = make_source(files), {"files": "times.csv", "texts": "texts.csv", "frequencies": "counts.csv"}
    assert table_files(source, settings_of(**named)) == ["times.csv", "texts.csv", "counts.csv"]
    assert table_files(source, settings_of(files="times.csv", texts="*times.csv")) == ["times.csv"]
    # Planning reads only the first rows.
    assert read_table(source, settings_of(**named), lambda name: 1).frequencies == {"dog": 5}
    with pytest.raises(EvaluationError, match=r"texts\.csv:3: position: got 'two', expected a number"):
        table_of(source, **named)
    with pytest.raises(EvaluationError, match=r"counts\.csv:3: count: got 'many', expected a number of occurrences"):
        table_of(source, **named | {"texts": None})
