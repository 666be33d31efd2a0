"""The generator: equal bytes in every run, grammatical text, and pairs that simple statistics cannot solve."""

import json
import math
import random
import re
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from demo.documents import MAKERS
from demo.generate import FOLDERS
from demo.lexicon import (
    NOUNS,
    REFLEXIVE_PRONOUNS,
)
from demo.paradigms import PARADIGMS
from demo.parallel import LANGUAGES, SPLITS, parallel_files
from demo.stages.generate_embedded_sources import generate_embedded_sources
from hatchery.artifacts.checksums import digest
from hatchery.artifacts.manifests import read_manifest, stage_run
from hatchery.corpora.sentences import split_sentences
from hatchery.raw.settings import EmbeddedSettings

SMALL = EmbeddedSettings(seed=5, documents=60, pairs_per_paradigm=6, examples_per_task=12, examples_per_suite_task=36)


def run_generator(folder: Path, settings: EmbeddedSettings) -> Path:
    with stage_run(folder / "manifest.json", vars(settings)) as run:
        generate_embedded_sources(settings, run)
    return folder


def json_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def words_of(text: str) -> list[str]:
    return re.findall(r"\w+|[^\w\s]", text.lower())


@pytest.fixture(scope="session")
def corpus_text(generated: Path) -> str:
    return "\n".join(path.read_text(encoding="utf-8") for path in sorted((generated / "babylm").iterdir()))


def test_the_same_settings_give_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        run_generator(tmp_path / name, SMALL)
    assert (tmp_path / "one" / "manifest.json").read_bytes() == (tmp_path / "two" / "manifest.json").read_bytes()


def test_the_bytes_are_those_that_the_numbers_of_the_demo_rest_on(tmp_path: Path) -> None:
    run_generator(tmp_path, SMALL)
    # The bytes of a compressed file depend on the library's version.
    files = read_manifest(tmp_path / "manifest.json").listed()
    written = {file.path.relative_to(tmp_path).as_posix(): file.sha256 for file in files}
    written = {name: sha256 for name, sha256 in written.items() if not name.endswith(".gz")}
    # Sources that were added later have their own digests.
    later = {folder: {} for folder in ("meco", "multilingual", "reading_times")}
    for name in list(written):
        if (folder := name.partition("/")[0]) in later:
            later[folder][name] = written.pop(name)
    found = {"": digest(written), **{folder: digest(files) for folder, files in later.items()}}
    assert found == {
        "": "dba80161d0c30fcf501a887cdb44c1dc102c0c4be813d1cce6477fc73ab16981",
        "meco": "34e4df6a3c6c08592dabae1fef305da9cbfe884e6f77d75e9a3f4a2da6a5ae5b",
        "multilingual": "9aedd1238e48eedec82cf1a1d2b46d7874dd05c27261a2e7cb94aac307faf1ac",
        "reading_times": "09285a5f7afeb0a8fa134dd5e0c4d98dacc0fddd19a7a87bb22ef8f649cfcda9",
    }, "raise the version of generate_embedded_sources"


def test_a_smaller_rerun_leaves_no_file_of_the_larger_one(tmp_path: Path) -> None:
    run_generator(tmp_path, replace(SMALL, documents=400))
    run_generator(tmp_path, SMALL)
    found = {path for folder in FOLDERS for path in (tmp_path / folder).rglob("*") if path.is_file()}
    assert found == set(read_manifest(tmp_path / "manifest.json").files())


def test_the_size_of_the_suites_changes_no_other_file(tmp_path: Path) -> None:
    one = run_generator(tmp_path / "one", SMALL)
    two = run_generator(tmp_path / "two", replace(SMALL, examples_per_suite_task=12))
    suites = {"babylm_evaluation", "edge_probing", "filter_data", "hans", "multilingual", "superglue"}
    compared = 0
    for path in (path for folder in FOLDERS if folder not in suites for path in (one / folder).rglob("*")):
        if path.is_file() and path.stem.split(".")[0] not in ("stsb", "wnli"):
            assert path.read_bytes() == (two / path.relative_to(one)).read_bytes()
            compared += 1
    assert compared > 50
    assert all((two / folder).is_dir() for folder in suites)


@pytest.mark.parametrize("paradigm", PARADIGMS, ids=lambda paradigm: paradigm.uid)
def test_a_paradigm_cannot_be_solved_by_frequency_or_length(paradigm: Any, generated: Path, corpus_text: str) -> None:
    rows = json_lines(generated / "minimal_pairs" / f"{paradigm.uid}.jsonl")
    assert len(rows) == 40
    assert len({row["pairID"] for row in rows}) == 40
    counts = Counter(words_of(corpus_text))
    total = sum(counts.values())

    def frequency(text: str) -> float:
        return sum(math.log((counts[word] + 1) / total) for word in words_of(text))

    for measure in (frequency, lambda text: float(len(text)), lambda text: float(len(text.split()))):
        differences = [round(measure(row["sentence_good"]) - measure(row["sentence_bad"]), 6) for row in rows]
        assert sum(d > 0 for d in differences) == sum(d < 0 for d in differences)


def test_pairs_are_new_sentences_that_differ_in_one_or_two_words(generated: Path, corpus_text: str) -> None:
    sentences = {sentence for line in corpus_text.split("\n") for sentence in split_sentences(line)}
    phenomena = set()
    for path in (generated / "minimal_pairs").iterdir():
        for row in json_lines(path):
            good, bad = words_of(row["sentence_good"]), words_of(row["sentence_bad"])
            assert len(good) == len(bad)
            assert 1 <= sum(a != b for a, b in zip(good, bad, strict=True)) <= 2
            assert not {row["sentence_good"], row["sentence_bad"]} & sentences
            assert row["UID"] == path.stem
            phenomena.add(row["linguistics_term"])
    assert len(list((generated / "minimal_pairs").iterdir())) >= 10
    assert len(phenomena) >= 5


@pytest.mark.parametrize(
    ("task", "key"),
    [
        ("glue/acceptability", "examples_per_task"),
        ("glue/entailment", "examples_per_task"),
        ("superglue/wic", "examples_per_suite_task"),
    ],
)
def test_a_training_file_has_the_rows_that_the_settings_say(task: str, key: str, generated: Path) -> None:
    rows = (generated / f"{task}.train.jsonl").read_text(encoding="utf-8").count("\n")
    assert rows == read_manifest(generated / "manifest.json").settings[key]


DETERMINED = {"this": 0, "that": 0, "every": 0, "each": 0, "a": 0, "an": 0} | dict.fromkeys(
    ("these", "those", "many", "few", "several", "two", "three"), 1
)


def test_documents_hold_no_broken_agreement() -> None:
    """Check agreement independently by surface patterns: determiner and noun, subject and auxiliary, reflexives."""
    number_of = {noun.singular: 0 for noun in NOUNS} | {noun.plural: 1 for noun in NOUNS}
    rng = random.Random(1)
    checked = 0
    for make in MAKERS.values():
        for _ in range(300):
            for words in make(rng).sentences:
                lower = [word.lower() for word in words]
                for determiner, noun in pairwise(lower):
                    if determiner in DETERMINED and noun in number_of:
                        assert DETERMINED[determiner] == number_of[noun], words
                        checked += 1
                if lower[0] == "the" and lower[1] in number_of and lower[2] in ("is", "has", "are", "have"):
                    assert (lower[2] in ("are", "have")) == bool(number_of[lower[1]]), words
                    checked += 1
                if "any" in lower or "ever" in lower:
                    assert words[-1] == "?" or {"not", "n't", "no", "never"} & set(lower), words
                if REFLEXIVE_PRONOUNS["plural"] in lower and "that" not in lower:
                    assert lower[1] != "has", words
    assert checked > 3000


def lines_of(pairs: int = 400, seed: int = 0) -> dict[str, list[str]]:
    return {name: content.decode().splitlines() for name, content in parallel_files(pairs, seed)}


def test_every_sentence_has_one_translation_in_either_direction() -> None:
    found = lines_of()
    pairs = {pair for split in SPLITS for pair in zip(*(found[f"{split}.{end}"] for end in LANGUAGES), strict=True)}
    for index in range(2):
        assert len({pair[index] for pair in pairs}) == len(pairs)


def test_held_out_sentences_are_in_no_other_file_and_depend_on_no_other() -> None:
    found, more = lines_of(), lines_of(2000)
    sentences = {split: found[f"{split}.en"] for split in SPLITS}
    for split in ("dev", "test", "other"):
        assert len(set(sentences[split])) == len(sentences[split])
        others = {line for other in SPLITS if other != split for line in sentences[other]}
        assert not others & set(sentences[split])
        assert more[f"{split}.en"][: len(sentences[split])][:5] == sentences[split][:5]


def test_the_other_domain_has_longer_sentences_and_evener_words() -> None:
    found = lines_of(2000)
    words = {split: [word for line in found[f"{split}.en"] for word in line.split()] for split in ("test", "other")}
    assert len(words["other"]) / len(found["other.en"]) > 1.8 * len(words["test"]) / len(found["test.en"])
    # In the other domain, the ten most frequent words are a smaller share of the text.
    shares = {split: sum(n for _, n in Counter(words[split]).most_common(10)) / len(words[split]) for split in words}
    assert shares["other"] < shares["test"]
