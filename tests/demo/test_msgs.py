"""The MSGS files: labels recomputed from the texts alone, conditions, domains and columns
(docs/papers/babylm-evaluation.md, "MSGS")."""

import json
import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from demo.babylm_suites import DATASETS, Dataset
from demo.lexicon import MOODS, NOUNS, QUALITIES, SIZES

CONTROL_PREDICATES = ("happy", "sad", "hopes", "angry", "kind", "clever")
SURFACE_LABELS = ("lexical_content_the_control", "relative_position_control")
NOUN_FORMS = {noun.singular for noun in NOUNS}


def read(generated: Path, stem: str, split: str) -> list[dict[str, Any]]:
    path = generated / "filter_data" / "msgs_filtered" / f"{stem}.{split}.json"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def main_verb_in_ing(words: list[str]) -> bool:
    """After a relative clause the main verb comes last, otherwise before the complement's "that"."""
    that = words.index("that")
    main = words[that + 1 :] if that == 2 else words[:that]
    return main[-1].endswith("ing")


def feature(name: str | None, text: str) -> bool | None:
    words = text[:-1].lower().split()
    match name:
        case "main_verb":
            return main_verb_in_ing(words)
        case "control_raising":
            return words[words.index("to") - 1] in CONTROL_PREDICATES
        case "syntactic_category":
            return bool({*SIZES, *QUALITIES, *MOODS} & set(words))
        case "lexical_content_the":
            return "the" in words
        case "relative_token_position":
            return words.index("the") < words.index("a")
    return None


@pytest.mark.parametrize("dataset", DATASETS, ids=lambda dataset: dataset.stem)
@pytest.mark.parametrize("split", ["train", "validation"])
def test_labels_follow_from_the_sentences(dataset: Dataset, split: str, generated: Path) -> None:
    for row in read(generated, dataset.stem, split):
        linguistic = feature(dataset.linguistic, row["sentence"])
        surface = feature(dataset.surface, row["sentence"])
        assert row["linguistic_feature_label"] == linguistic
        assert row["surface_feature_label"] == surface
        expected = surface if dataset.stem in SURFACE_LABELS else linguistic
        assert row["label"] == expected
        assert (row["UID"], row["control_paradigm"]) == (dataset.stem, dataset.control)


@pytest.mark.parametrize("dataset", DATASETS, ids=lambda dataset: dataset.stem)
def test_conditions_are_those_of_the_published_files(dataset: Dataset, generated: Path) -> None:
    training, validation = (read(generated, dataset.stem, split) for split in ("train", "validation"))

    def cells(rows: list[dict[str, Any]]) -> Counter:
        return Counter(
            (row["condition"], row["linguistic_feature_label"], row["surface_feature_label"]) for row in rows
        )

    def pair(value: int) -> tuple[int | None, int | None]:
        return value if dataset.linguistic else None, value if dataset.surface else None

    assert set(cells(training)) == {("training", *pair(1)), ("training", *pair(0))}
    if dataset.control:
        expected = {(condition, *pair(value)) for condition in ("training", "test") for value in (0, 1)}
    else:
        agreeing = {(condition, value, value) for condition in ("training", "control") for value in (0, 1)}
        expected = agreeing | {("test", 1, 0), ("test", 0, 1)}
    assert set(cells(validation)) == expected
    for rows in (training, validation):
        assert len(set(cells(rows).values())) == 1
        assert Counter(Counter(row["paradigmID"] for row in rows).values()).keys() == {len(cells(rows))}
        assert len({row["sentence"] for row in rows}) == len(rows)
    assert not {row["sentence"] for row in training} & {row["sentence"] for row in validation}


@pytest.mark.parametrize("dataset", DATASETS, ids=lambda dataset: dataset.stem)
def test_domains_share_no_noun(dataset: Dataset, generated: Path) -> None:
    nouns: dict[str, set[str]] = defaultdict(set)
    for split in ("train", "validation"):
        for row in read(generated, dataset.stem, split):
            domain = "in" if row["condition"] == "training" else "out"
            nouns[domain] |= NOUN_FORMS & set(re.findall(r"\w+", row["sentence"].lower()))
    assert nouns["in"]
    assert not nouns["in"] & nouns["out"]


def test_a_surface_classifier_is_wrong_on_all_scored_rows_and_right_on_the_others(generated: Path) -> None:
    rows = read(generated, "main_verb_lexical_content_the", "validation")
    right = [row["surface_feature_label"] == row["label"] for row in rows]
    assert sum(right) * 6 == 4 * len(rows)
    assert not any(ok for ok, row in zip(right, rows, strict=True) if row["condition"] == "test")
