"""The miniature suites: published fields, balance, disjoint splits, and labels that follow from the texts.

The layout of MSGS: docs/papers/babylm-evaluation.md, "MSGS".
"""

import json
import math
import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from demo import glue, inference
from demo.babylm_suites import DATASETS, Dataset
from demo.lexicon import MOODS, QUALITIES, SIZES
from demo.rows import RowTask, draw_splits
from hatchery.corpora.sentences import split_sentences
from hatchery.errors import ConfigError

# Each file stem (folder/task) has fields and labels; the folder determines the splits.
LABELLED: dict[str, tuple[set[str], set[Any]]] = {
    "filter_data/glue_filtered/cola": ({"sentence"}, {0, 1}),
    "filter_data/glue_filtered/sst2": ({"sentence"}, {0, 1}),
    "filter_data/glue_filtered/mrpc": ({"sentence1", "sentence2"}, {0, 1}),
    "filter_data/glue_filtered/qqp": ({"question1", "question2"}, {0, 1}),
    "filter_data/glue_filtered/qnli": ({"question", "sentence"}, {0, 1}),
    "filter_data/glue_filtered/rte": ({"sentence1", "sentence2"}, {0, 1}),
    "filter_data/glue_filtered/boolq": ({"question", "passage"}, {0, 1}),
    "filter_data/glue_filtered/multirc": ({"paragraph", "question", "answer"}, {0, 1}),
    "filter_data/glue_filtered/wsc": ({"text", "span1_index", "span2_index", "span1_text", "span2_text"}, {0, 1}),
    "filter_data/glue_filtered/mnli": ({"premise", "hypothesis"}, {0, 1, 2}),
    "superglue/boolq": ({"question", "passage"}, {0, 1}),
    "superglue/cb": ({"premise", "hypothesis"}, {0, 1, 2}),
    "superglue/copa": ({"premise", "choice1", "choice2", "question"}, {0, 1}),
    "superglue/multirc": ({"paragraph", "question", "answer"}, {0, 1}),
    "superglue/wic": ({"word", "sentence1", "sentence2", "start1", "start2", "end1", "end2"}, {0, 1}),
    "superglue/wsc": ({"text", "span1_index", "span2_index", "span1_text", "span2_text"}, {0, 1}),
    "glue/wnli": ({"sentence1", "sentence2"}, {0, 1}),
    "glue/acceptability": ({"sentence"}, {0, 1}),
    "glue/entailment": ({"sentence1", "sentence2"}, {0, 1}),
}


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def splits(generated: Path, stem: str) -> dict[str, list[dict[str, Any]]]:
    path = generated / stem
    files = sorted(path.parent.glob(f"{path.name}.*"))
    return {file.name.split(".")[1]: read(file) for file in files}


def texts_of(rows: list[dict[str, Any]]) -> set[tuple[str, ...]]:
    return {tuple(str(value) for key, value in sorted(row.items()) if key not in ("idx", "label")) for row in rows}


@pytest.mark.parametrize("stem", LABELLED)
def test_a_task_has_the_published_fields_balanced_labels_and_disjoint_splits(stem: str, generated: Path) -> None:
    fields, labels = LABELLED[stem]
    data = splits(generated, stem)
    named = (
        ["train", "validation_matched", "validation_mismatched"] if stem.endswith("mnli") else ["train", "validation"]
    )
    assert sorted(data) == named
    for rows in data.values():
        assert len(rows) >= 24
        assert all(set(row) == {*fields, "label", "idx"} for row in rows)
        assert stem.endswith("multirc") or [row["idx"] for row in rows] == list(range(len(rows)))
        counts = Counter(row["label"] for row in rows)
        assert set(counts) == labels
        assert len(set(counts.values())) == 1
    seen: set[tuple[str, ...]] = set()
    for rows in data.values():
        assert not seen & texts_of(rows)
        seen |= texts_of(rows)


def test_mnli_and_cb_follow_from_negation_and_direction(generated: Path) -> None:
    """Judge independently: polarity by "not", and the narrower noun because it is no category word."""
    categories = {"animal", "fruit", "tool", "vehicle", "toy", "plant", "garment"}
    for row in read(generated / "filter_data" / "glue_filtered" / "mnli.train.json"):
        premise, hypothesis = row["premise"][:-1].split(), row["hypothesis"][:-1].split()
        negated, claimed = "not" in premise, "not" in hypothesis
        informative = negated == bool(categories & set(premise))
        assert row["label"] == (1 if not informative else 0 if negated == claimed else 2)
    for row in read(generated / "superglue" / "cb.train.jsonl"):
        outer, inner = row["premise"].split(" that ")
        same = (" not " in inner) == (" not " in row["hypothesis"])
        factive = outer.split()[1] in ("knew", "forgot", "saw")
        assert row["label"] == (2 if not factive else 0 if same else 1)


@pytest.mark.parametrize("split", ["train", "validation"])
def test_the_heuristics_of_hans_really_hold(split: str, generated: Path) -> None:
    rows = read(generated / "hans" / f"{split}.jsonl")
    for row in rows:
        assert set(row) == {"premise", "hypothesis", "label", "heuristic", "subcase", "template"}
        premise = row["premise"][:-1].lower().replace(",", " ,").split()
        hypothesis = row["hypothesis"][:-1].lower().split()
        assert set(hypothesis) <= set(premise)
        starts = [start for start in range(len(premise)) if premise[start : start + len(hypothesis)] == hypothesis]
        assert bool(starts) == (row["heuristic"] != "lexical_overlap")
        if row["heuristic"] == "constituent":
            before = premise[starts[0] - 1]
            end = starts[0] + len(hypothesis)
            assert before in ("that", "and", "or", "because", "if")
            assert end == len(premise) or premise[end] == ","
    cells = Counter((row["heuristic"], row["label"]) for row in rows)
    assert len(cells) == 6
    assert set(cells.values()) == {len(rows) // 6}
    assert len({row["subcase"] for row in rows}) == 18


def test_no_longer_sentence_of_the_tasks_stands_in_the_corpora(generated: Path) -> None:
    known = {
        sentence
        for path in (generated / "babylm").iterdir()
        for line in path.read_text(encoding="utf-8").split("\n")
        for sentence in split_sentences(line)
    }
    main = (
        "sentence",
        "passage",
        "paragraph",
        "text",
        "premise",
        "sentence1",
        "question1",
        "sentence_good",
        "sentence_bad",
    )
    checked = 0
    for folder in ("filter_data", "superglue", "hans", "glue"):
        for path in (generated / folder).rglob("*.json*"):
            for row in read(path):
                for sentence in split_sentences(next(row[key] for key in main if key in row).replace("\n", " ")):
                    if len(sentence.split()) > 5:
                        checked += 1
                        assert sentence not in known, (path.name, sentence)
    assert checked > 1000


@pytest.mark.parametrize(
    ("task", "fields"),
    [
        (glue.cola, ("sentence",)),
        (glue.sst2, ("sentence",)),
        (inference.MNLI, ("premise", "hypothesis")),
        (inference.MNLI_MISMATCHED, ("premise", "hypothesis")),
        (inference.rte, ("sentence1", "sentence2")),
        (inference.qnli, ("question", "sentence")),
        (glue.mrpc, ("sentence1", "sentence2")),
        (glue.qqp, ("question1", "question2")),
        (glue.boolq, ("question", "passage")),
        (glue.multirc, ("question", "answer")),
        (glue.wic, ("sentence1", "sentence2")),
        (glue.copa, ("premise", "choice1", "choice2")),
        (glue.wsc, ("text", "span1_text")),
        (glue.wnli, ("sentence1", "sentence2")),
    ],
    ids=lambda value: value.name if isinstance(value, RowTask) else "",
)
def test_no_single_word_of_a_text_tells_the_label(task: RowTask, fields: tuple[str, ...]) -> None:
    no_word_tells_the_label(draw_splits("0/words", {"train": (task, 1200)}, set())["train"], fields)


def no_word_tells_the_label(rows: list[dict[str, Any]], fields: tuple[str, ...]) -> None:
    n_labels = len({row["label"] for row in rows})
    for field in fields:
        counts: dict[str, Counter[int]] = defaultdict(Counter)
        for row in rows:
            for word in set(re.findall(r"[\w']+", row[field].lower())):
                counts[word][row["label"]] += 1
        for word, labels in counts.items():
            number = labels.total()
            # Allow five standard deviations of a fair draw.
            allowed = 5 * math.sqrt(number * (n_labels - 1)) / n_labels + 1
            for label in range(n_labels):
                assert abs(labels[label] - number / n_labels) <= allowed, (field, word, labels)


def test_a_task_that_cannot_make_enough_rows_is_an_error() -> None:
    task = RowTask(lambda rng, group: [{"sentence": "Tom slept.", "label": 0}], ("sentence",))
    with pytest.raises(ConfigError, match="0/same/train cannot make 3 different rows"):
        draw_splits("0/same", {"train": (task, 3)}, set())


CONTROL_PREDICATES = ("happy", "sad", "hopes", "angry", "kind", "clever")
SURFACE_LABELS = ("lexical_content_the_control", "relative_position_control")


def msgs(generated: Path, stem: str, split: str) -> list[dict[str, Any]]:
    return read(generated / "filter_data" / "msgs_filtered" / f"{stem}.{split}.json")


def main_verb_in_ing(words: list[str]) -> bool:
    """Return whether the main verb ends in -ing: last after a relative clause, otherwise before "that"."""
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
    for row in msgs(generated, dataset.stem, split):
        linguistic = feature(dataset.linguistic, row["sentence"])
        surface = feature(dataset.surface, row["sentence"])
        assert row["linguistic_feature_label"] == linguistic
        assert row["surface_feature_label"] == surface
        expected = surface if dataset.stem in SURFACE_LABELS else linguistic
        assert row["label"] == expected
        assert (row["UID"], row["control_paradigm"]) == (dataset.stem, dataset.control)
