"""The targets of CoNLL-2012 from column files and from the hub's rows; both must agree."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hatchery.errors import ConfigError, EvaluationError
from hatchery.evaluation.probing.conll2012 import (
    AnnotatedSentence,
    LabelledSpan,
    bracketed,
    read_gold_conll,
    read_hub_rows,
    tagged,
)
from hatchery.evaluation.probing.conll2012_targets import TARGETS, coreference_targets, sentences_of
from hatchery.evaluation.tasks.settings import TaskSettings
from hatchery.evaluation.tasks.task_rows import read_task
from hatchery.experiment.project import Project

# word, part of speech, parse, entity, two predicates, coreference
WORDS = [
    ("Anna", "NNP", "(TOP(S(S(NP*)", "(PERSON)", "(ARG0*)", "*", "(3)"),
    ("told", "VBD", "(VP*", "*", "(V*)", "*", "-"),
    ("her", "PRP$", "(NP*", "*", "(ARG2*", "(ARG0*", "(3)|(7"),
    ("sister", "NN", "*))", "*", "*)", "*)", "7)"),
    ("(", "-LRB-", "*", "*", "*", "(C-V*)", "-"),
    ("Bank", "NNP", "(NP*", "(ORG*", "(C-ARG2*", "*", "(9"),
    ("One", "NNP", "*)", "*)", "*)", "*", "9)"),
    ("left", "VBD", "(S*))", "*", "*", "(V*)", "-"),
]


def gold_conll(words: list[tuple[str, ...]] = WORDS) -> str:
    rows = ["#begin document (nw/a/00/a_0000); part 000"]
    for number, (word, tag, parse, entity, first, second, cluster) in enumerate(words):
        columns = ["nw/a/00/a_0000", "0", number, word, tag, parse, "-", "-", "-", "-", entity, first, second, cluster]
        rows.append("   ".join(map(str, columns)))
    return "\n".join([*rows, "", "#end document", ""])


TEXT = "Anna told her sister ( Bank One left"

HUB_SENTENCE: dict[str, Any] = {
    "part_id": 0,
    "words": [word for word, *_ in WORDS],
    "pos_tags": [1] * 8,
    "parse_tree": "(TOP (S (NP (NNP Anna)) (VP (VBD told) (NP (PRP$ her) (NN sister))) (-LRB- -LRB-) "
    "(NP (NNP Bank) (NNP One)) (S (VBD left))))",
    "named_entities": [1, 0, 0, 0, 0, 2, 3, 0],
    "srl_frames": [
        {"verb": "told", "frames": ["B-ARG0", "B-V", "B-ARG2", "I-ARG2", "O", "B-C-ARG2", "I-C-ARG2", "O"]},
        {"verb": "left", "frames": ["O", "O", "B-ARG0", "I-ARG0", "B-C-V", "O", "O", "B-V"]},
    ],
    "coref_spans": [[3, 0, 0], [3, 2, 2], [7, 2, 3], [9, 5, 6]],
}


NAMES = ("O", "B-PERSON", "B-ORG", "I-ORG")
TAGS = ["-LRB-", "NN", "NNP", "PRP$", "VBD"]


def parquet(*documents: list[dict[str, Any]], names: tuple[str, ...] = NAMES) -> bytes:
    """Return a file with a row for each document, which is a list of sentences."""
    fields = {"named_entities": {"feature": {"names": list(names)}}, "pos_tags": {"feature": {"names": TAGS}}}
    described = {"info": {"features": {"sentences": [fields]}}}
    rows = [{"document_id": "nw/a/00/a_0000", "sentences": sentences} for sentences in documents]
    table = pa.Table.from_pylist(rows)
    if names:
        table = table.replace_schema_metadata({"huggingface": json.dumps(described)})
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return sink.getvalue().to_pybytes()


RECORDS: dict[str, list[list[dict[str, Any]]]] = {
    "pos": [[{"span1": [i, i + 1], "label": tag} for i, (_, tag, *_) in enumerate(WORDS)]],
    "ner": [[{"span1": [0, 1], "label": "PERSON"}, {"span1": [5, 7], "label": "ORG"}]],
    "srl": [
        [
            {"span1": [1, 2], "span2": [0, 1], "label": "ARG0"},
            {"span1": [1, 2], "span2": [2, 4], "label": "ARG2"},
            {"span1": [1, 2], "span2": [5, 7], "label": "C-ARG2"},
        ],
        # The predicate's V is not a target, but its continuation C-V is, like every C- label.
        [
            {"span1": [7, 8], "span2": [2, 4], "label": "ARG0"},
            {"span1": [7, 8], "span2": [4, 5], "label": "C-V"},
        ],
    ],
    "coref": [
        [
            {"span1": [0, 1], "span2": [2, 4], "label": "0"},
            {"span1": [0, 1], "span2": [2, 3], "label": "1"},
            {"span1": [0, 1], "span2": [5, 7], "label": "0"},
            {"span1": [2, 4], "span2": [2, 3], "label": "0"},
            {"span1": [2, 4], "span2": [5, 7], "label": "0"},
            {"span1": [2, 3], "span2": [5, 7], "label": "0"},
        ]
    ],
}


@pytest.mark.parametrize(("name", "content"), [("a.gold_conll", gold_conll()), ("a.parquet", parquet([HUB_SENTENCE]))])
@pytest.mark.parametrize("task", RECORDS)
def test_every_task_has_the_targets_of_the_reference(make_source, name: str, content: Any, task: Any) -> None:
    (sentence,) = sentences_of(make_source({name: content}), name)
    assert (" ".join(sentence.words), sentence.document) == (TEXT, "nw/a/00/a_0000")
    assert list(TARGETS[task](sentence)) == RECORDS[task]


def test_without_a_parse_tree_the_parts_of_speech_are_the_tags_or_their_class_numbers(make_source) -> None:
    tags = [tag for _, tag, *_ in WORDS]
    for pos_tags in (tags, [2, 4, 3, 1, 0, 2, 2, 4]):
        file = parquet([{**HUB_SENTENCE, "parse_tree": None, "pos_tags": pos_tags}])
        (sentence,) = read_hub_rows(make_source({"a.parquet": file}), "a.parquet")
        assert list(sentence.parts_of_speech) == tags


def test_a_span_that_is_two_mentions_makes_no_pair_with_itself() -> None:
    mentions = (LabelledSpan(0, 1, "3"), LabelledSpan(2, 3, "3"), LabelledSpan(2, 3, "7"))
    sentence = AnnotatedSentence(("Anna", "told", "her"), (), (), (), mentions, "a", "0", "a:1")
    pair = {"span1": [0, 1], "span2": [2, 3]}
    assert list(coreference_targets(sentence)) == [[{**pair, "label": "1"}, {**pair, "label": "0"}]]


def test_records_without_targets_are_left_out(make_source) -> None:
    frames = [("(ARG0)", "*"), ("*", "(V*)"), *[("*", "*")] * 6]
    plain = [(*word[:3], "*", *frame, "-") for word, frame in zip(WORDS, frames, strict=True)]
    (sentence,) = sentences_of(make_source({"a.gold_conll": gold_conll(plain)}), "a.gold_conll")
    # The first frame has no predicate, and the second frame has no argument.
    assert [len(list(TARGETS[task](sentence))) for task in ("pos", "ner", "srl", "coref")] == [1, 0, 0, 0]


def test_documents_and_sentences_are_kept_apart(make_source) -> None:
    source = make_source({"a": gold_conll() + gold_conll(), "b": gold_conll().replace("#end document", gold_conll())})
    assert [sentence.where for sentence in read_gold_conll(source, "a")] == ["a:2", "a:13"]
    assert len(list(read_gold_conll(source, "b"))) == 2


def test_brackets_nest_and_close_on_their_own_cell() -> None:
    spans = bracketed(["(A(B*", "*)", "(C)", "*)"], "here")
    assert spans == (LabelledSpan(0, 4, "A"), LabelledSpan(0, 2, "B"), LabelledSpan(2, 3, "C"))


def damaged(row: int, column: int, value: str) -> str:
    words = [list(word) for word in WORDS]
    words[row][column] = value
    return gold_conll([tuple(word) for word in words])


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (damaged(0, 0, "[WORD]"), r"a:2: the word is \[WORD\]; merge"),
        (damaged(0, 0, "two words"), "a:3: got 14 columns, expected 15 columns"),
        (damaged(6, 3, "*"), r"a:2: the column of entities: the bracket \(ORG is not closed"),
        (damaged(1, 3, "*)"), "closes a bracket that was not opened"),
        (damaged(3, 6, "-"), r"the mention \(7 is not closed"),
        (damaged(1, 6, "8)"), "'8\\)' closes a mention that was not opened"),
        (damaged(1, 6, "x"), "expected clusters"),
        (gold_conll().replace("   3   ", "   4   ", 1), "a:5: the word number is '4', expected 3"),
        ("a b c\n", "a:1: got 3 columns, expected 12 or more columns"),
    ],
)
def test_broken_column_files_name_file_and_line(make_source, text: str, complaint: str) -> None:
    with pytest.raises(EvaluationError, match=complaint):
        list(read_gold_conll(make_source({"a": text}), "a"))


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"words": ["Anna"]}, "8 parts of speech for 1 words"),
        ({"named_entities": [0] * 7}, "7 entity tags for 8 words"),
        ({"named_entities": [9] + [0] * 7}, "numbers from 0 to 3"),
        ({"named_entities": [-1] + [0] * 7}, "numbers from 0 to 3"),
        ({"named_entities": [3] + [0] * 7}, "got the tag 'I-ORG', expected O, B-"),
        ({"coref_spans": [[1, 0, 8]]}, "a mention is not within the 8 words"),
        ({"srl_frames": [{"verb": "told", "frames": ["B-V"]}]}, "1 tags of predicate 0 for 8 words"),
    ],
)
def test_broken_rows_name_row_and_sentence(make_source, changes: dict[str, Any], complaint: str) -> None:
    damaged = [HUB_SENTENCE, {**HUB_SENTENCE, **changes}]
    source = make_source({"a.parquet": parquet([HUB_SENTENCE], damaged)})
    with pytest.raises(EvaluationError, match=f"a.parquet: row 1, sentence 1.*{complaint}"):
        list(read_hub_rows(source, "a.parquet"))


def test_numbers_without_names_and_files_of_another_kind_are_refused(make_source) -> None:
    with pytest.raises(EvaluationError, match="named_entities are class numbers, expected class names"):
        list(read_hub_rows(make_source({"a.parquet": parquet([HUB_SENTENCE], names=())}), "a.parquet"))
    with pytest.raises(EvaluationError, match=r"b\.parquet: not a readable Parquet file"):
        list(read_hub_rows(make_source({"b.parquet": "no"}), "b.parquet"))


def test_neighbouring_spans_of_one_label_stay_two() -> None:
    assert tagged(["B-A", "B-A", "I-A"], "here") == (LabelledSpan(0, 1, "A"), LabelledSpan(1, 3, "A"))
    with pytest.raises(EvaluationError, match="here: got the tag 'I-A'"):
        tagged(["B-A", "O", "I-A"], "here")


def test_of_two_mentions_of_one_cluster_the_inner_one_closes_first(make_source) -> None:
    clusters = ("(3", "(3", "3)", "3)")
    words = [(*word[:-1], cluster) for word, cluster in zip(WORDS[:4], clusters, strict=True)]
    (sentence,) = read_gold_conll(make_source({"a": gold_conll(words)}), "a")
    assert [(mention.start, mention.end) for mention in sentence.mentions] == [(0, 4), (1, 3)]
    twice = [(*word[:-1], cluster) for word, cluster in zip(WORDS[:2], ("(3)|(3)", "-"), strict=True)]
    (sentence,) = read_gold_conll(make_source({"a": gold_conll(twice)}), "a")
    assert sentence.mentions == (LabelledSpan(0, 1, "3"),), "a mention that is annotated twice is one mention"


@pytest.mark.parametrize("layer", sorted(RECORDS))
def test_probes_read_the_files_of_ontonotes_where_these_are_given_and_records_are_not(
    repository: Path, layer: str
) -> None:
    def settings(task: str, **paths: str) -> TaskSettings:
        project = Project(repository / "config", {"data": {name: {"path": path} for name, path in paths.items()}})
        return project.task(task).settings(task)

    task, direct = f"probe_{layer}", f"probe_{layer}_conll2012"
    for paths in ({}, {"ontonotes_probing": "a"}, {"ontonotes_probing": "a", "ontonotes_conll2012": "b"}):
        assert settings(task, **paths).format == "jiant"
    given = settings(task, ontonotes_conll2012="b")
    assert replace(given, name=direct) == settings(direct) == settings(direct, ontonotes_conll2012="b")
    published = settings(f"{task}_as_published", ontonotes_conll2012="b")
    assert (published.format, published.suite) == ("conll2012", "probing_as_published")
    assert published.head.options["layer_reading"] == "outputs"
    assert settings("demo_" + task, ontonotes_conll2012="b") == settings("demo_" + task)


@pytest.mark.parametrize("layer", sorted(RECORDS))
def test_the_tasks_of_ontonotes_read_its_files_as_those_of_jiant_read_the_records(
    make_source, repository: Path, layer: str
) -> None:
    project = Project(repository / "config")
    # CoNLL-2012's own files and files of other distributions have different extensions.
    files = ("data/train/data/english/nw/a.v4_gold_conll", "data/development/data/english/nw/b.gold_conll")
    direct = project.task(f"probe_{layer}_conll2012").settings(f"probe_{layer}_conll2012")
    ours = read_task(make_source(dict.fromkeys(files, gold_conll())), direct)
    records = "".join(json.dumps({"text": TEXT, "targets": targets, "info": {}}) + "\n" for targets in RECORDS[layer])
    folder = {"pos": "const/pos"}.get(layer, layer)
    jiant = make_source({f"{folder}/{split}.json": records for split in ("train", "development")})
    theirs = read_task(jiant, project.task(f"probe_{layer}").settings(f"probe_{layer}"))

    def without_places(examples: Any) -> Any:
        return [(example.words, example.targets) for example in examples]

    assert ours.labels == theirs.labels
    assert without_places(ours.train) == without_places(theirs.train)
    assert without_places(ours.scored["validation"]) == without_places(theirs.scored["validation"])
    with pytest.raises(ConfigError, match=r"label_field is 'tree', expected one of pos, ner, srl, coref"):
        read_task(source=jiant, task=replace(direct, label_field="tree"))
