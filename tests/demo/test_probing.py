"""The edge probing files: spans within the text, valid labels, and CoNLL-U sentences that are trees."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

UPOS = {"ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "NOUN", "NUM", "PART", "PRON", "PROPN", "PUNCT", "SCONJ", "VERB"}
TASKS = {
    "pos": {"CC", "CD", "DT", "IN", "JJ", "MD", "NN", "NNP", "NNS", "PRP", "PRP$", "RB", "VB", "VBD", "VBG", "VBN",
            "VBP", "VBZ", "."},
    "ner": {"ANIMAL", "FAC", "FOOD", "LOC", "PERSON", "PLANT", "PRODUCT"},
    "srl": {"ARG0", "ARG1", "ARGM-LOC", "ARGM-MNR", "ARGM-MOD", "ARGM-NEG", "ARGM-TMP"},
    "coref": {"0", "1"},
}  # fmt: skip


def records(generated: Path, task: str, split: str) -> list[dict[str, Any]]:
    path = generated / "edge_probing" / f"{task}.{split}.json"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def sentences(generated: Path, split: str) -> list[list[list[str]]]:
    text = (generated / "edge_probing" / f"dependencies.{split}.conllu").read_text(encoding="utf-8")
    assert text.endswith("\n\n")
    blocks = text.removesuffix("\n\n").split("\n\n")
    return [[line.split("\t") for line in block.split("\n") if not line.startswith("#")] for block in blocks]


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("split", ["train", "development"])
def test_spans_lie_within_the_text_and_labels_in_the_inventory(task: str, split: str, generated: Path) -> None:
    labels: Counter[str] = Counter()
    for record in records(generated, task, split):
        assert set(record) == {"text", "targets", "info"}
        words = record["text"].split(" ")
        assert len(words) > 4
        assert record["targets"]
        for target in record["targets"]:
            spans = ["span1", "span2"] if task in ("srl", "coref") else ["span1"]
            assert set(target) == {*spans, "label", "info"}
            for name in spans:
                start, end = target[name]
                assert 0 <= start < end <= len(words)
            labels[target["label"]] += 1
    assert set(labels) <= TASKS[task]
    if split == "train":
        assert set(labels) == TASKS[task]


@pytest.mark.parametrize("task", TASKS)
def test_development_sentences_are_not_training_sentences(task: str, generated: Path) -> None:
    training, development = (
        {record["text"] for record in records(generated, task, split)} for split in ("train", "development")
    )
    assert not training & development


def test_words_with_two_tags_exist_so_that_the_word_alone_does_not_decide(generated: Path) -> None:
    tags: dict[str, set[str]] = {}
    for split in ("train", "development"):
        for record in records(generated, "pos", split):
            for word, target in zip(record["text"].lower().split(" "), record["targets"], strict=True):
                tags.setdefault(word, set()).add(target["label"])
    assert {"that", "her"} <= {word for word, found in tags.items() if len(found) > 1}
    assert any(found == {"VBD", "VBN"} for found in tags.values())


def test_reflexives_corefer_with_the_name_before_them_and_with_no_other(generated: Path) -> None:
    found = 0
    counts: Counter[str] = Counter()
    for record in records(generated, "coref", "train"):
        words = record["text"].split(" ")
        for target in record["targets"]:
            counts[target["label"]] += 1
            start = target["span2"][0]
            if words[start] in ("himself", "herself"):
                # In "Mary says that Tom blames himself" the antecedent is the name after "that".
                assert target["label"] == str(int(words[target["span1"][0] - 1] == "that"))
                found += 1
    assert found >= 4
    assert 0.25 < counts["1"] / counts.total() < 0.75


@pytest.mark.parametrize("split", ["train", "dev"])
def test_every_sentence_is_a_tree_with_one_root(split: str, generated: Path) -> None:
    for rows in sentences(generated, split):
        assert all(len(row) == 10 and all(row) for row in rows)
        words = [row for row in rows if row[0].isdigit()]
        assert [int(row[0]) for row in words] == list(range(1, len(words) + 1))
        heads = [int(row[6]) for row in words]
        assert heads.count(0) == 1
        assert all((head == 0) == (row[7] == "root") for head, row in zip(heads, words, strict=True))
        for start in range(1, len(words) + 1):
            node, steps = start, 0
            while node:
                assert 0 <= heads[node - 1] <= len(words)
                node, steps = heads[node - 1], steps + 1
                assert steps <= len(words)
        assert {row[3] for row in words} <= UPOS
        assert {row[4] for row in words} <= TASKS["pos"]
