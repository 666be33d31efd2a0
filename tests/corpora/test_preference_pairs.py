"""Preference pairs from tables: chosen and rejected texts, prompts, splits, and pairs that are rejected."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hatchery.artifacts.manifests import read_manifest, stage_run
from hatchery.corpora.documents import RawDocument, ReaderContext, Rejections
from hatchery.corpora.readers.parallel_text import EMPTY_SIDE
from hatchery.corpora.readers.preference_pairs import EQUAL_TEXTS, READER, PreferencePairsOptions
from hatchery.corpora.settings import ConvertSettings
from hatchery.corpora.stages.convert_corpus import convert_corpus
from hatchery.errors import ConfigError, SourceError
from hatchery.raw.registration import RawSource, register_source
from hatchery.tokenization.documents import read_batches
from hatchery.typed import build

Sources = Callable[..., RawSource]
BLIMP = [
    {"sentence_good": "The cat  sleeps.", "sentence_bad": "The cat sleep.", "UID": "agreement"},
    {"sentence_good": "Dogs bark.", "sentence_bad": "Dogs barks.", "UID": "agreement"},
]


def lines(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def documents_of(source: RawSource, rejections: Rejections | None = None, **options: Any) -> list[RawDocument]:
    given = build(PreferencePairsOptions, options)
    context = ReaderContext("mine", given, rejections or Rejections(), lambda paragraph: [paragraph])
    return [document for file in READER.files(source, given) for document in READER.read(source, file, context)]


def test_the_rows_of_blimp_need_no_names_of_columns(source_of: Sources) -> None:
    found = documents_of(source_of(agreement__jsonl=lines(BLIMP)), files={"any": "*.jsonl"})
    assert [document.text for document in found] == ["The cat sleeps.\nThe cat sleep.", "Dogs bark.\nDogs barks."]
    assert {document.split for document in found} == {None}


def test_stories_of_ones_own_have_prompts_nested_columns_and_splits(source_of: Sources) -> None:
    rows = [
        {"start": "Once upon a time", "ends": {"good": "a fox\n\nran home.", "bad": "fox a ran."}},
        {"start": " ", "ends": {"good": "It rained.", "bad": "It it rained."}},
    ]
    source = source_of(one__jsonl=lines(rows[:1]), two__json=json.dumps(rows[1:]))
    columns = {"chosen": "ends.good", "rejected": "ends.bad", "prompt": "start"}
    found = documents_of(source, files={"train": "one.jsonl", "dev": "two.json"}, **columns)
    assert [(document.text, document.split) for document in found] == [
        ("Once upon a time\na fox ran home.\nfox a ran.", "train"),
        ("It rained.\nIt it rained.", "dev"),
    ]


def test_pairs_with_an_empty_text_or_two_equal_texts_are_counted(source_of: Sources) -> None:
    table = "good,bad\nA dog.,\nA cat.,A  cat.\nA fox.,A foxes.\n"
    rejections = Rejections()
    options = {"files": {"any": "*.csv"}, "chosen": "good", "rejected": "bad"}
    found = documents_of(source_of(pairs__csv=table), rejections, **options)
    assert [document.text for document in found] == ["A fox.\nA foxes."]
    assert rejections.counts == {EMPTY_SIDE: 1, EQUAL_TEXTS: 1}


def test_a_missing_column_is_named_with_its_line(source_of: Sources) -> None:
    with pytest.raises(SourceError, match=r"line 1.*worse"):
        documents_of(source_of(pairs__jsonl=lines(BLIMP)), files={"any": "*.jsonl"}, rejected="worse")


def test_one_column_cannot_be_two_texts_of_a_pair() -> None:
    with pytest.raises(ConfigError, match="expected different columns for all texts of a pair"):
        build(PreferencePairsOptions, {"files": {"any": "*"}, "prompt": "sentence_good"})


def test_decontamination_removes_whole_pairs(tmp_path: Path) -> None:
    for name, rows in (("pairs", BLIMP), ("tests", [{"text": "We know that dogs bark at night."}])):
        (tmp_path / name).mkdir()
        (tmp_path / name / "rows.jsonl").write_text(lines(rows), encoding="utf-8")
        register_source(name, tmp_path / name, tmp_path / f"{name}.json")
    settings = {
        "sources": [{"name": "mine", "reader": "preference_pairs", "options": {"files": {"train": "*.jsonl"}}}],
        "decontamination": {"data": ["tests"], "words": 2},
    }
    output = tmp_path / "corpus/manifest.json"
    with stage_run(output, {"stage": "convert_corpus", **settings}) as run:
        sources = {"mine": tmp_path / "pairs.json"}, {"tests": tmp_path / "tests.json"}
        convert_corpus(build(ConvertSettings, settings), sources[0], run, workers=1, evaluation=sources[1])
    texts = [
        text for path in read_manifest(output).files(".parquet") for batch in read_batches(path) for text in batch.texts
    ]
    assert texts == ["The cat sleeps.\nThe cat sleep."]
