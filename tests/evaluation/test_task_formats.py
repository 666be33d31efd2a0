import itertools

import pytest

from hatchery.errors import EvaluationError
from hatchery.evaluation.finetuning.settings import TaskSettings
from hatchery.evaluation.tasks.example import Example
from hatchery.evaluation.tasks.reading import limited, read_task
from hatchery.storage.sources import open_source, register_source

RTE_LABELS = ("entailment", "not_entailment")


def glue(**changes):
    values = {
        "name": "mine",
        "format": "glue_jsonl",
        "files": {"train": "mine.train.json", "validation": "mine.validation.json"},
        "labels": (0, 1),
        "metrics": ("accuracy",),
        "fields": ("sentence",),
    }
    return TaskSettings(**{**values, **changes})


def rte(train="train.xml", validation="validation.xml"):
    return TaskSettings("rte", "rte_xml", {"train": train, "validation": validation}, RTE_LABELS, ("accuracy",))


def rows(*pairs):
    return [{"sentence": text, "label": label} for text, label in pairs]


GOOD = rows(("yes .", 1), ("no .", 0))
PAIRS = '<c><pair id="1" value="TRUE"><t>a</t><h>b</h></pair><pair id="2" entailment="NO"><t>c</t><h>d</h></pair></c>'


def test_glue_rows_keep_their_order_and_their_two_segments(make_source, json_lines):
    train = [{"b": "x", "a": "y", "gold": "same"}, {"b": "z", "a": "w", "gold": "other"}]
    source = make_source({"deep/mine.train.json": json_lines(train), "mine.validation.json": json_lines(train[:1])})
    data = read_task(source, glue(fields=("a", "b"), label_field="gold", labels=("other", "same")))
    assert data.train == [Example(("y", "x"), 1), Example(("w", "z"), 0)]
    assert data.validation == [Example(("y", "x"), 1)]


@pytest.mark.parametrize("labels", [(False, True), ("false", "true")])
def test_labels_agree_however_json_or_the_configuration_spells_them(make_source, json_lines, labels):
    text = json_lines(rows(("a", True), ("b", False)))
    data = read_task(make_source({"mine.train.json": text, "mine.validation.json": text}), glue(labels=labels))
    assert [example.label for example in data.train] == [1, 0]


def test_a_template_joins_fields_as_babylm_does_for_multirc(make_source, json_lines):
    row = {"question": "Who {answer}?", "answer": "me", "paragraph": "Text.", "label": 1}
    source = make_source(
        {
            "mine.train.json": json_lines([row, {**row, "label": 0}]),
            "mine.validation.json": json_lines([row]),
        }
    )
    data = read_task(source, glue(fields=("Question: {question} Answer: {answer}", "paragraph")))
    assert data.validation[0].segments == ("Question: Who {answer}? Answer: me", "Text.")


@pytest.mark.parametrize(
    ("train", "message"),
    [
        ([{"label": 1}], "mine.train.json:1: the field 'sentence' is missing"),
        ([*GOOD, {"sentence": "x"}], "mine.train.json:3: the label field 'label' is missing"),
        ([*GOOD, {"sentence": "x", "label": 2}], "mine.train.json:3: the label 2 is unknown; the task lists 0, 1"),
        ([*GOOD, {"sentence": "x", "label": None}], "mine.train.json:3: the label None is unknown"),
        ([*GOOD, {"sentence": "x", "label": [0]}], "mine.train.json:3: the label .* is unknown"),
        (rows(("a", 1), ("b", 1)), "all training rows of the task 'mine' have the label '1'"),
        ([], "mine.train.json: the file holds no records"),
    ],
)
def test_wrong_glue_rows_are_named_with_file_and_line(make_source, json_lines, train, message):
    source = make_source({"mine.train.json": json_lines(train), "mine.validation.json": json_lines(GOOD)})
    with pytest.raises(EvaluationError, match=message):
        read_task(source, glue())


def test_a_missing_file_is_named_with_its_role(make_source, json_lines):
    with pytest.raises(EvaluationError, match=r"no file matches 'mine.validation.json', the 'validation' files"):
        read_task(make_source({"mine.train.json": json_lines(GOOD)}), glue())


def test_limits_draw_seeded_nested_subsets_in_order():
    examples = [Example((str(i),), 0) for i in range(50)]
    five, ten = limited(examples, 5, 0, "train limit"), limited(examples, 10, 0, "train limit")
    assert len(five) == 5 and set(five) < set(ten)
    assert ten == sorted(ten, key=examples.index)
    assert ten == limited(examples, 10, 0, "train limit") != limited(examples, 10, 1, "train limit")
    assert limited(examples, None, 0, "x") == limited(examples, 99, 0, "x") == examples


def test_the_real_rte_files_of_all_three_challenges_are_read(shared_directory, tmp_path):
    register_source("rte", shared_directory / "data" / "nltk" / "rte.zip", tmp_path / "rte.json")
    data = read_task(
        open_source(tmp_path / "rte.json"),
        rte([f"rte{i}_dev.xml" for i in (1, 2, 3)], [f"rte{i}_test.xml" for i in (1, 2, 3)]),
    )
    # Lines with "<pair " in the archive of NLTK (it has only half of the second development set).
    assert (len(data.train), len(data.validation)) == (567 + 400 + 800, 2400)
    assert 0.45 < sum(example.label for example in data.validation) / 2400 < 0.55
    assert data.train[0].segments[1] == "Crude oil prices rose to $37.80 per barrel"
    assert data.train[0].label == RTE_LABELS.index("not_entailment")


@pytest.mark.parametrize(
    ("xml", "message"),
    [
        (PAIRS.replace("</c>", ""), "train.xml:1: broken XML"),
        (PAIRS.replace('"2"', '"1"'), "train.xml:1: the pair's id '1' is missing or stands twice"),
        (PAIRS.replace('id="1" ', ""), "train.xml:1: the pair's id None"),
        ("\n\n" + PAIRS.replace("TRUE", "MAYBE"), "train.xml:3: the label 'MAYBE' is unknown"),
        (PAIRS.replace('value="TRUE"', ""), "train.xml:1: the label None is unknown"),
        (PAIRS.replace("<h>b</h>", ""), "train.xml:1: expected one 'h' in the pair, found 0"),
        (PAIRS.replace("<h>b</h>", "<h> </h>"), "train.xml:1: the text of 'h' is empty"),
        ("<c/>", "train.xml: the file holds no pair elements"),
        ("", "train.xml:1: broken XML"),
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


def lines_task(**changes):
    values = {
        "name": "subjectivity",
        "format": "labelled_lines",
        "files": {"objective": "plot*", "subjective": "quote*"},
        "labels": ("objective", "subjective"),
        "metrics": ("accuracy",),
    }
    return TaskSettings(**{**values, **changes})


def test_labelled_lines_are_split_without_sharing_a_text(make_source):
    plot = "\n".join(f"plot {i % 30}" for i in range(60))
    quote = "\n".join([*(f"quote   {i}" for i in range(40)), "plot 3"])
    source = make_source({"plot.txt": plot, "quote.txt": quote})
    data = read_task(source, lines_task(validation_fraction=0.3))
    texts = [{example.segments for example in part} for part in (data.train, data.validation)]
    assert texts[0].isdisjoint(texts[1])
    assert len(data.train) + len(data.validation) == 60 + 41
    assert len(texts[1]) == round(0.3 * 70)
    assert data == read_task(source, lines_task(validation_fraction=0.3))
    assert data != read_task(source, lines_task(validation_fraction=0.3, split_seed=1))
    assert Example(("quote 5",), 1) in data.train + data.validation


def test_an_empty_file_of_lines_is_named(make_source):
    with pytest.raises(EvaluationError, match=r"plot.txt: the file holds no lines"):
        read_task(make_source({"plot.txt": "\n \n", "quote.txt": "a\nb"}), lines_task())


def test_the_real_subjectivity_data_gives_600_training_rows(shared_directory, tmp_path):
    register_source("s", shared_directory / "data" / "nltk" / "subjectivity.zip", tmp_path / "s.json")
    data = read_task(open_source(tmp_path / "s.json"), lines_task(train_limit=600, validation_limit=200))
    assert (len(data.train), len(data.validation)) == (600, 200)
    assert 200 < sum(example.label for example in data.train) < 400
