"""Documents and long lines that occur more than once in a corpus."""

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hatchery.artifacts.manifests import Manifest, read_manifest, stage_run
from hatchery.artifacts.parquet import read_rows
from hatchery.corpora.duplicates import LONG_LINE, duplicates_note, line_keys, repeated, without_lines
from hatchery.corpora.settings import ConvertSettings
from hatchery.corpora.stages.convert_corpus import convert_corpus
from hatchery.errors import CorpusError
from hatchery.raw.registration import register_source
from hatchery.typed import build


def long_line(word: str) -> str:
    return f"{word} ".ljust(LONG_LINE, word[-1]) + "."


def converted(folder: Path, texts: dict[str, str], **settings: Any) -> Manifest:
    """Convert files, one document each, and return the manifest of the corpus."""
    raw = folder / "raw"
    for name, text in texts.items():
        (raw / name).parent.mkdir(parents=True, exist_ok=True)
        (raw / name).write_text(text)
    register_source("raw", raw, folder / "raw.json")
    source = {"name": "raw", "reader": "plain_text", "options": {"cut_files": "never"}}
    body = {"sources": [source], **settings}
    with stage_run(folder / "out/manifest.json", {"stage": "convert_corpus", "stage_version": 1}) as run:
        convert_corpus(build(ConvertSettings, body), {"raw": folder / "raw.json"}, run)
    return read_manifest(folder / "out/manifest.json")


def texts_of(manifest: Manifest, split: str) -> list[str]:
    return [row["text"] for path in manifest.files(".parquet", f"{split}-") for row in read_rows(path)]


def counted(manifest: Manifest) -> dict[str, tuple[int, ...]]:
    with manifest.file("duplicates.csv").open(newline="") as handle:
        return {row[1]: tuple(map(int, row[2:])) for row in list(csv.reader(handle))[1:]}


@pytest.mark.parametrize("split", [{"development_fraction": 0.4}, {"development_documents": 3}])
@pytest.mark.parametrize("seed", range(3))
def test_twins_are_on_one_side_of_the_split_wherever_they_lie(tmp_path: Path, split: Any, seed: int) -> None:
    once = {f"one/{index}.txt": f"Text number {index}." for index in range(12)}
    twins = {name.replace("one", "two"): text for name, text in once.items()}
    single = converted(tmp_path / "single", once, split={**split, "seed": seed})
    double = converted(tmp_path / "double", once | twins, split={**split, "seed": seed})
    held_out = set(texts_of(double, "dev"))
    assert held_out and not held_out & set(texts_of(double, "train"))
    if "development_fraction" in split:
        assert held_out == set(texts_of(single, "dev"))


def test_a_folder_of_one_text_in_copies_has_nothing_to_hold_out(tmp_path: Path) -> None:
    with pytest.raises(
        CorpusError, match=r"has only one document 3 times, so no document can be held out .*: add more text, divide"
    ):
        converted(tmp_path, dict.fromkeys(("a.txt", "b.txt", "c.txt"), "The same."))


def test_what_stands_twice_is_counted_and_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = {
        "a.txt": f"First.\n{long_line('common')}\n{long_line('own')}\n",
        "b.txt": f"{long_line('common')}\nSecond.\nFirst.\n",
        "c.txt": f"First.\n{long_line('common')}\n{long_line('own')}\n",
    }
    manifest = converted(tmp_path, texts, split={"development_fraction": 0})
    assert counted(manifest) == {"train": (3, 1, 0, 5, 3, 0)}
    assert texts_of(manifest, "train") == [text.rstrip() for text in texts.values()]
    messages = capsys.readouterr().err
    assert "source 'raw': 1 of 3 documents and 3 of 5 long lines repeat an earlier text of the corpus" in messages


def test_held_out_text_that_is_learned_from_is_counted(tmp_path: Path) -> None:
    texts = {f"{index}.txt": f"Text number {index}.\n{long_line('common')}\n" for index in range(8)}
    manifest = converted(tmp_path, texts, split={"development_documents": 2})
    assert counted(manifest)["dev"][2] == 0
    assert counted(manifest)["dev"][3::2] == (2, 2)
    assert counted(manifest)["train"][2::3] == (0, 0)


def test_documents_and_lines_are_left_out_where_the_key_says_so(tmp_path: Path) -> None:
    texts = {
        "a.txt": f"One.\n{long_line('common')}",
        "b.txt": f"One.\n{long_line('common')}",
        "c.txt": f"Two.\n{long_line('common')}\n{long_line('common')}\n\nThree.",
        "d.txt": long_line("common"),
    }
    kept = [texts["a.txt"], texts["c.txt"], texts["d.txt"]]
    whole = {"split": {"development_fraction": 0}}
    manifest = converted(tmp_path / "documents", texts, duplicates="drop_documents", **whole)
    assert texts_of(manifest, "train") == kept
    assert "raw,duplicate of an earlier document,1\n" in manifest.file("rejected.csv").read_text()
    manifest = converted(tmp_path / "lines", texts, duplicates="drop_lines", **whole)
    assert texts_of(manifest, "train") == [texts["a.txt"], "Two.\n\nThree."]
    # Two lines of the third document, and the line of the last document; the second document is left out as a whole.
    assert "raw,long line that repeats an earlier line,3\n" in manifest.file("rejected.csv").read_text()


@given(st.lists(st.integers(0, 5)))
def test_repeated_is_what_has_come_before(keys: list[int]) -> None:
    expected = [key in keys[:index] for index, key in enumerate(keys)]
    assert repeated(np.array(keys, dtype=np.uint64)).tolist() == expected


def test_a_line_of_a_hundred_characters_is_long_and_bytes_do_not_count() -> None:
    assert [len(line_keys("é" * number)) for number in (99, 100, 101)] == [0, 1, 1]
    assert without_lines(f"{'é' * 99}\n{'a' * 100}\n{'ж' * 101}", [True, False]) == f"{'é' * 99}\n{'ж' * 101}"


@pytest.mark.parametrize(("again", "said"), [(1, ""), (2, "2 of 100 documents repeat an earlier text of the corpus")])
def test_a_job_says_what_more_than_a_hundredth_of_the_documents_repeat(again: int, said: str) -> None:
    rows = [("s", "train", 60, again, 0, 0, 0, 0), ("s", "dev", 40, 0, 9, 0, 0, 0), ("t", "train", 2, 2, 0, 9, 9, 0)]
    assert duplicates_note(rows, "s") == said


def test_lines_are_left_out_without_a_trace() -> None:
    first, second = long_line("first"), long_line("second")
    assert without_lines(f"{first}\n\nShort.\n{second}\nShort.\n\n{first}", [True, False, True]) == (
        f"Short.\n{second}\nShort."
    )
