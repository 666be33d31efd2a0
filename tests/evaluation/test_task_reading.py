"""Records of raw files, and the task rows made from these records."""

import json

import pytest
from finetuning_cases import rows_task
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hatchery.errors import EvaluationError, SourceError
from hatchery.evaluation.draws import input_groups
from hatchery.evaluation.json_lines import decode_lines, read_json_lines
from hatchery.evaluation.tasks.example import Example, SpanExample
from hatchery.evaluation.tasks.settings import TaskSettings, TransferSettings, VocabularyFilter
from hatchery.evaluation.tasks.task_rows import limited, read_task, read_task_with_report
from hatchery.raw.obtain import register_settings
from hatchery.raw.registration import open_source


def read(make_source, content):
    return list(read_json_lines(make_source({"rows.jsonl": content}), "rows.jsonl"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"a": 1}\n{"a": 1', "rows.jsonl:2: not a JSON object: "),
        ('{"a": 1, "a": 2}\n', "rows.jsonl:1: .*the key 'a' occurs twice"),
        ('{"a": {"b": 1, "b": 2}}\n', "rows.jsonl:1: .*the key 'b' occurs twice"),
        ('{"a" : 1, "a"\t: ":"}\n', "rows.jsonl:1: .*the key 'a' occurs twice"),
        ('{"a": [{"b": 1}, {"c": "\\":", "c": 2}]}\n', "rows.jsonl:1: .*the key 'c' occurs twice"),
        ("", "rows.jsonl: the file contains no records"),
        ('{"a": ' + "9" * 5000 + "}", "rows.jsonl:1: not a JSON object"),
    ],
    ids=[
        "cut",
        "repeated",
        "repeated_inside",
        "blanks",
        "quotes",
        "empty",
        "huge_number",
    ],
)
def test_broken_files_are_named_with_their_line(make_source, content, message):
    with pytest.raises((EvaluationError, SourceError), match=message) as caught:
        read(make_source, content)
    assert "\n" not in str(caught.value)


def test_lines_end_only_at_newlines_and_a_byte_order_mark_is_no_text(make_source):
    source = make_source({"rows.txt": "\ufeffone\u2028still one\r\n\r\ntwo\x0bstill two"})
    assert list(decode_lines(source, "rows.txt")) == [(1, "one\u2028still one"), (3, "two\x0bstill two")]


@pytest.mark.parametrize("value", ["", "   ", None, 3, ["a"], "x" * 500 + "\ud800"])
def test_text_that_cannot_be_used_is_refused_with_its_place(make_source, json_lines, value):
    (record,) = read(make_source, json_lines([{"sentence": value}]))
    with pytest.raises(EvaluationError, match=r"rows.jsonl:1: the field 'sentence'") as caught:
        record.text("sentence")
    assert len(str(caught.value)) < 200


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(st.dictionaries(st.text(':" \\a', max_size=4), st.text(':" \\a') | st.lists(st.text(':"')), max_size=4))
def test_colons_and_quotes_in_keys_and_texts_are_no_repeated_keys(make_source, values):
    (record,) = read(make_source, json.dumps(values) + "\n")
    assert record.values == values


def test_dots_reach_into_nested_objects_and_a_field_with_a_dot_comes_first(make_source, json_lines):
    (record,) = read(make_source, json_lines([{"idx": {"question": 3, "deep": {"x": "y"}}, "a.b": "plain", "a": {}}]))
    assert (record.value("idx.question"), record.text("idx.deep.x"), record.text("a.b")) == (3, "y", "plain")
    assert record.has("idx") and not record.has("idx.answer") and not record.has("idx.question.x")
    with pytest.raises(EvaluationError, match=r"rows.jsonl:1: the field 'idx.answer' is missing; .* has: a, a.b, idx"):
        record.value("idx.answer")


def test_a_string_may_be_empty_where_the_caller_allows_it(make_source, json_lines):
    (record,) = read(make_source, json_lines([{"a": "", "b": 3, "c": "\ud800"}]))
    assert record.string("a") == ""
    for name, message in (("b", "must be a text, got 3"), ("c", "half of a surrogate pair")):
        with pytest.raises(EvaluationError, match=message):
            record.string(name)


def lines_task(**changes):
    values = {
        "name": "subjectivity",
        "suite": "subjectivity",
        "format": "labelled_lines",
        "files": {"objective": "plot*", "subjective": "quote*"},
        "labels": ("objective", "subjective"),
        "metrics": ("accuracy",),
    }
    return TaskSettings(**{**values, **changes})


def numbered(n, **extra):
    return [{"sentence": f"text {i}", "label": i % 2, **extra} for i in range(n)]


def test_limits_draw_seeded_nested_subsets_in_order():
    examples = [Example(((str(i),),), 0) for i in range(50)]
    five, ten = limited(examples, 5, 0, "train limit"), limited(examples, 10, 0, "train limit")
    assert len(five) == 5 and {e.inputs for e in five} < {e.inputs for e in ten}
    assert ten == sorted(ten, key=examples.index)
    assert ten == limited(examples, 10, 0, "train limit") != limited(examples, 10, 1, "train limit")
    assert limited(examples, None, 0, "x") == limited(examples, 99, 0, "x") == examples


def test_each_set_has_its_own_limit_and_is_drawn_with_the_seed_of_its_task(make_source, json_lines):
    source = make_source({name: json_lines(numbered(40)) for name in ("train.json", "dev.json")})
    train, validation = set(), set()
    for seed in (0, 1):
        data = read_task(source, rows_task(train_limit=12, validation_limit=7, split_seed=seed))
        assert (len(data.train), len(data.scored["validation"])) == (12, 7)
        train.add(tuple(row.inputs for row in data.train))
        validation.add(tuple(row.inputs for row in data.scored["validation"]))
        drawn = [{row.inputs for row in rows} for rows in (data.scored["validation"], data.train)]
        assert not drawn[0] <= drawn[1], "the two sets have equal rows, and each is drawn on its own"
    assert len(train) == len(validation) == 2


def test_limits_draw_whole_groups_so_that_questions_keep_their_answers():
    examples = [Example(((str(i),),), 0, group=str(i % 7)) for i in range(30)]
    small, large = limited(examples, 9, 0, "x"), limited(examples, 20, 0, "x")
    for drawn, limit in ((small, 9), (large, 20)):
        assert 0 < len(drawn) <= limit
        groups = {example.group for example in drawn}
        assert [example for example in examples if example.group in groups] == drawn
    assert {example.group for example in small} < {example.group for example in large}
    assert len(limited(examples, 1, 0, "x")) in (4, 5)


@given(st.lists(st.tuples(st.integers(0, 6), st.sampled_from(["", "a", "b", "c"])), max_size=40))
def test_rows_of_equal_inputs_or_of_one_group_stay_together(pairs):
    examples = [Example(((str(text),),), 0, group=group) for text, group in pairs]
    numbers = input_groups(examples)
    for i, one in enumerate(examples):
        for j, other in enumerate(examples):
            if one.inputs == other.inputs or (one.group and one.group == other.group):
                assert numbers[i] == numbers[j]
    # The grouping is not coarser than needed: each number is one connected component.
    assert len(set(numbers)) == components(examples)
    assert list(dict.fromkeys(numbers)) == list(range(len(set(numbers))))


def components(examples):
    left, count = set(range(len(examples))), 0
    while left:
        count, todo = count + 1, [left.pop()]
        while todo:
            one = examples[todo.pop()]
            near = {
                j for j in left if one.inputs == examples[j].inputs or (one.group and one.group == examples[j].group)
            }
            left -= near
            todo.extend(near)
    return count


def test_sentences_with_spans_stay_together_by_their_words():
    assert input_groups([SpanExample(("a", "b"), ()), SpanExample(("c",), ()), SpanExample(("a", "b"), ())]) == [
        0,
        1,
        0,
    ]


def test_labelled_lines_are_split_without_sharing_a_text(make_source):
    plot = "\n".join(f"plot {i % 30}" for i in range(60))
    quote = "\n".join([*(f"quote   {i}" for i in range(40)), "plot 3"])
    source = make_source({"plot.txt": plot, "quote.txt": quote})
    data = read_task(source, lines_task(validation_fraction=0.3))
    validation = data.scored["validation"]
    texts = [{example.segments for example in part} for part in (data.train, validation)]
    assert texts[0].isdisjoint(texts[1])
    assert len(data.train) + len(validation) == 60 + 41
    assert len(texts[1]) == round(0.3 * 70)
    assert data == read_task(source, lines_task(validation_fraction=0.3))
    assert data != read_task(source, lines_task(validation_fraction=0.3, split_seed=1))
    assert (("quote 5",),) in {example.inputs for example in data.train + validation}
    assert {example.label for example in [*data.train, *validation]} == {0, 1}


def test_rows_with_training_files_only_are_split_by_the_same_rule(make_source, json_lines):
    source = make_source({"train.json": json_lines(numbered(20))})
    data, report = read_task_with_report(source, rows_task(files={"train": "train.json"}, validation_fraction=0.25))
    assert (len(data.train), len(data.scored["validation"])) == (15, 5)
    assert report.sets["train"].read == 20 and report.sets["validation"].used == 5
    # `train_limit` does not change the held-out rows.
    limited = read_task(source, rows_task(files={"train": "train.json"}, validation_fraction=0.25, train_limit=8))
    assert (len(limited.train), len(limited.scored["validation"])) == (8, 5)


def test_the_real_subjectivity_data_gives_600_training_rows(real_data, tmp_path):
    path = str(real_data / "nltk" / "subjectivity.zip")
    register_settings({"name": "s", "path": path}, tmp_path / "s.json", tmp_path / "fetched")
    data = read_task(open_source(tmp_path / "s.json"), lines_task(train_limit=600, validation_limit=200))
    assert (len(data.train), len(data.scored["validation"])) == (600, 200)
    assert 200 < sum(example.label for example in data.train) < 400


def test_several_scored_sets_come_with_validation_first_and_their_own_rows(make_source, json_lines):
    source = make_source(
        {"train.json": json_lines(numbered(4)), "m.json": json_lines(numbered(3)), "mm.json": json_lines(numbered(5))}
    )
    task = rows_task(files={"mismatched": "mm.json", "validation": "m.json", "train": "train.json"})
    assert {name: len(rows) for name, rows in read_task(source, task).scored.items()} == {
        "validation": 3,
        "mismatched": 5,
    }
    assert next(iter(read_task(source, task).scored)) == "validation"
    task = rows_task(files=dict(task.files), scored_rows={"label": 1})
    scored = {name: [row.scored for row in rows] for name, rows in read_task(source, task).scored.items()}
    assert scored == {"validation": [False, True, False], "mismatched": [False, True, False, True, False]}


def test_a_task_that_is_only_transferred_to_has_no_training_rows(make_source, json_lines):
    source = make_source({"dev.json": json_lines(numbered(3))})
    transfer = TransferSettings({"0": (0,), "1": (1, 2)})
    data, report = read_task_with_report(source, rows_task(files={"validation": "dev.json"}, transfer=transfer))
    assert data.train == [] and len(data.scored["validation"]) == 3
    assert "train" not in report.sets


def msgs_rows():
    """The six conditions of MSGS (docs/papers/babylm-evaluation.md, "MSGS"): linguistic and surface label,
    condition."""
    return [
        {"sentence": f"s{i}", "linguistic_feature_label": one, "surface_feature_label": other, "condition": condition}
        for i, (one, other, condition) in enumerate(
            [
                (1, 1, "training"),
                (0, 0, "training"),
                (1, 0, "test"),
                (0, 1, "test"),
                (1, 1, "control"),
                (0, 0, "control"),
            ]
        )
    ]


def msgs_task(**changes):
    return rows_task(label_field="linguistic_feature_label", scored_rows={"condition": "test"}, **changes)


def test_msgs_scores_rows_of_the_test_condition_only_and_keeps_the_others(make_source, json_lines):
    source = make_source({"train.json": json_lines(msgs_rows()[:2]), "dev.json": json_lines(msgs_rows())})
    data, report = read_task_with_report(source, msgs_task())
    validation = data.scored["validation"]
    assert [(example.label, example.scored) for example in validation] == [
        (1, False),
        (0, False),
        (1, True),
        (0, True),
        (1, False),
        (0, False),
    ]
    # An oracle of the surface feature has LBS -1 on the scored rows. An accuracy of 4/6 would mean that all rows are
    # scored.
    surface = [row["surface_feature_label"] for row in msgs_rows()]
    right = [example.label == guess for example, guess in zip(validation, surface, strict=True)]
    assert sum(right) == 4 and not any(hit for hit, example in zip(right, validation, strict=True) if example.scored)
    assert (report.sets["validation"].used, report.sets["validation"].scored) == (6, 2)
    assert (report.sets["train"].used, report.sets["train"].scored) == (2, 0), "no training row enters a metric"
    assert all(example.scored for example in data.train)


def test_msgs_without_rows_to_score_or_with_a_null_label_is_refused(make_source, json_lines):
    rows = msgs_rows()
    source = make_source({"train.json": json_lines(rows[:2]), "dev.json": json_lines(rows[:2])})
    with pytest.raises(EvaluationError, match=r"no row of the 'validation' set .* has condition == test"):
        read_task(source, msgs_task())
    source = make_source({"train.json": json_lines([{**row, "linguistic_feature_label": None} for row in rows])})
    with pytest.raises(EvaluationError, match=r"train.json:1: the label field 'linguistic_feature_label' is null"):
        read_task(source, msgs_task())


def test_hans_keeps_the_facts_that_tables_break_results_down_by(make_source, json_lines):
    row = {"premise": "a", "hypothesis": "b", "label": 0, "heuristic": "subsequence", "subcase": "sn_NP/S"}
    source = make_source({"dev.json": json_lines([row, {**row, "label": 1}])})
    task = rows_task(
        files={"validation": "dev.json"},
        fields=("premise", "hypothesis"),
        facts=("heuristic", "subcase"),
        transfer=TransferSettings({"0": (0,), "1": (1, 2)}),
    )
    first = read_task(source, task).scored["validation"][0]
    assert first.facts == {"heuristic": "subsequence", "subcase": "sn_NP/S"}


def test_rows_outside_the_vocabulary_are_left_out_and_counted(make_source, json_lines):
    rows = [{"sentence": text, "label": i % 2} for i, text in enumerate(["a dog", "a cat", "the dog", "a dog a"])]
    source = make_source({"train.json": json_lines(rows), "dev.json": json_lines(rows[:2])})
    task = rows_task(vocabulary=VocabularyFilter(("sentence",)), expected_rows={"train": 4})
    data, report = read_task_with_report(source, task, frozenset({"a", "dog"}))
    assert [example.segments for example in data.train] == [("a dog",), ("a dog a",)]
    assert (report.sets["train"].read, report.sets["train"].kept) == (4, 2)
    assert report.measures()["kept_validation"] == 1
    # A label of which no row is kept is still a label of the files.
    rows[1]["label"] = 2
    source = make_source({"train.json": json_lines(rows), "dev.json": json_lines(rows[:2])})
    data = read_task(source, rows_task(labels=(0, 1, 2), vocabulary=task.vocabulary), frozenset({"a", "dog"}))
    assert [example.label for example in data.train] == [0, 1]


def test_a_filter_that_leaves_nothing_and_a_missing_vocabulary_are_errors(make_source, json_lines):
    source = make_source({"train.json": json_lines(numbered(3)), "dev.json": json_lines(numbered(2))})
    task = rows_task(vocabulary=VocabularyFilter(("sentence",)))
    with pytest.raises(EvaluationError, match="has no training rows; the vocabulary filter kept none of 3"):
        read_task(source, task, frozenset({"a"}))
    with pytest.raises(EvaluationError, match="'mine' filters rows by a vocabulary, but no vocabulary was given"):
        read_task(source, task)


def test_normalisation_reaches_every_segment(make_source, json_lines):
    rows = [{"sentence": " it 's “ good ” ", "label": i} for i in (0, 1)]
    source = make_source({"train.json": json_lines(rows), "dev.json": json_lines(rows)})
    assert read_task(source, rows_task()).train[0].segments == (" it 's “ good ” ",)
    assert read_task(source, rows_task(normalisation="ltg")).train[0].segments == ('it \'s " good "',)
    assert read_task(source, rows_task(normalisation="ltg_detokenised")).train[0].segments == ('it\'s "good"',)
