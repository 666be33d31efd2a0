"""The sentence model of a selection, and the values on which a finished part of a selection depends."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from selection_cases import WORDS, Select, texts

from hatchery.artifacts.parallel_map import Part, make_parts
from hatchery.corpora.file_groups import opened
from hatchery.corpora.sentences import ABBREVIATIONS, PARAMETER_FILES
from hatchery.vocabulary import select as stage
from hatchery.vocabulary import selection_parts


def punkt_model(register: Callable[..., Path], name: str, abbreviations: str) -> Path:
    """Register Punkt parameters that contain only abbreviations, and return the manifest."""
    files = dict.fromkeys(PARAMETER_FILES, "") | {ABBREVIATIONS: abbreviations}
    return register(name, {f"english/{file}": text for file, text in files.items()})


def test_raw_texts_are_split_by_the_sentence_model_that_is_set(select: Select, register: Callable[..., Path]) -> None:
    page = "The cat sat on a mat. The cat is big."
    files = {"p.jsonl": json.dumps({"text": page})}
    assert texts(select(files, WORDS)) == ["the cat sat on a mat.", "the cat is big."]
    model = punkt_model(register, "mat", "mat\n")
    assert texts(select(files, WORDS, folder="mat", model=model)) == [page.lower()]


def test_a_part_depends_on_text_vocabulary_settings_and_sentence_model(
    select: Select, register: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    keys: list[str] = []

    def recorded(tasks: Any, work: Any, given: Any, *more: Any) -> Iterator[Part]:
        keys.append(json.dumps(given))
        return make_parts(tasks, work, given, *more)

    monkeypatch.setattr(stage, "make_parts", recorded)
    models = [punkt_model(register, name, f"{name}\n") for name in ("mat", "cat")]
    changes: list[dict[str, Any]] = [{}, {"words": [*WORDS, "dog"]}, {"page": "The mat sat on a cat."}, {"seed": 1}]
    changes += [{"minimum_counted_words": 2}, *({"model": model} for model in models), {}]
    for change in changes:
        # A process reads vocabularies, texts and models only once, but here their files change.
        for cached in (selection_parts.opened_texts, selection_parts._filter, opened):
            cached.cache_clear()
        given = {"words": WORDS, "page": "The cat sat on a mat.", **change}
        page = json.dumps({"text": given.pop("page")})
        select({"p.jsonl": page}, given.pop("words"), **given)
    assert len(set(keys)) == len(changes) - 1 and keys[0] == keys[-1]
