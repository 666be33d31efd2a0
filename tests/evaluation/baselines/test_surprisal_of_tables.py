"""Users' tables with one word per row: further columns, missing cells, and characters without a token."""

import csv
import json
import math
import random

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from baseline_cases import build as build_model
from baseline_cases import measured
from first_looks import first_problem, notes_of

from hatchery.evaluation.runtime import load_sentence_model
from hatchery.evaluation.surprisal import words
from hatchery.evaluation.surprisal.measure_texts import as_text
from hatchery.evaluation.surprisal.measurements import own_columns
from hatchery.evaluation.surprisal.settings import SurprisalSettings
from hatchery.evaluation.surprisal.words import word_surprisals
from hatchery.typed import build

CPU = torch.device("cpu")
READ = {
    "1": ["The", "dog's", "house", "sleeps."],
    "2": ["Überall", "schläft", "die", "Tür"],
    "3": ["黒猫", "が", "New York", "眠る"],
    "4": ["कुत्ता", "सोता", "है"],
}


@torch.no_grad()
def bits_by_hand(text):
    """Return -log2 p of a text under the model "gpt2", whose tokenizer has one token per byte."""
    tokenizer, network = build_model("gpt2")
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    assert len(ids) == len(text.encode())
    logits = network(torch.tensor([[tokenizer.eos_token_id, *ids]])).logits[0, :-1].double()
    return -float(logits.log_softmax(-1)[range(len(ids)), ids].sum()) / math.log(2)


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet"])
def test_rows_of_words_are_joined_to_texts_and_each_row_gets_the_surprisal_of_its_word(
    make_source, manifest_of, tmp_path, ending
):
    rows = [
        {"item": item, "pos": place, "word": word, "rt": f"{300 + place}.5"}
        for item, its in READ.items()
        for place, word in enumerate(its, start=9)
    ]
    # Positions sort as numbers: "9" < "10" < "11". The rows of all texts are shuffled.
    random.Random(1).shuffle(rows)
    if ending == ".csv":
        content = "item;pos;word;rt\n" + "".join(";".join(map(str, row.values())) + "\n" for row in rows)
    elif ending == ".jsonl":
        content = json.dumps(rows, ensure_ascii=False)
    else:
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / "made.parquet")
        content = (tmp_path / "made.parquet").read_bytes()
    name = f"a{ending}"
    source, settings = make_source({name: content}), {"column": "word", "text": "item", "order": "pos"}
    assert first_problem(build(SurprisalSettings, settings), source.root) is None
    manifest = measured(source, manifest_of("gpt2"), tmp_path / "out", **settings)
    table = pl.read_parquet(manifest.file("surprisal.parquet"))
    assert table.columns[-3:] == ["item", "pos", "rt"], "the column of the words is ours"
    first_line = 2 if ending == ".csv" else 1
    for row in table.iter_rows(named=True):
        its = rows[row["line"] - first_line]
        assert [row["word"], row["item"], row["pos"], row["rt"]] == [
            its["word"],
            its["item"],
            str(its["pos"]),
            its["rt"],
        ]
        before = READ[row["item"]][: its["pos"] - 9]
        text = " ".join([*before, row["word"]])
        expected = bits_by_hand(text) - (bits_by_hand(" ".join(before)) if before else 0)
        assert row["surprisal"] == pytest.approx(expected, rel=1e-4)
        assert row["tokens"] == len(row["word"].encode()) + bool(before)
        assert row["position"] == its["pos"] - 8
    assert len(table) == len(rows) and manifest.measures["texts"] == 4


def test_texts_without_blanks_are_joined_without_blanks_and_several_columns_tell_texts_apart(
    make_source, manifest_of, tmp_path
):
    content = "who\titem\tword\nb\t1\t黒\na\t1\t黒\nb\t1\t猫\na\t1\t眠る\n"
    settings = {"column": "word", "text": ["who", "item"], "joined_by": ""}
    manifest = measured(make_source({"a.tsv": content}), manifest_of("gpt2"), tmp_path / "out", **settings)
    table = pl.read_parquet(manifest.file("surprisal.parquet"))
    assert table.select("line", "sentence", "word", "who").rows() == [
        (2, 1, "黒", "b"),
        (4, 1, "猫", "b"),
        (3, 2, "黒", "a"),
        (5, 2, "眠る", "a"),
    ]
    assert table["surprisal"][3] == pytest.approx(bits_by_hand("黒眠る") - bits_by_hand("黒"), rel=1e-4)


def test_all_columns_of_a_table_stay_also_those_that_are_called_as_ours(make_source, manifest_of, tmp_path):
    content = 'word,sentence,NA,,file\nx,The dog,NA,"=1+1",\ny,"A\ncat",2,,f\n'
    manifest = measured(make_source({"a.csv": content}), manifest_of("gpt2"), tmp_path / "out", column="sentence")
    table = pl.read_parquet(manifest.file("surprisal.parquet"))
    own = table.select("line", "own_word", "own_sentence", "NA", "own_rows", "own_file")
    assert own.rows()[::2] == [(2, "x", "The dog", "NA", "=1+1", None), (3, "y", "A\ncat", "2", None, "f")]
    with manifest.file("surprisal.csv").open(encoding="utf-8", newline="") as text:
        rows = list(csv.DictReader(text))
    assert [row["own_rows"] for row in rows] == ["'=1+1", "'=1+1", "", ""], "no formula for a spreadsheet"
    assert rows[3]["own_sentence"] == "A\ncat" and rows[3]["word"] == "cat"


MISSING = {
    "a.csv": 'id,s\n1,NA\n2,a dog\n3,""\n4,NaN\n5, nan \n6,NA is here\n',
    "a.jsonl": '{"s": null}\n{"s": "a dog"}\n{"s": ""}\n{"s": NaN}\n{"s": "nan"}\n{"s": "NA is here"}\n',
}


@pytest.mark.parametrize("name", MISSING)
def test_missing_cells_are_counted_and_never_text(make_source, manifest_of, tmp_path, capsys, name):
    source = make_source({name: MISSING[name]})
    manifest = measured(source, manifest_of("gpt2"), tmp_path / "out", column="s")
    assert (manifest.measures["texts"], manifest.measures["missing"], manifest.measures["words"]) == (2, 4, 5)
    table = pl.read_parquet(manifest.file("surprisal.parquet"))
    assert table["line"].to_list() == ([3] * 2 + [7] * 3 if name == "a.csv" else [2] * 2 + [6] * 3)
    messages = capsys.readouterr().err
    (note,) = notes_of(build(SurprisalSettings, {"column": "s"}), source.root)
    assert f"note: mine: {note}\n" in messages, "in the plan and in the job"
    first = {"a.csv": "a.csv:2", "a.jsonl": "a.jsonl:1"}[name]
    assert note.startswith(f"4 cells are missing (empty, NA, N/A, #N/A...) and not scored, the first in {first}; ")
    kept = measured(source, manifest_of("gpt2"), tmp_path / "kept", column="s", missing=[])
    # Null, NaN and empty cells are missing with any value of `missing`.
    assert kept.measures["missing"] == (3 if name == "a.jsonl" else 1)


def test_a_column_that_looks_like_words_is_noted(make_source):
    for count, noted in ((4, 0), (5, 1)):
        few = make_source({"a.csv": "word\n" + "dog\n" * count})
        assert len(notes_of(build(SurprisalSettings, {"column": "word"}), few.root)) == noted
    source = make_source({"a.csv": "item;word\n" + "".join(f"1;w{number}\n" for number in range(9)) + "1;New York\n"})
    (note,) = notes_of(build(SurprisalSettings, {"column": "word"}), source.root)
    assert "9 of 10 texts in the column 'word' are one word" in note and "`text: item`" in note
    assert notes_of(build(SurprisalSettings, {"column": "word", "text": "item"}), source.root) == []


def test_characters_without_a_token_are_noted_and_cleaning_makes_them_plain(make_source, manifest_of, tmp_path, capsys):
    source = make_source({"a.txt": "the dog’s “house” \u00a0sleeps\nno—yes été\n"})
    raw = measured(source, manifest_of("gpt2"), tmp_path / "raw")
    table = pl.read_parquet(raw.file("surprisal.parquet"))
    rare = {"dog’s", "“house”", "sleeps", "no—yes", "été"}
    assert {*table.filter("in_bytes")["word"]} == rare and not table["unknown"].any()
    assert raw.measures["rare_characters"] == {"\u00a0": 1, "é": 1, "—": 1, "’": 1, "“": 1, "”": 1}
    assert raw.measures["words_in_bytes"] == 5
    messages = capsys.readouterr().err
    assert "note: mine: words have characters without a token" in messages
    assert "’ U+2019 in 1" in messages and "U+00A0 in 1" in messages and "`cleaning: minimal or full`" in messages
    for way, texts in {
        "minimal": ['the dog\'s "house" \u00a0sleeps', "no—yes été"],
        "full": ['the dog\'s "house" sleeps', "no - yes été"],
    }.items():
        made = measured(source, manifest_of("gpt2"), tmp_path / way, cleaning=way)
        found = pl.read_parquet(made.file("surprisal.parquet"))
        model = load_sentence_model(manifest_of("gpt2"), CPU)
        assert found["surprisal"].to_list() == word_surprisals(model, texts)["surprisal"].to_list()
    # A rare character counts in each of its words, also if a word is repeated.
    repeated = make_source({"b.txt": "été été é\nété\n"})
    twice = measured(repeated, manifest_of("gpt2"), tmp_path / "twice", files="b.txt")
    assert twice.measures["rare_characters"] == {"é": 4}
    # A character that is not in WordPiece's vocabulary is unknown; WordPiece has no byte tokens.
    unknown = word_surprisals(load_sentence_model(manifest_of("bert"), CPU), ["the 黒"])
    assert unknown.select("unknown", "in_bytes").rows() == [(False, False), (True, False)]


def test_cells_of_other_columns_are_text_and_nothing_where_they_are_missing():
    cells = [True, ["é", 1], {"a": None}, math.nan, None, "", "NA", 5, 2.5]
    assert [as_text(cell) for cell in cells] == ["true", '["é", 1]', '{"a": null}', None, None, None, "NA", "5", "2.5"]


def test_a_field_that_only_later_records_have_is_a_column(make_source, manifest_of, tmp_path):
    source = make_source(
        {"a.jsonl": '{"s": "a dog"}\n{"s": "cats", "more": 3}\n', "b.jsonl": '{"s": "x", "last": "y"}\n'}
    )
    manifest = measured(source, manifest_of("gpt2"), tmp_path / "out", column="s")
    table = pl.read_parquet(manifest.file("surprisal.parquet"))
    assert table.columns[-3:] == ["s", "more", "last"]
    assert table["more"].to_list() == [None, None, "3", None] and table["last"].to_list() == [None, None, None, "y"]
    assert table.select("file", "line", "sentence").rows()[2:] == [("a.jsonl", 2, 2), ("b.jsonl", 1, 3)]


def test_columns_called_as_ours_get_distinct_names():
    assert own_columns(["word", "own_word", "model", "more", ""]) == {
        **{"word": "own_word", "own_word": "own_own_word", "model": "own_model", "more": "more", "": "own_rows"}
    }


def test_chunks_of_texts_give_the_numbers_of_the_whole(make_source, manifest_of, tmp_path, monkeypatch):
    texts = [f"the {'old ' * (number % 5)}dog {number}" for number in range(23)]
    source = make_source({"a.csv": "s\n" + "\n".join(texts) + "\n"})
    whole = pl.read_parquet(measured(source, manifest_of("bert"), tmp_path / "a", column="s").file("surprisal.parquet"))
    monkeypatch.setattr(words, "TEXTS_AT_ONCE", 4)
    sizes: list[int] = []
    real = words.token_scores
    monkeypatch.setattr(words, "token_scores", lambda *of: (sizes.append(len(of[1])), real(*of))[1])
    parts = measured(source, manifest_of("bert"), tmp_path / "b", column="s")
    assert sizes == [4] * 5 + [3], "in memory are the texts of a chunk"
    found = pl.read_parquet(parts.file("surprisal.parquet"))
    assert found.drop("surprisal").equals(whole.drop("surprisal"))
    assert found["surprisal"].to_list() == pytest.approx(whole["surprisal"].to_list(), rel=1e-5)
    assert pl.read_csv(parts.file("surprisal.csv"))["surprisal"].to_list() == found["surprisal"].to_list()
    model = load_sentence_model(manifest_of("bert"), CPU)
    assert word_surprisals(model, texts)["sentence"].to_list() == whole["sentence"].to_list()
    # Chunks also end after 30 characters, so they have different numbers of texts.
    monkeypatch.setattr(words, "CHARACTERS_AT_ONCE", 30)
    assert word_surprisals(model, texts)["sentence"].to_list() == whole["sentence"].to_list()


@pytest.mark.parametrize("other", ["~$a.xlsx", "a.xlsx", "README.md", "README", "notes.txt", "LICENSE"])
def test_what_lies_next_to_a_table_is_left_alone(make_source, other):
    source = make_source({"a.csv": "s\na dog\n", other: b"PK\x03\x04\xff"})
    assert first_problem(build(SurprisalSettings, {"column": "s"}), source.root) is None
    assert first_problem(build(SurprisalSettings, {"column": "s", "files": "*[!v]"}), source.root) is not None
