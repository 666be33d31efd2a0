"""Lines that share an n-gram of words with evaluation data are removed from training text, and only from it, and
counted."""

import json
from pathlib import Path
from typing import Any

import pytest
from projects import rows_of

from hatchery.artifacts.manifests import Manifest, read_manifest, stage_run
from hatchery.artifacts.parquet import read_rows
from hatchery.corpora.convert import convert
from hatchery.corpora.decontamination import SHARED, Contamination
from hatchery.corpora.settings import ConvertSettings
from hatchery.errors import ConfigError, SourceError
from hatchery.experiment.text_files import CorpusFile
from hatchery.raw.registration import register_source
from hatchery.typed import build

PAIR = {
    "sentence_good": "The old dogs near the house sleep well.",
    "field": {"rule": ["a b", "The CAT; sat on a mat!"]},
}
LEAKED = 'They said: "the old, DOGS near the house" again.'
CLEAN = "The old dogs near a house sleep well."
TEXTS = {
    "one.txt": f"{CLEAN}\n{LEAKED}\nNothing here.",
    "two.txt": "A cat sat on a mat.\nThe cat sat on a mat.",
    "three.txt": "the old dogs near the house sleep",
    **{f"more{number}.txt": f"Text number {number} is other text." for number in range(20)},
}


def corpus(folder: Path, **changes: Any) -> Manifest:
    (folder / "text").mkdir(parents=True)
    for name, text in TEXTS.items():
        (folder / "text" / name).write_text(text, encoding="utf-8")
    (folder / "pairs").mkdir()
    (folder / "pairs" / "pairs.jsonl").write_text(json.dumps(PAIR) + "\n\n", encoding="utf-8")
    for name in ("text", "pairs"):
        register_source(name, folder / name, folder / f"{name}.json")
    source = {"name": "text", "reader": "plain_text", "options": {"sentences": "line"}}
    settings: dict[str, Any] = {"sources": [source], "split": {"development_fraction": 0.3, "seed": 1}, **changes}
    evaluation = {"pairs": folder / "pairs.json"} if changes.get("decontamination") else {}
    with stage_run(folder / "corpus" / "manifest.json", {"stage": "convert_corpus", "stage_version": 1}) as run:
        convert(build(ConvertSettings, settings), {"text": folder / "text.json"}, run, evaluation=evaluation)
    return read_manifest(folder / "corpus" / "manifest.json")


def lines(made: Manifest, split: str) -> list[str]:
    rows = (row for path in made.files(".parquet", f"{split}-") for row in read_rows(path))
    return [line for row in rows for line in row["text"].split("\n")]


def test_shared_lines_leave_the_training_text_and_are_counted(tmp_path: Path) -> None:
    whole, cleaned = corpus(tmp_path / "a"), corpus(tmp_path / "b", decontamination={"data": ["pairs"], "words": 5})
    before = lines(whole, "train")
    # By hand: each line shares five consecutive words with the pair, or with the text inside the JSON.
    shared = {LEAKED, "The cat sat on a mat.", "A cat sat on a mat.", "the old dogs near the house sleep"}
    dropped = [line for line in before if line in shared]
    assert lines(cleaned, "train") == [line for line in before if line not in shared] and dropped
    assert lines(cleaned, "dev") == lines(whole, "dev")
    rejected = {row["reason"]: int(row["count"]) for row in rows_of(cleaned.file("rejected.csv"))}
    assert rejected == {SHARED: len(dropped)}
    assert not list(rows_of(whole.file("rejected.csv")))


def test_case_and_punctuation_do_not_count_but_order_and_length_do() -> None:
    found = Contamination(["The cat -- sat ON it"], 5)
    assert found.shares("and “the Cat sat: on it” too") and not found.shares("the cat sat on")
    assert not found.shares("the sat cat on it") and not Contamination(["too short"], 3).keys
    # An underscore is not a letter, and ß equals SS.
    assert found.shares("the_cat sat on_it") and Contamination(["die Straße ist"], 3).shares("DIE STRASSE IST")
    assert found.cleaned("first\nthe cat sat on it\n\nthe cat sat on it\n\nlast\n") == ("first\n\nlast", 2)
    unchanged = "odd  blanks \n\n\n stay\n"
    assert found.cleaned(unchanged) == (unchanged, 0)


def test_a_json_file_may_have_several_lines_and_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "pairs.json").write_text(json.dumps(PAIR, indent=1), encoding="utf-8-sig")
    register_source("data", tmp_path / "data", tmp_path / "data.json")
    found = Contamination.read({"data": tmp_path / "data.json"}, 5)
    # The sentence has 8 words and the text in the list has 6, hence 4 and 2 runs of 5 words.
    assert found.shares("the cat sat on a mat") and len(found.keys) == 6


def test_data_that_is_not_text_and_settings_without_data_are_refused(tmp_path: Path) -> None:
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "odd.jsonl").write_text("{}\n{\n", encoding="utf-8")
    register_source("odd", tmp_path / "odd", tmp_path / "odd.json")
    with pytest.raises(SourceError, match=r"odd\.jsonl, line 2: expected text or JSON in UTF-8"):
        Contamination.read({"odd": tmp_path / "odd.json"}, 5)
    sample = {"sample": {"corpus": "bnc", "characters": 9}, "decontamination": {"data": ["pairs"]}}
    with pytest.raises(
        ConfigError,
        match=r"decontamination: got .*, expected null with `sample`; set `decontamination` in the corpus with",
    ):
        build(CorpusFile, sample)
    with pytest.raises(ConfigError, match="words: got 1"):
        build(ConvertSettings, {"sources": [], "decontamination": {"data": ["pairs"], "words": 1}})
