"""The generator: identity from run to run, raw formats that parse, grammatical text, tests that cannot be guessed."""

import csv
import gzip
import json
import math
import random
import re
from collections import Counter
from dataclasses import fields, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from lxml import etree

from demo.documents import MAKERS
from demo.generate import FOLDERS
from demo.grammar import Clause, NounPhrase, noun_phrase, realise, sentence, text_of
from demo.lexicon import (
    NOUNS,
    REFLEXIVE_PRONOUNS,
    VERBS,
    Noun,
    Number,
    Verb,
)
from demo.paradigms import PARADIGMS
from demo.parallel import LANGUAGES, SPLITS, parallel_files
from demo.stages.generate_embedded_sources import generate_embedded_sources
from hatchery.artifacts.checksums import digest
from hatchery.artifacts.manifests import read_manifest, stage_run
from hatchery.corpora.sentences import split_sentences
from hatchery.errors import ConfigError
from hatchery.raw.settings import EmbeddedSettings
from hatchery.typed import build

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
    # What a compressed file looks like depends on the library.
    files = read_manifest(tmp_path / "manifest.json").listed()
    written = {file.path.relative_to(tmp_path).as_posix(): file.sha256 for file in files}
    written = {name: sha256 for name, sha256 in written.items() if not name.endswith(".gz")}
    assert digest(written) == "dba80161d0c30fcf501a887cdb44c1dc102c0c4be813d1cce6477fc73ab16981", (
        "raise the version of generate_embedded_sources"
    )


def test_another_seed_gives_another_text(tmp_path: Path) -> None:
    run_generator(tmp_path / "one", SMALL)
    run_generator(tmp_path / "two", replace(SMALL, seed=6))
    name = "babylm/qed.train"
    assert (tmp_path / "one" / name).read_bytes() != (tmp_path / "two" / name).read_bytes()


def test_a_smaller_rerun_leaves_no_file_of_the_larger_one(tmp_path: Path) -> None:
    run_generator(tmp_path, replace(SMALL, documents=400))
    run_generator(tmp_path, SMALL)
    found = {path for folder in FOLDERS for path in (tmp_path / folder).rglob("*") if path.is_file()}
    assert found == set(read_manifest(tmp_path / "manifest.json").files())


def test_the_size_of_the_suites_changes_no_other_file(tmp_path: Path) -> None:
    one = run_generator(tmp_path / "one", SMALL)
    two = run_generator(tmp_path / "two", replace(SMALL, examples_per_suite_task=12))
    suites = {"babylm_evaluation", "edge_probing", "filter_data", "hans", "superglue"}
    compared = 0
    for path in (path for folder in FOLDERS if folder not in suites for path in (one / folder).rglob("*")):
        if path.is_file() and path.stem.split(".")[0] not in ("stsb", "wnli"):
            assert path.read_bytes() == (two / path.relative_to(one)).read_bytes()
            compared += 1
    assert compared > 50
    assert all((two / folder).is_dir() for folder in suites)


def test_counts_below_what_the_sources_need_are_refused() -> None:
    with pytest.raises(ConfigError, match="examples_per_suite_task: got 3, expected at least 12"):
        build(EmbeddedSettings, {"examples_per_suite_task": 3})
    with pytest.raises(ConfigError, match="documents: got 3"):
        build(EmbeddedSettings, {"documents": 3})


def test_the_raw_formats_parse(generated: Path) -> None:
    for path in (generated / "bnc").rglob("*.xml"):
        root = etree.parse(path).getroot()
        assert root[0].tag == "teiHeader"
        assert root[1].tag in ("wtext", "stext")
        assert all(element.text for element in root.iter("w", "c"))
        assert path.relative_to(generated / "bnc" / "Texts").parts[:2] == (path.stem[0], path.stem[:2])
    assert len(list((generated / "babylm").iterdir())) == 20
    with (generated / "childes" / "Embedded.csv").open(newline="") as handle:
        rows = list(csv.DictReader(handle))
    assert {row["type"] for row in rows} == {"declarative", "question"}
    with gzip.open(next((generated / "c4").iterdir()), "rt", encoding="utf-8") as handle:
        assert all(set(json.loads(line)) == {"text", "url", "timestamp"} for line in handle)
    articles = (generated / "wikipedia" / "AA" / "wiki_00").read_text()
    assert articles.count("<doc id=") == articles.count("</doc>") > 1
    assert (generated / "bookcorpus" / "books.txt").read_text().islower()
    assert (generated / "cbt" / "cbt_train.txt").read_text().startswith("_BOOK_TITLE_ : ")


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


@pytest.mark.parametrize("task", ["glue/acceptability", "glue/entailment", "superglue/wic"])
def test_the_length_of_a_training_file_is_known_without_it(task: str, generated: Path) -> None:
    told = read_manifest(generated / "manifest.json").settings
    settings = EmbeddedSettings(**{field.name: told[field.name] for field in fields(EmbeddedSettings)})
    file = f"{task}.train.jsonl"
    assert (generated / file).read_text(encoding="utf-8").count("\n") == settings.training_rows(file)


EAT = Verb("eat", "eats", "ate", "eaten", "eating", ("fruit",))
APPLE = Noun("apple", "apples", "fruit")
CHILD = Noun("child", "children", "person", irregular=True)


def said(number: Number = "singular", **features: object) -> str:
    subject = noun_phrase("the", CHILD, number)
    clause = Clause(subject, EAT, noun_phrase("a", APPLE, "singular").words, **features)  # type: ignore[arg-type]
    return text_of(sentence(realise(clause), "?" if features.get("question") else "."))


@pytest.mark.parametrize(
    ("features", "text"),
    [
        ({}, "The child eats an apple."),
        ({"number": "plural"}, "The children eat an apple."),
        ({"tense": "past"}, "The child ate an apple."),
        ({"tense": "perfect", "adverb": "already"}, "The child has already eaten an apple."),
        ({"tense": "progressive", "number": "plural"}, "The children are eating an apple."),
        ({"negated": True}, "The child does not eat an apple."),
        ({"negated": True, "contracted": True}, "The child doesn't eat an apple."),
        ({"negated": True, "tense": "past", "adverb": "ever"}, "The child did not ever eat an apple."),
        ({"adverb": "never"}, "The child never eats an apple."),
        ({"question": True, "number": "plural"}, "Do the children eat an apple?"),
        ({"question": True, "tense": "perfect", "adverb": "ever"}, "Has the child ever eaten an apple?"),
        ({"question": True, "negated": True, "contracted": True}, "Doesn't the child eat an apple?"),
        ({"agreement": "plural"}, "The child eat an apple."),
        ({"tense": "perfect", "verb_form": "past"}, "The child has ate an apple."),
        ({"tense": "past", "verb_form": "participle"}, "The child eaten an apple."),
    ],
)
def test_a_clause_is_realised_with_its_features(features: dict, text: str) -> None:
    assert said(**features) == text


def test_the_article_fits_the_word_behind_it() -> None:
    assert noun_phrase("a", APPLE, "singular", ["red"]).words == ("a", "red", "apple")
    assert noun_phrase("a", CHILD, "singular", ["ugly"]).words == ("an", "ugly", "child")


def test_a_broken_noun_form_leaves_the_number_of_the_phrase() -> None:
    phrase = noun_phrase("these", APPLE, "plural", noun_number="singular")
    assert phrase == NounPhrase(("these", "apple"), "plural")


def test_the_vocabulary_has_a_few_hundred_words_and_no_ambiguous_forms_among_nouns() -> None:
    forms = [form for noun in NOUNS for form in (noun.singular, noun.plural)]
    assert len(set(forms)) == len(forms)
    rng = random.Random(0)
    words = {
        word.lower() for make in MAKERS.values() for _ in range(600) for words in make(rng).sentences for word in words
    }
    assert 400 <= len(words) <= 600
    assert {form for verb in VERBS for form in (verb.third, verb.past)} <= words


DETERMINED = {"this": 0, "that": 0, "every": 0, "each": 0, "a": 0, "an": 0} | dict.fromkeys(
    ("these", "those", "many", "few", "several", "two", "three"), 1
)


def test_documents_hold_no_broken_agreement() -> None:
    """An independent check by surface patterns: determiner before noun, auxiliary behind subject, reflexives."""
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


def test_the_same_settings_give_the_same_bytes_and_another_seed_another_language() -> None:
    assert dict(parallel_files(100, 3)) == dict(parallel_files(100, 3))
    assert lines_of(100, 3)["train.tv"][0] != lines_of(100, 4)["train.tv"][0]


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
    # The ten most frequent words are a smaller share of the text.
    shares = {split: sum(n for _, n in Counter(words[split]).most_common(10)) / len(words[split]) for split in words}
    assert shares["other"] < shares["test"]
