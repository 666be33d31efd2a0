import dataclasses
import itertools

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from finetuning_cases import rows_task

from hatchery.errors import EvaluationError
from hatchery.evaluation.tasks.layout import guess_suite
from hatchery.evaluation.tasks.settings import HeadSettings, TaskSettings, VocabularyFilter
from hatchery.evaluation.tasks.task_rows import read_task, read_task_with_report
from hatchery.raw.obtain import register_settings
from hatchery.raw.registration import open_source

RTE_LABELS = ("entailment", "not_entailment")


def rte(train="train.xml", validation="validation.xml"):
    return TaskSettings(
        name="rte",
        suite="rte",
        format="rte_xml",
        files={"train": train, "validation": validation},
        metrics=("accuracy",),
        labels=RTE_LABELS,
    )


def rows(*pairs):
    return [{"sentence": text, "label": label} for text, label in pairs]


GOOD = rows(("yes .", 1), ("no .", 0))
PAIRS = '<c><pair id="1" value="TRUE"><t>a</t><h>b</h></pair><pair id="2" entailment="NO"><t>c</t><h>d</h></pair></c>'


def contents(examples):
    """Return inputs and labels, without the places in the files."""
    return [(example.inputs, example.label) for example in examples]


def parquet(table, tmp_path):
    pq.write_table(table, tmp_path / "made.parquet")
    return (tmp_path / "made.parquet").read_bytes()


def test_json_rows_keep_their_order_segments_and_places(make_source, json_lines):
    train = [{"b": "x", "a": "y", "gold": "same"}, {"b": "z", "a": "w", "gold": "other"}]
    source = make_source({"deep/train.json": json_lines(train), "dev.json": json_lines(train[:1])})
    data = read_task(source, rows_task(fields=("a", "b"), label_field="gold", labels=("other", "same")))
    assert contents(data.train) == [((("y", "x"),), 1), ((("w", "z"),), 0)]
    assert contents(data.scored["validation"]) == [((("y", "x"),), 1)]
    assert [example.where for example in data.train] == ["deep/train.json:1", "deep/train.json:2"]
    assert data.labels == ("other", "same")


def test_the_same_rows_are_read_from_json_lines_parquet_and_a_table(make_source, json_lines, tmp_path):
    values = [
        {"question1": "a “b”", "question2": "c", "is_duplicate": 1, "idx": 0},
        {"question1": "", "question2": "d", "is_duplicate": 0, "idx": 1},
    ]
    table = "".join("\t".join(map(str, cells)) + "\n" for cells in [values[0], *(row.values() for row in values)])
    made = {".json": json_lines(values), ".parquet": parquet(pa.Table.from_pylist(values), tmp_path), ".tsv": table}
    source = make_source({f"{name}{ending}": content for name in ("train", "dev") for ending, content in made.items()})
    for ending, where in ((".json", "train.json:2"), (".parquet", "train.parquet, row 2"), (".tsv", "train.tsv:3")):
        task = rows_task(
            files={"train": f"train{ending}", "validation": f"dev{ending}"},
            fields=("question1", "question2"),
            label_field="is_duplicate",
        )
        data = read_task(source, task)
        assert contents(data.train) == [((("a “b”", "c"),), 1), ((("", "d"),), 0)]
        assert data.train[1].where == where
    with pytest.raises(EvaluationError, match=r"train.json:1: the field 'sentence' .*looks like a record of QQP"):
        read_task(source, rows_task(files={"train": "train.json", "validation": "dev.json"}))


def test_shards_of_the_hub_are_read_in_order_with_nested_objects_and_nulls(make_source, tmp_path):
    shards = [
        [{"text": f"t{i}", "label": i % 2, "idx": {"question": i, "paragraph": 0}, "note": None if i else "x"}]
        for i in range(3)
    ]
    source = make_source(
        {f"train-{i:05d}.parquet": parquet(pa.Table.from_pylist(shard), tmp_path) for i, shard in enumerate(shards)}
        | {"validation-00000.parquet": parquet(pa.Table.from_pylist(shards[0]), tmp_path)}
    )
    task = rows_task(
        files={"train": "train-*.parquet", "validation": "validation-*.parquet"},
        fields=("text",),
        group_fields=("idx.paragraph", "idx.question"),
    )
    data = read_task(source, task)
    assert [example.segments for example in data.train] == [("t0",), ("t1",), ("t2",)]
    assert [example.group for example in data.train] == ["0/0", "0/1", "0/2"]


def test_columns_of_filters_facts_and_scored_rows_are_read_from_parquet(make_source, tmp_path):
    values = [
        {"text": f"t{i}", "label": i % 2, "origin": "a" if i else "b", "kind": f"k{i}", "part": ["test", "x"][i % 2]}
        for i in range(4)
    ]
    file = parquet(pa.Table.from_pylist(values), tmp_path)
    task = rows_task(
        files={"train": "train.parquet", "validation": "dev.parquet"},
        fields=("text",),
        vocabulary=VocabularyFilter(("origin",)),
        facts=("kind",),
        scored_rows={"part": "test"},
    )
    rows = read_task(make_source({"train.parquet": file, "dev.parquet": file}), task, frozenset({"a"}))
    found = [(row.segments, row.facts, row.scored) for row in rows.scored["validation"]]
    assert found == [
        (("t1",), {"kind": "k1"}, False),
        (("t2",), {"kind": "k2"}, True),
        (("t3",), {"kind": "k3"}, False),
    ]


def test_parquet_columns_that_nobody_asks_for_are_named_when_a_field_is_missing(make_source, tmp_path):
    table = pa.Table.from_pylist([{"premise": "a", "hypothesis": "b", "label": 0, "idx": 1}])
    source = make_source({"train.parquet": parquet(table, tmp_path), "dev.parquet": parquet(table, tmp_path)})
    task = rows_task(files={"train": "train.parquet", "validation": "dev.parquet"})
    with pytest.raises(
        EvaluationError, match=r"train.parquet, row 1: .*'sentence'.* has: hypothesis, idx, label, prem"
    ):
        read_task(source, task)


def test_cola_without_a_header_is_read_by_the_columns_of_the_task(make_source):
    table = "gj04\t1\t\tOur friends won't buy this.\ngj04\t0\t*\tThe more he \"reads.\n"
    source = make_source({"train.tsv": table, "dev.tsv": table})
    task = rows_task(
        files={"train": "train.tsv", "validation": "dev.tsv"}, columns=("source", "label", "mark", "sentence")
    )
    assert contents(read_task(source, task).train) == [
        ((("Our friends won't buy this.",),), 1),
        ((('The more he "reads.',),), 0),
    ]


def test_columns_with_blanks_and_named_labels_of_the_original_glue_are_read(make_source):
    table = "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\r\n1\t7\t8\tone\tuno\r\n0\t9\t10\ttwo\tdue\r\n"
    source = make_source({"train.tsv": table, "dev.tsv": table})
    task = rows_task(
        files={"train": "train.tsv", "validation": "dev.tsv"},
        fields=("#1 String", "#2 String"),
        label_field="Quality",
        labels=("different", "same"),
        label_values={"0": "different", "1": "same"},
    )
    assert contents(read_task(source, task).train) == [((("one", "uno"),), 1), ((("two", "due"),), 0)]
    with pytest.raises(EvaluationError, match=r"the record looks like a record of MRPC \(original\)"):
        read_task(source, rows_task(files={"train": "train.tsv", "validation": "dev.tsv"}))


def test_a_table_between_tabs_has_quotes_around_cells_only_if_its_header_has(make_source):
    # First a table written by R: row names without a column name, and quoted cells. Then a GLUE table, in which quotes
    # are plain characters.
    by_r = '"sentence"\t"label"\n"1"\t"He said \\"yes\\"."\t1\n"2"\t"Où?"\t0\n'
    # Blanks around the names in its header are no part of the names.
    glue = 'sentence \t label\n"Yes."\t1\nHe said "yes\t0\n'
    task = rows_task(files={"train": "train.tsv", "validation": "dev.tsv"})
    read = read_task(make_source({"train.tsv": by_r, "dev.tsv": glue}), task)
    assert contents(read.train) == [((('He said "yes".',),), 1), ((("Où?",),), 0)]
    assert contents(read.scored["validation"]) == [((('"Yes."',),), 1), ((('He said "yes',),), 0)]


def test_a_few_torn_rows_of_a_table_are_left_out_and_more_are_an_error(make_source):
    body = "".join(f"text {i}\t{i % 2}\n" for i in range(1500))
    task = rows_task(files={"train": "train.tsv", "validation": "dev.tsv"})
    source = make_source({"train.tsv": f"sentence\tlabel\n{body}torn\n", "dev.tsv": "sentence\tlabel\na\t1\n"})
    assert len(read_task(source, task).train) == 1500
    source = make_source({"train.tsv": f"sentence\tlabel\n{body}torn\ntorn\n"})
    with pytest.raises(EvaluationError, match=r"train.tsv:1502: has 1 cells, expected 2 \(sentence, label\)"):
        read_task(source, task)


@pytest.mark.parametrize("labels", [(False, True), ("false", "true")])
def test_labels_agree_however_json_or_the_configuration_spells_them(make_source, json_lines, labels):
    text = json_lines(rows(("a", True), ("b", False)))
    data = read_task(make_source({"train.json": text, "dev.json": text}), rows_task(labels=labels))
    assert [example.label for example in data.train] == [1, 0]


@pytest.mark.parametrize(
    ("train", "message"),
    [
        (
            [{"label": 1}],
            "train.json:1: the field 'sentence' of the task 'mine' is missing; the record has: label",
        ),
        ([*GOOD, {"sentence": "x", "label": 2}], "train.json:3: the label 2 in 'label' is unknown; .* lists 0, 1"),
        ([*GOOD, {"sentence": "x", "label": None}], "train.json:3: the label field 'label' is null"),
        ([*GOOD, {"sentence": " ", "label": 0}], "train.json:3: no text in the fields sentence"),
        (rows(("a", -1), ("b", -1)), "train.json:1: the label -1 .* test split without labels"),
        (rows(("a", "-1"), ("b", "-1")), "train.json:1: the label -1 .* test split without labels"),
        (rows(("a", 1), ("b", 1)), "all training rows of the task 'mine' have the label '1'"),
    ],
)
def test_wrong_rows_are_named_with_file_and_line(make_source, json_lines, train, message):
    source = make_source({"train.json": json_lines(train), "dev.json": json_lines(GOOD)})
    with pytest.raises(EvaluationError, match=message) as caught:
        read_task(source, rows_task())
    assert "\n" not in str(caught.value)


def test_a_training_file_that_lacks_a_label_of_the_task_is_refused(make_source, json_lines):
    text = json_lines([{"premise": "a", "hypothesis": "b", "label": label} for label in (0, 1)])
    source = make_source({"train.json": text, "dev.json": text})
    with pytest.raises(EvaluationError, match="no training row of the task 'mine' has the label '2'"):
        read_task(source, rows_task(fields=("premise", "hypothesis"), labels=(0, 1, 2)))


@pytest.mark.parametrize(
    ("row", "task", "suite"),
    [
        ({"sentence": "a", "label": 0, "linguistic_feature_label": 1, "condition": "test"}, {}, "MSGS"),
        (
            {"premise": "a", "hypothesis": "b", "label": 0, "heuristic": "x", "subcase": "y"},
            {"fields": ("premise", "hypothesis")},
            "HANS",
        ),
        (
            {"word": "a", "sentence1": "a", "sentence2": "a", "start1": 0, "end1": 1, "label": 0},
            {"fields": ("sentence1", "sentence2")},
            "WiC",
        ),
        ({"text": "a", "span1_text": "a", "span2_text": "b", "label": 0}, {"fields": ("text",)}, "WSC"),
        ({"premise": "a", "choice1": "b", "choice2": "c", "label": 0}, {"fields": ("premise",)}, "COPA"),
        (
            {"sentence_good": "a", "sentence_bad": "b", "UID": "c", "label": 0},
            {"fields": ("UID",)},
            r"minimal pairs \(BLiMP or the supplement\)",
        ),
    ],
)
def test_a_file_of_another_suite_is_one_clear_error(make_source, json_lines, row, task, suite):
    text = json_lines([row, row])
    source = make_source({"train.json": text, "dev.json": text})
    with pytest.raises(EvaluationError, match=rf"train.json:1: .*file of {suite}"):
        read_task(source, rows_task(**task))


@pytest.mark.parametrize(
    ("fields", "suite"),
    [
        ("sentence_good sentence_bad UID field pairID", "minimal pairs (BLiMP or the supplement)"),
        ("sentence linguistic_feature_label surface_feature_label condition", "MSGS"),
        ("text targets info", "edge probing (jiant)"),
        ("word sentence1 sentence2 start1 start2 end1 end2 idx label", "WiC"),
        ("text span1_index span2_index span1_text span2_text idx label", "WSC"),
        ("text target label idx", "WSC"),
        ("premise choice1 choice2 question idx label", "COPA"),
        ("passage query entities entity_spans answers idx", "ReCoRD"),
        ("source passage qas idx", "ReCoRD (original)"),
        ("paragraph question answer idx label", "MultiRC"),
        ("question passage idx label", "BoolQ"),
        ("premise hypothesis label parse_premise heuristic subcase template", "HANS"),
        ("gold_label sentence1 sentence2 pairID heuristic subcase template", "HANS (original)"),
        ("question sentence label idx", "QNLI"),
        ("question1 question2 label idx", "QQP"),
        ("premise hypothesis label idx", "MNLI, CB or SuperGLUE's RTE"),
        ("sentence1 sentence2 label idx", "MRPC, RTE, STS-B or WNLI"),
        ("sentence label idx", "CoLA or SST-2"),
        ("text label", None),
    ],
)
def test_the_published_columns_of_each_suite_are_recognised(fields, suite):
    assert guess_suite(fields.split()) == suite


def test_one_field_of_another_suite_alone_is_a_field_like_others(make_source, json_lines):
    text = json_lines([{**row, "template": "x"} for row in GOOD])
    data = read_task(make_source({"train.json": text, "dev.json": text}), rows_task())
    assert contents(data.train) == [((("yes .",),), 1), ((("no .",),), 0)]


def test_numbers_are_read_for_regression_and_must_be_finite(make_source, json_lines):
    task = rows_task(labels=(), head=HeadSettings("regression"), label_field="score")
    good = [{"sentence": "a", "score": 3}, {"sentence": "b", "score": "2.5"}, {"sentence": "c", "score": 0.25}]
    source = make_source({"train.json": json_lines(good), "dev.json": json_lines(good)})
    data = read_task(source, task)
    assert [example.label for example in data.train] == [3.0, 2.5, 0.25] and data.labels == ()
    for wrong in ("x", True, None, "nan", float("inf"), [1]):
        source = make_source({"train.json": json_lines([*good, {"sentence": "d", "score": wrong}])})
        with pytest.raises(EvaluationError, match=r"train.json:4: .*'score' .*expects a finite number"):
            read_task(source, task)


def test_another_number_of_rows_than_published_is_an_error(make_source, json_lines):
    source = make_source({"train.json": json_lines(GOOD), "dev.json": json_lines(GOOD * 2)})
    task = rows_task(expected_rows={"train": 2, "validation": 4})
    assert read_task_with_report(source, task)[1].measures()["read_validation"] == 4
    with pytest.raises(EvaluationError, match="the 'validation' set of the task 'mine' has 4 rows, expected 5"):
        read_task(source, dataclasses.replace(task, expected_rows={"validation": 5}))


def test_a_missing_file_and_a_file_on_both_sides_are_named_with_their_role(make_source, json_lines):
    source = make_source({"train.json": json_lines(GOOD)})
    with pytest.raises(EvaluationError, match=r"no file matches 'dev.json', the 'validation' files"):
        read_task(source, rows_task())
    with pytest.raises(EvaluationError, match=r"'train.json' is both a training and a 'validation' file"):
        read_task(source, rows_task(files={"train": "train.*", "validation": "train.json"}))


def test_the_real_rte_files_of_all_three_challenges_are_read(real_data, tmp_path):
    path = str(real_data / "nltk" / "rte.zip")
    register_settings({"name": "rte", "path": path}, tmp_path / "rte.json", tmp_path / "fetched")
    data = read_task(
        open_source(tmp_path / "rte.json"),
        rte([f"rte{i}_dev.xml" for i in (1, 2, 3)], [f"rte{i}_test.xml" for i in (1, 2, 3)]),
    )
    validation = data.scored["validation"]
    # Number of lines with "<pair " in NLTK's archive, which has only half of the second development set.
    assert (len(data.train), len(validation)) == (567 + 400 + 800, 2400)
    assert 0.45 < sum(example.label for example in validation) / 2400 < 0.55
    assert data.train[0].segments[1] == "Crude oil prices rose to $37.80 per barrel"
    assert data.train[0].label == RTE_LABELS.index("not_entailment")


@pytest.mark.parametrize(
    ("xml", "message"),
    [
        (PAIRS.replace("</c>", ""), "train.xml:1: malformed XML"),
        (
            PAIRS.replace('"2"', '"1"'),
            "train.xml:1: got the pair id '1', expected an id that occurs only once in the file",
        ),
        (PAIRS.replace("<h>b</h>", ""), "train.xml:1: expected one 'h' in the pair, found 0"),
        (PAIRS.replace("<h>b</h>", "<h> </h>"), "train.xml:1: the text of 'h' is empty"),
        ("<c/>", "train.xml: the file contains no pair elements"),
    ],
)
def test_wrong_rte_pairs_are_named_with_file_and_line(make_source, xml, message):
    with pytest.raises(EvaluationError, match=message) as caught:
        read_task(make_source({"train.xml": xml, "validation.xml": PAIRS}), rte())
    assert "\n" not in str(caught.value)


def test_an_entity_that_would_read_a_file_or_explode_is_refused(make_source, tmp_path):
    (tmp_path / "secret").write_text("secret")
    outside = f'<!DOCTYPE c [<!ENTITY e SYSTEM "file://{tmp_path}/secret">]>'
    bomb = '<!DOCTYPE c [<!ENTITY a "ha">' + "".join(
        f'<!ENTITY {after} "{f"&{before};" * 10}">' for before, after in itertools.pairwise("abcdefghij")
    )
    for doctype, name in ((outside, "e"), (bomb + "]>", "j")):
        xml = doctype + PAIRS.replace("<t>a</t>", f"<t>a &{name};</t>")
        with pytest.raises(EvaluationError, match=r"train.xml:1: "):
            read_task(make_source({"train.xml": xml, "validation.xml": PAIRS}), rte())
