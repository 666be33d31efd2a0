"""Corpora, selections and tokenizers: keys that depend on each other."""

from pathlib import Path
from typing import Any

import pytest
from shipped import written

from hatchery.errors import ConfigError
from hatchery.experiment.raw_inputs import raw_inputs
from hatchery.experiment.text_files import CorpusFile, SelectionFile
from hatchery.typed import build

SOURCES = [{"name": name, "data": "mine", "reader": "plain_text", "options": {}} for name in ("letters", "songs")]
SELECTION = {"corpus": "mine", "level": "sentences", "vocabulary": "mine"}


def corpus(**changes: Any) -> CorpusFile:
    return build(CorpusFile, {"sources": SOURCES, **changes})


def test_premiums_by_source_leave_no_premium_for_other_sources_and_a_single_premium_is_for_all() -> None:
    """The published premium of Dutch is 1.0516057."""
    by_source = corpus(word_count="adjusted", byte_premium={"letters": "nld_latn", "songs": 2}).word_counting
    assert (by_source.byte_premium, by_source.byte_premiums) == (None, {"letters": 1.0516057, "songs": 2.0})
    single = corpus(word_count="adjusted", byte_premium="nld_latn").word_counting
    assert (single.byte_premium, single.byte_premiums) == (1.0516057, {})


@pytest.mark.parametrize(
    ("premiums", "message"),
    [
        ({"letters": 1}, "byte_premium: got no premium for the source 'songs', expected one number"),
        (
            {"letters": 1, "songs": 1, "plays": 1},
            "byte_premium: got a premium for 'plays', which is not a source; the sources are letters, songs",
        ),
    ],
)
def test_every_source_and_nothing_else_has_a_premium(premiums: dict[str, float], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        corpus(byte_premium=premiums)


def test_a_sentence_model_with_other_languages_permits_sentences_of_these_languages() -> None:
    german = [{**SOURCES[0], "options": {"sentences": "punkt:german"}}]
    with pytest.raises(ConfigError, match="only the model of English comes with Hatchery"):
        corpus(sources=german)
    assert corpus(sources=german, sentence_model="nltk_punkt").sentence_model == "nltk_punkt"


@pytest.mark.parametrize(("key", "value"), [("options", {"format": "text"}), ("sentence_model", "nltk_punkt")])
def test_a_selection_from_a_corpus_has_no_keys_of_raw_text(key: str, value: Any) -> None:
    assert build(SelectionFile, SELECTION).corpus == "mine"
    with pytest.raises(ConfigError, match=f"{key}: got .*, which cannot be combined with `corpus`"):
        build(SelectionFile, {**SELECTION, key: value})


def test_raw_inputs_of_selected_text_are_those_of_its_corpora_and_of_its_vocabularies(configuration: Path) -> None:
    windows = {"corpus": "demo_books", "level": "windows", "vocabulary": "demo", "windows_per_text": 4}
    groups = [{"level": "span", "selections": ["mine"]}]
    project = written(configuration, {"selections/mine": windows, "corpora/mine": {"sequences": {"groups": groups}}})
    books = ["wikipedia", "c4", "bookcorpus", "cbt"]
    found = [source["name"] for source in raw_inputs(project, "mine")]
    assert found == [f"embedded_{name}" for name in (*books, "childes")]
