"""Users' texts in common formats become a table of words; mistakes are reported in one line."""

import csv

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from baseline_cases import measured
from first_looks import first_problem

from hatchery.artifacts.manifests import read_manifest
from hatchery.errors import ConfigError, EvaluationError, HatcheryError
from hatchery.evaluation.evaluation import Evaluated
from hatchery.evaluation.first_rows import check_registered
from hatchery.evaluation.runtime import load_sentence_model
from hatchery.evaluation.stages.measure_surprisal import rows_of_words
from hatchery.evaluation.surprisal import words as words_module
from hatchery.evaluation.surprisal.measure_texts import rare_characters_note
from hatchery.evaluation.surprisal.settings import SurprisalSettings
from hatchery.evaluation.surprisal.words import SCHEMA, word_surprisals
from hatchery.typed import build

TEXTS = ["The dogs' house.", "Überall, the cat sleeps"]
TABLE = 'item,sentence,more\n1,"The dogs\' house.",a\n2,"Überall, the cat sleeps",b\n'


@pytest.mark.parametrize(
    ("name", "content", "column", "lines"),
    [
        ("a.txt", "\ufeffThe dogs' house.\n\nÜberall, the cat sleeps", None, [1, 3]),
        ("a.csv", TABLE, "sentence", [2, 3]),
        ("a.csv", TABLE.replace(",", ";").replace("Überall;", "Überall,"), "sentence", [2, 3]),
        ("a.tsv", 'sentence\tn\nThe dogs\' house.\t1\n"Überall, the cat sleeps"\t2\n', "sentence", [2, 3]),
        ("a.jsonl", '{"x": {"s": "The dogs\' house."}}\n{"x": {"s": "Überall, the cat sleeps"}}\n', "x.s", [1, 2]),
        ("a.parquet", None, "sentence", [1, 2]),
    ],
)
def test_every_word_is_a_row_that_says_where_its_text_stands(
    make_source, manifest_of, tmp_path, name, content, column, lines
):
    if content is None:
        pq.write_table(pa.table({"sentence": TEXTS}), tmp_path / "made.parquet")
        content = (tmp_path / "made.parquet").read_bytes()
    source = make_source({name: content})
    manifest = measured(source, manifest_of("bert"), tmp_path / "out", column=column)
    table = pl.read_parquet(manifest.file("surprisal.parquet"))
    model = load_sentence_model(manifest_of("bert"), torch.device("cpu"))
    assert table.select(list(SCHEMA)).equals(word_surprisals(model, TEXTS))
    assert table["file"].unique().to_list() == [name]
    assert table["line"].to_list() == [lines[0]] * 3 + [lines[1]] * 4
    with (tmp_path / "out/surprisal.csv").open(encoding="utf-8", newline="") as text:
        rows = list(csv.DictReader(text))
    assert [float(row["surprisal"]) for row in rows] == table["surprisal"].to_list()
    assert manifest.measures["words"] == 7 and manifest.measures["scoring"] == "pll"
    assert check_registered(source.manifest, {"here": {"kind": "surprisal", "settings": {"column": column}}}) is None


def test_the_mean_and_the_words_of_the_text_that_is_drawn_are_rows_of_the_tables(make_source, manifest_of, tmp_path):
    source = make_source({"a.txt": "no\n=cat/dog the|old|house\n"})
    manifest = measured(source, manifest_of("gpt2"), tmp_path / "out", separator="|", drawn=2)
    rows = rows_of_words(Evaluated(manifest, read_manifest(manifest_of("gpt2")), "mine"))
    words = pl.read_parquet(manifest.file("surprisal.parquet"))
    bits = words["surprisal"].to_list()
    mean = sum(bits) / 4
    assert rows[0]["value"] == pytest.approx(mean) and rows[0]["items"] == 4
    assert rows[0]["sampling_deviation"] == pytest.approx((sum((one - mean) ** 2 for one in bits) / 3 / 4) ** 0.5)
    assert [(row["task"], row["level"]) for row in rows[1:]] == [
        ("mine/01/'=cat/dog the", "word"),
        ("mine/02/old", "word"),
        ("mine/03/house", "word"),
    ]
    assert [row["value"] for row in rows[1:]] == words["surprisal"].to_list()[1:]
    assert ["items: 4" in rows[0]["basis"], *("items: 1;" in row["basis"] for row in rows[1:])] == [True] * 4


def test_a_figure_shows_the_first_forty_words_and_a_word_without_a_token_is_no_row(make_source, manifest_of, tmp_path):
    model = read_manifest(manifest_of("bert"))
    forty = [f"mine/{place + 1:02d}/w{place:02d}" for place in range(40)]
    # With a leading blank, the first word has four tokens of one byte. The tokens of the other text are un ##happ
    # ##ily, so no token begins in its second word.
    for content, name, blank, tasks, items, tokens in (
        ("|".join(f"w{place:02d}" for place in range(45)), "gpt2", True, forty, 45, 4),
        ("unha|pp|ily", "bert", False, ["mine/01/unha", "mine/03/ily"], 2, 2),
    ):
        source = make_source({"a.txt": f"{content}\n"})
        manifest = measured(source, manifest_of(name), tmp_path / name, separator="|", drawn=1, leading_blank=blank)
        rows = rows_of_words(Evaluated(manifest, model, "mine"))
        assert [row["task"] for row in rows[1:]] == tasks and rows[0]["items"] == items
        assert pl.read_parquet(manifest.file("surprisal.parquet"))["tokens"][0] == tokens
    for content, known in (("no\n", False), ("no\nyes\n", True)):
        manifest = measured(make_source({"a.txt": content}), manifest_of("gpt2"), tmp_path / content[:-1], drawn=1)
        (mean, *_) = rows_of_words(Evaluated(manifest, model, "mine"))
        assert (mean["sampling_deviation"] is not None) is known


def test_a_stage_scores_words_as_its_settings_ask(make_source, manifest_of, tmp_path):
    source, way = make_source({"a.txt": "the dog\nunhappily\n"}), "pll_within_word_l2r"
    manifest = measured(source, manifest_of("bert"), tmp_path / "out", scoring=way)
    table = pl.read_parquet(manifest.file("surprisal.parquet"))
    model = load_sentence_model(manifest_of("bert"), torch.device("cpu"))
    expected, plain = (
        word_surprisals(model, ["the dog", "unhappily"], scoring=asked)["surprisal"].to_list() for asked in (way, "pll")
    )
    assert table["surprisal"].to_list() == expected != plain and manifest.measures["scoring"] == way


@pytest.mark.parametrize(
    ("files", "settings", "told"),
    [
        ({"a.csv": TABLE}, {"column": "text"}, r"a\.csv:2: the field 'text' is missing; the record has: item, more, s"),
        ({"a.csv": TABLE}, {}, r"a\.csv: got no `column`, expected the name of the column with the texts"),
        (
            {"a.txt": "a dog\n"},
            {"column": "text"},
            r"a\.txt: got a `column`, expected none: every line of the file is a text",
        ),
        ({"a.csv": "sentence\nNA\n \nnan\n"}, {"column": "sentence"}, r"a\.csv: the file contains no text"),
        ({"a.csv": TABLE}, {"column": "sentence", "drawn": 3}, r"drawn: got 3, expected at most 2, the"),
        ({"a.csv": "i,w\n1,a\nNA,b\n"}, {"column": "w", "text": "i"}, r"a\.csv:3: i: got 'NA', expected the name of"),
        (
            {"a.csv": "i,n,w\n1,1,a\n1,x,b\n"},
            {"column": "w", "text": "i", "order": "n"},
            r"a\.csv:3: n: got 'x', expected a number",
        ),
        (
            {"a.csv": "p,i,n,w\n1,1,1,a\n2,1,1,a\n"},
            {"column": "w", "text": "i", "order": "n"},
            r"a\.csv:3: n 1 occurs twice in the text of i 1, also in a\.csv:2; does `text` lack a column",
        ),
        ({"a.csv": "i|w\n"}, {"column": "w"}, r"a\.csv: the file contains no records"),
        ({"a.txt": " \n\n"}, {}, r"a\.txt: the file contains no text"),
        ({"a.txt": "a dog\n", "b.txt": " \n\n"}, {}, r"b\.txt: the file contains no text"),
        ({"a.txt": "a\n|||\n"}, {"separator": "|"}, r"a\.txt:2: there is no word in '\|\|\|'"),
        ({"a.txt": "Käse\n".encode("latin-1")}, {}, r"a\.txt.*UTF-8"),
        (
            {"a.xlsx": b"PK\x03\x04"},
            {"column": "sentence"},
            r"a\.xlsx: spreadsheets of this format .* save the spreadsheet as \.csv",
        ),
        ({"a.doc": b"\xd0"}, {}, r"a\.doc: the ending '\.doc' is unknown, expected \.txt"),
        ({"a.txt": "a\n"}, {"files": "*.csv"}, r"no file matches '\*\.csv'"),
        ({"a.jsonl": '{"s": 1}\n'}, {"column": "s"}, r"a\.jsonl:1: the field 's' must be a non-empty text, got 1"),
    ],
)
def test_what_is_wrong_with_texts_is_one_line_before_the_training_and_in_the_job(
    make_source, manifest_of, tmp_path, files, settings, told
):
    source = make_source(files)
    assert "\n" not in str(first_problem(build(SurprisalSettings, settings), source.root))
    with pytest.raises(HatcheryError, match=f"here: .*{told}"):
        check_registered(source.manifest, {"here": {"kind": "surprisal", "settings": settings}})
    with pytest.raises(HatcheryError, match=told):
        measured(source, manifest_of("bert"), tmp_path / "out", **settings)
    assert not (tmp_path / "out/manifest.json").exists()


def test_texts_that_do_not_fit_the_model_or_the_settings_are_named(make_source, manifest_of, tmp_path, monkeypatch):
    source = make_source({"a.txt": "the dog\n" + "the dog sleep " * 20 + "\n"})
    # The texts are in different chunks.
    monkeypatch.setattr(words_module, "TEXTS_AT_ONCE", 1)
    with pytest.raises(EvaluationError, match=r"^a\.txt:2: becomes 60 tokens, expected at most 30 for a masked model"):
        measured(source, manifest_of("bert"), tmp_path / "out")
    with pytest.raises(EvaluationError, match="drawn: got 3, expected at most 2, the"):
        measured(source, manifest_of("gpt2"), tmp_path / "out", drawn=3)
    with pytest.raises(ConfigError, match="'pll' needs a masked"):
        measured(source, manifest_of("gpt2"), tmp_path / "out", scoring="pll")


def test_rare_characters_are_named_from_the_most_frequent_on_and_the_others_counted() -> None:
    rare = {"\u200b": 1200, "я": 7, "ж": 7} | {chr(0x4E00 + number): 2 for number in range(7)}
    note = rare_characters_note(rare)
    named = [
        # A character without a glyph is named only by its number.
        "U+200B in 1,200",
        "ж U+0436 in 7",
        "я U+044F in 7",
        *(f"{chr(c)} U+{c:04X} in 2" for c in range(0x4E00, 0x4E05)),
    ]
    assert f"vocabulary ({', '.join(named)} and 2 more): " in note and "cleaning" not in note
    del rare["\u4e06"]
    assert f"({', '.join(named)} and 1 more): " in rare_characters_note(rare)
    assert "; if the model's corpus was cleaned, `cleaning: " in rare_characters_note({"\u2019": 3})
