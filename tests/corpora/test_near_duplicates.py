"""Documents that resemble an earlier document are removed, by a similarity that is computed by hand."""

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from projects import rows_of

from hatchery.artifacts.manifests import Manifest, read_manifest, stage_run
from hatchery.artifacts.parquet import read_rows, write_table
from hatchery.corpora.convert import convert
from hatchery.corpora.near_duplicates import (
    NEAR,
    NEAR_ELSEWHERE,
    SIGNATURES,
    near_duplicates,
    signature_row,
    similarity,
)
from hatchery.corpora.settings import ConvertSettings, NearDuplicatesSettings
from hatchery.errors import ConfigError
from hatchery.experiment.text_files import CorpusFile
from hatchery.raw.registration import register_source
from hatchery.typed import build, dumped_values

ALL_TRAINING = {"split": {"development_fraction": 0}}


def words(name: str, number: int) -> list[str]:
    return [f"{name}{index}" for index in range(number)]


def with_tail(name: str, tail: int) -> str:
    """Return 24 words, hence 20 runs of 5 words, and `tail` more words, each of which adds a run."""
    return " ".join([*words(name, 24), *words(f"{name}tail", tail)])


def corpus(
    folder: Path, sources: Mapping[str, Mapping[str, str]], workers: int = 1, near: Any = None, **settings: Any
) -> Manifest:
    """Convert sources, whose files are one document each, and return the manifest of the corpus."""
    for name, texts in sources.items():
        (folder / name).mkdir(parents=True)
        for file, text in texts.items():
            (folder / name / file).write_text(text, encoding="utf-8")
        register_source(name, folder / name, folder / f"{name}.json")
    read = [{"name": name, "reader": "plain_text", "options": {"cut_files": "never"}} for name in sources]
    built = build(ConvertSettings, {"sources": read, "near_duplicates": near, **(settings or ALL_TRAINING)})
    with stage_run(folder / "corpus/manifest.json", {"stage": "convert_corpus", "stage_version": 1}) as run:
        convert(built, {name: folder / f"{name}.json" for name in sources}, run, workers=workers)
    return read_manifest(folder / "corpus/manifest.json")


def names(made: Manifest, split: str) -> list[str]:
    return [Path(row["doc_id"]).name for path in made.files(".parquet", f"{split}-") for row in read_rows(path)]


def rejected(made: Manifest) -> dict[tuple[str, str], int]:
    return {(row["source"], row["reason"]): int(row["count"]) for row in rows_of(made.file("rejected.csv"))}


def found(folder: Path, texts: list[str], settings: NearDuplicatesSettings) -> list[int]:
    columns = [signature_row(text, settings) for text in texts]
    write_table(folder / "part.parquet", pa.Table.from_pylist(columns, schema=pa.schema(SIGNATURES)))
    return near_duplicates([folder / "part.parquet"], len(texts), settings, folder).tolist()


@pytest.mark.parametrize(("tail", "is_left_out"), [(0, True), (4, True), (5, True), (6, False), (20, False)])
def test_a_similarity_at_the_threshold_is_left_out_and_one_below_stays(
    tmp_path: Path, tail: int, is_left_out: bool
) -> None:
    # By hand: the texts share 20 runs, and have 20 + tail runs together: 20/20, 20/24, 20/25 = 0.8, 20/26, 20/40.
    texts = {"a.txt": with_tail("w", 0), "b.txt": "Something else, of many more words.", "c.txt": with_tail("w", tail)}
    made = corpus(tmp_path, {"text": texts}, near={})
    assert names(made, "train") == ["a.txt", "b.txt"] + ([] if is_left_out else ["c.txt"])
    assert rejected(made) == ({("text", NEAR): 1} if is_left_out else {})


def test_case_and_punctuation_do_not_count_and_short_documents_stay(tmp_path: Path) -> None:
    texts = {
        "a.txt": "The old dogs, near the house, sleep well.",
        "b.txt": "the OLD dogs near the house: sleep well",
        "c.txt": "Only four words here.",
        "d.txt": "Only four words here!",
        "e.txt": "the old dogs sleep well near the house",
    }
    made = corpus(tmp_path, {"text": texts}, near={"similarity": 0.95})
    assert names(made, "train") == ["a.txt", "c.txt", "d.txt", "e.txt"]


def test_a_document_is_compared_only_with_documents_that_remain(tmp_path: Path) -> None:
    # Windows of 24 words have 20 runs each: neighbours share 17 of 23 runs, the first and the third share 14 of 26.
    line = words("w", 30)
    texts = [" ".join(line[start : start + 24]) for start in (0, 3, 6)]
    settings = NearDuplicatesSettings(similarity=0.7)
    assert 17 / 23 >= 0.7 > 14 / 26
    assert found(tmp_path, texts, settings) == [-1, 0, -1]


def test_the_share_of_missed_pairs_is_the_documented_one_and_no_pair_below_is_left_out(tmp_path: Path) -> None:
    settings = NearDuplicatesSettings()
    pairs = 300
    for tail, expected in ((5, 1 - (1 - 0.8**8) ** 16), (0, 1.0), (6, 0.0)):
        texts = [with_tail(f"x{pair}x", of) for pair in range(pairs) for of in (0, tail)]
        near = found(tmp_path, texts, settings)
        assert near[::2] == [-1] * pairs
        assert {(index, other) for index, other in enumerate(near) if other >= 0} <= {
            (2 * pair + 1, 2 * pair) for pair in range(pairs)
        }
        share = sum(other >= 0 for other in near) / pairs
        # Three standard errors of a binomial proportion.
        assert abs(share - expected) <= 3 * (expected * (1 - expected) / pairs) ** 0.5


def test_random_texts_agree_with_all_comparisons_of_sets_of_words(tmp_path: Path) -> None:
    draw = random.Random(5)
    bases = [[draw.choice("abcdefghij") + str(draw.randrange(50)) for _ in range(60)] for _ in range(12)]
    lists = [
        [word if draw.random() > rate else "other" for word in base]
        for rate in (0.0, 0.01, 0.03, 0.2)
        for base in bases
    ]
    expected: list[int] = []
    sets = [{tuple(text[start : start + 3]) for start in range(len(text) - 2)} for text in lists]
    for index, own in enumerate(sets):
        remaining = [other for other in range(index) if expected[other] < 0]
        similar = [other for other in remaining if len(own & sets[other]) / len(own | sets[other]) >= 0.6]
        expected.append(similar[0] if similar else -1)
    settings = NearDuplicatesSettings(similarity=0.6, words=3, permutations=256)
    assert len({index for index in expected if index >= 0}) > 5
    assert found(tmp_path, [" ".join(text) for text in lists], settings) == expected


def test_the_corpus_is_the_same_for_one_and_two_processes(tmp_path: Path) -> None:
    first = {f"{index}.txt": with_tail(f"t{index}", 0) for index in range(12)}
    second = {f"{index}.txt": with_tail(f"t{index}", index % 8) for index in range(12)}
    made = [
        corpus(tmp_path / str(workers), {"one": first, "two": second}, workers, near={}, split={"seed": 3})
        for workers in (1, 2)
    ]
    assert [path.read_bytes() for path in made[0].files("")] == [path.read_bytes() for path in made[1].files("")]
    # Documents 6 and 7 have tails of 6 and 7 words, so their similarity is too small, and they are kept.
    counted = rejected(made[0])
    assert sum(counted.values()) == 10 and {source for source, _ in counted} == {"two"}


def test_held_out_documents_have_no_near_duplicate_in_the_training_text_and_keep_their_number(tmp_path: Path) -> None:
    texts = {f"{index:02}.txt": with_tail(f"t{index % 20}", index // 20) for index in range(40)}
    made = corpus(tmp_path, {"text": texts}, near={}, split={"development_documents": 6, "seed": 2})
    development, training = names(made, "dev"), names(made, "train")
    assert len(development) == 6 and sorted(development + training) == [f"{index:02}.txt" for index in range(20)]
    counted = rejected(made)
    assert sum(counted.values()) == 20 and counted[("text", NEAR_ELSEWHERE)] > 0


def test_repeated_documents_keep_their_own_reason(tmp_path: Path) -> None:
    texts = {"a.txt": with_tail("w", 0), "b.txt": with_tail("w", 0), "c.txt": with_tail("w", 1)}
    made = corpus(tmp_path, {"text": texts}, near={}, duplicates="drop_documents", **ALL_TRAINING)
    assert rejected(made) == {("text", "duplicate of an earlier document"): 1, ("text", NEAR): 1}


def test_similarity_is_the_share_of_the_union() -> None:
    first, second = np.arange(24, dtype=np.uint64), np.arange(4, 30, dtype=np.uint64)
    assert similarity(first, second) == similarity(second, first) == 20 / 30


def test_a_long_document_has_the_signature_of_all_its_runs() -> None:
    settings = NearDuplicatesSettings()
    text = words("w", 25_004)
    whole = signature_row(" ".join(text), settings)
    halves = [signature_row(" ".join(part), settings) for part in (text[:12_504], text[12_500:])]
    minima = np.minimum(*(np.frombuffer(half["signature"], np.uint32) for half in halves))
    assert len(whole["runs"]) == 8 * 25_000
    assert whole["signature"] == minima.tobytes()


def test_settings_are_checked_and_omitted_by_default() -> None:
    source = {"name": "text", "reader": "plain_text"}
    assert "near_duplicates" not in dumped_values(build(ConvertSettings, {"sources": [source]}))
    for value, message in (
        ({"similarity": 0.2}, "near_duplicates.similarity: got 0.2"),
        ({"words": 0}, "near_duplicates.words: got 0"),
        ({"permutations": 8}, "near_duplicates.permutations: got 8"),
    ):
        with pytest.raises(ConfigError, match=message):
            build(ConvertSettings, {"sources": [source], "near_duplicates": value})
    with pytest.raises(ConfigError, match=r"near_duplicates: got .*, expected null with `sample`"):
        build(CorpusFile, {"sample": {"corpus": "bnc", "characters": 9}, "near_duplicates": {}})
