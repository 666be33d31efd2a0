import json

import pytest
from finetuning_cases import rows_task

from hatchery.errors import EvaluationError
from hatchery.evaluation.json_lines import Record
from hatchery.evaluation.tasks.example import MarkedSpan
from hatchery.evaluation.tasks.layout import Context
from hatchery.evaluation.tasks.layouts import layout_called
from hatchery.evaluation.tasks.layouts.record import without_highlights
from hatchery.evaluation.tasks.settings import HeadSettings
from hatchery.evaluation.tasks.task_rows import used_fields


def task(layout="segments", **changes):
    choice = {"labels": (), "head": HeadSettings("multiple_choice")} if layout == "copa" else {}
    return rows_task(**{"layout": layout, "fields": (), **choice, **changes})


def laid_out(row, layout="segments", normalise=lambda text: text, **changes):
    settings = task(layout, **changes)
    definition = layout_called(layout)
    lay_out = definition.make(Context(settings, normalise, True, definition.choices))
    return list(lay_out(Record(row, "dev.json:3", 3)))


BABYLM_MULTIRC = ("Question: {question} Answer: {answer}", "paragraph")
BABYLM_WSC = ('Does "{span2_text}" refer to "{span1_text}" in this passage?', "text")


def test_babylm_joins_question_and_answer_and_never_fills_what_a_field_holds():
    row = {"question": "Who {answer}?", "answer": "me", "paragraph": "Text.", "label": 1}
    (example,) = laid_out(row, fields=BABYLM_MULTIRC)
    assert example.segments == ("Question: Who {answer}? Answer: me", "Text.")


def test_babylm_asks_wsc_whether_the_second_span_means_the_first():
    row = {"text": "Ann said she ran.", "span1_text": "Ann", "span2_text": "she", "label": 1}
    (example,) = laid_out(row, fields=BABYLM_WSC)
    assert example.segments == ('Does "she" refer to "Ann" in this passage?', "Ann said she ran.")


def test_dots_reach_into_the_nested_objects_of_the_original_wsc():
    row = {"text": "Ann ran.", "target": {"span1_text": "Ann", "span2_text": "she"}, "label": True}
    fields = ("{target.span2_text} = {target.span1_text}", "text")
    (example,) = laid_out(row, fields=fields, label_values={"true": 1, "false": 0})
    assert example.segments == ("she = Ann", "Ann ran.") and example.label == 1
    assert {"target", "text", "label"} <= used_fields(task(fields=fields))


COPA = {"premise": "It rained.", "choice1": "I got wet.", "choice2": "Clouds came.", "label": 1}


@pytest.mark.parametrize(
    ("question", "inputs"),
    [
        ("effect", (("It rained.", "I got wet."), ("It rained.", "Clouds came."))),
        ("cause", (("I got wet.", "It rained."), ("Clouds came.", "It rained."))),
    ],
)
def test_copa_gives_one_input_per_choice_with_the_cause_first(question, inputs):
    (example,) = laid_out({**COPA, "question": question}, "copa")
    assert example.inputs == inputs and example.label == 1


def test_other_spellings_of_a_choice_are_those_of_the_settings():
    (example,) = laid_out({**COPA, "question": "cause", "label": "2"}, "copa", label_values={"1": 0, "2": 1})
    assert example.label == 1
    assert laid_out({**COPA, "question": "cause", "label": "1"}, "copa")[0].label == 1, "a table has digits as text"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"question": "why"}, "dev.json:3: the question must be cause or effect, got 'why'"),
        ({"question": "cause", "label": 2}, "dev.json:3: the label 2 .* the index of a choice, 0 to 1"),
    ],
)
def test_wrong_copa_items_are_named(changes, message):
    with pytest.raises(EvaluationError, match=message):
        laid_out({**COPA, **changes}, "copa")


def test_multirc_rows_of_the_hub_are_grouped_by_paragraph_and_question():
    row = {"paragraph": "P.", "question": "Q?", "answer": "A", "label": 1}
    (example,) = laid_out({**row, "idx": {"paragraph": 4, "question": 17, "answer": 60}}, "multirc")
    assert (example.segments, example.label, example.group) == (("P.", "Q?", "A"), 1, "4/17")


def test_the_original_multirc_gives_the_same_examples_as_the_hub():
    answers = [{"text": "A", "idx": 60, "label": 1}, {"text": "", "idx": 61, "label": 0}]
    questions = [
        {"question": "Q?", "idx": 17, "answers": answers},
        {"question": "R?", "idx": 18, "answers": answers[:1]},
    ]
    original = laid_out({"idx": 4, "version": 1.1, "passage": {"text": "P.", "questions": questions}}, "multirc")
    flat = [
        laid_out(
            {
                "paragraph": "P.",
                "question": question["question"],
                "answer": answer["text"],
                "idx": {"paragraph": 4, "question": question["idx"], "answer": answer["idx"]},
                "label": answer["label"],
            },
            "multirc",
        )[0]
        for question in questions
        for answer in question["answers"]
    ]
    assert original == flat and [example.group for example in flat] == ["4/17", "4/17", "4/18"]
    unnumbered = [{key: value for key, value in question.items() if key != "idx"} for question in questions]
    found = laid_out({"passage": {"text": "P.", "questions": unnumbered}}, "multirc")
    assert [example.group for example in found] == ["3/0", "3/0", "3/1"]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"paragraph": "P", "question": "Q", "answer": "A", "label": 1}, "'idx.paragraph' is missing"),
        ({"passage": {"text": "P"}}, "there are no 'questions'; the object has: text"),
        ({"passage": {"text": "P", "questions": [{"question": "Q", "answers": [{"text": "A"}]}]}}, "'label' .*missing"),
        ({"passage": {"text": "P", "questions": "Q"}}, "'questions' must be a list, got str"),
    ],
)
def test_wrong_multirc_records_are_named(row, message):
    with pytest.raises(EvaluationError, match=f"dev.json:3: .*{message}"):
        laid_out(row, "multirc")


RECORD = {
    "passage": "Ann met Bob in Rome\n@highlight\nBob is old.\n@highlight\nAnn won",
    "query": "@placeholder is happy.",
    "entities": ["Ann", "Bob", "Rome", "Bob"],
    "answers": ["Bob", "Ann", "Bob"],
    "idx": {"passage": 2, "query": 9},
}


def test_record_is_unrolled_to_one_example_per_entity_with_the_placeholder_filled():
    examples = laid_out(RECORD, "record")
    assert [example.segments[1:] for example in examples] == [
        ("Ann is happy.", "Ann"),
        ("Bob is happy.", "Bob"),
        ("Rome is happy.", "Rome"),
    ]
    assert {example.segments[0] for example in examples} == {"Ann met Bob in Rome. Bob is old. Ann won"}
    assert [example.label for example in examples] == [1, 1, 0]
    assert {example.group for example in examples} == {"2/9"}
    assert [example.facts["entity"] for example in examples] == ["Ann", "Bob", "Rome"]
    assert json.loads(examples[0].facts["answers"]) == ["Bob", "Ann"]


def test_the_original_record_finds_entities_by_spans_with_inclusive_ends():
    text = RECORD["passage"]
    spans = [{"start": text.index(name), "end": text.index(name) + len(name) - 1} for name in ("Rome", "Ann", "Bob")]
    question = {"query": RECORD["query"], "answers": [{"text": "Bob"}, {"text": "Ann"}], "idx": 9}
    original = {"passage": {"text": text, "entities": spans}, "qas": [question], "idx": 2, "source": "x"}
    assert laid_out(original, "record") == laid_out(RECORD, "record")
    # Without numbers in the file, the passage has the number of its line, and questions are counted from 0.
    del original["idx"], question["idx"]
    groups = [example.group for example in laid_out({**original, "qas": [question, question]}, "record")]
    assert groups == ["3/0"] * 3 + ["3/1"] * 3
    # A flat row is a group of its own.
    flat = {key: value for key, value in RECORD.items() if key != "idx"}
    assert {example.group for example in laid_out(flat, "record")} == {"dev.json:3"}


@pytest.mark.parametrize(
    ("passage", "expected"),
    [
        ("a\n@highlight\nb", "a. b"),
        ("a!\n@highlight\nb", "a! b"),
        ("a?\n@highlight\nb", "a? b"),
        ('he said "a."\n@highlight\nb', 'he said "a." b'),
        ("he said 'a.'\n@highlight\nb", "he said 'a.' b"),
        ("a\n@highlight\nb\n@highlight\nc", "a. b. c"),
        ("a @highlight b", "a @highlight b"),
    ],
)
def test_summary_lines_of_record_become_sentences(passage, expected):
    assert without_highlights(passage) == expected


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"answers": []}, "the row has no answers: this is a test split without labels"),
        ({"query": "who?"}, "the query has no @placeholder: 'who\\?'"),
        ({"entities": ["a", ""]}, "'entities' must hold non-empty texts, got ''"),
        ({"passage": {"text": "a", "entities": [{"start": 0}]}, "qas": []}, "lacks the field 'end'"),
    ],
)
def test_wrong_record_rows_are_named(changes, message):
    with pytest.raises(EvaluationError, match=f"dev.json:3: .*{message}"):
        laid_out({**RECORD, **changes}, "record")


WIC = {
    "word": "place",
    "sentence1": " Do you want to come over to my place later?",
    "sentence2": "A political system with no place for the less prominent groups.",
    "start1": 32,
    "end1": 37,
    "start2": 27,
    "end2": 32,
    "label": 0,
}


def test_wic_marks_the_word_in_both_sentences_for_the_head_that_reads_it():
    (plain,) = laid_out(WIC, "wic")
    assert plain.marked == () and plain.segments == (WIC["sentence1"], WIC["sentence2"])
    (example,) = laid_out(WIC, "wic", head=HeadSettings("marked_words_classification"))
    assert example.segments == plain.segments
    assert example.marked == (MarkedSpan(0, 32, 37), MarkedSpan(1, 27, 32))
    assert [example.segments[span.segment][span.start : span.end] for span in example.marked] == ["place", "place"]
    (last,) = laid_out(
        {**WIC, "sentence1": "My place", "start1": 3, "end1": 8},
        "wic",
        head=HeadSettings("marked_words_classification"),
    )
    assert last.marked[0] == MarkedSpan(0, 3, 8), "the last word of a sentence may be marked"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"end1": 99}, r"the word at \[32, 99\) is outside 'sentence1', which has 44 characters"),
        ({"start2": 32}, r"the word at \[32, 32\) is outside 'sentence2'"),
        ({"start1": 0, "end1": 1}, r"the word at \[0, 1\) is outside 'sentence1'"),
    ],
)
def test_wrong_wic_spans_are_named(changes, message):
    with pytest.raises(EvaluationError, match=message):
        laid_out({**WIC, **changes}, "wic")


def test_normalisation_is_applied_to_texts_and_never_to_the_facts():
    examples = laid_out({**RECORD, "query": "Is @placeholder happy?"}, "record", normalise=str.lower)
    assert examples[0].segments == ("ann met bob in rome. bob is old. ann won", "is ann happy?", "ann")
    assert examples[0].facts["entity"] == "Ann" and [example.label for example in examples] == [1, 1, 0]
    row = {"paragraph": "P.", "question": "Q?", "answer": "A", "label": 1, "idx": {"paragraph": 1, "question": 2}}
    (answer,) = laid_out(row, "multirc", normalise=str.lower)
    assert answer.segments == ("p.", "q?", "a")
    (filled,) = laid_out({"question": "Who?", "label": 1}, fields=("Q: {question}",), normalise=str.lower)
    assert filled.segments == ("q: who?",)
    (choice,) = laid_out({**COPA, "question": "effect"}, "copa", normalise=str.lower)
    assert choice.inputs == (("it rained.", "i got wet."), ("it rained.", "clouds came."))


MULTIRC = {"paragraph": "P.", "question": "Q?", "answer": "A", "label": 1, "idx": {"paragraph": 1, "question": 2}}


@pytest.mark.parametrize(
    ("layout", "row", "group"),
    [
        ("segments", {"sentence": "a", "label": 1}, "3"),
        ("copa", {**COPA, "question": "cause"}, "3"),
        ("wic", WIC, "3"),
        # MultiRC and ReCoRD have groups of their own.
        ("multirc", MULTIRC, "1/2"),
        ("record", RECORD, "2/9"),
    ],
)
@pytest.mark.parametrize("is_test", [True, False])
def test_rows_of_every_layout_have_their_group_facts_and_whether_they_are_scored(layout, row, group, is_test):
    examples = laid_out(
        {**row, "is_test": is_test, "number": 3, "origin": {"b": 1, "a": [2]}},
        layout,
        fields=("sentence",) if layout == "segments" else (),
        scored_rows={"is_test": True},
        group_fields=("number",),
        facts=("is_test", "number", "origin"),
    )
    facts = {"is_test": "true" if is_test else "false", "number": "3", "origin": '{"a": [2], "b": 1}'}
    for example in examples:
        assert (example.scored, example.group) == (is_test, group)
        assert {**example.facts, **facts} == example.facts
