"""Examples of causal models: every token is predicted once, ends where they are, and nothing that nobody can know."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hatchery.objectives.label_counts import label_counts, next_token_counts
from hatchery.settings.base import RefusedError
from hatchery.training.objectives import ObjectiveSettings, objective_of
from hatchery.training.objectives.causal import CausalSettings
from hatchery.typed import build

LENGTHS = st.lists(st.lists(st.integers(1, 40), max_size=3), max_size=12)
CLS, SEP, PAD, NOTHING = 1, 2, 3, -100


def examples_of(collection, sequence_length, **changes):
    return objective_of(CausalSettings(**changes)).examples(collection, sequence_length)


@settings(deadline=None, max_examples=150)
@given(documents=LENGTHS, sequence_length=st.integers(4, 40))
def test_packed_sequences_ask_for_every_token_once_and_for_every_end(make_traceable, documents, sequence_length):
    collection = make_traceable(documents)
    examples = examples_of(collection, sequence_length)
    asked = []
    for index in range(len(examples)):
        batch = examples.batch(0, 0, [index])
        (ids,), (labels,) = batch["input_ids"].tolist(), batch["labels"].tolist()
        for position, label in enumerate(labels):
            assert label in (NOTHING, [*ids, PAD][position + 1])
        asked += [label for label in labels if label != NOTHING]
    expected = [[*document.ids.tolist(), SEP] for document in collection.documents if len(document.ids)]
    assert asked == [token for document in expected for token in document]


def test_the_counts_of_the_labels_are_those_of_the_whole_corpus(make_collection):
    collection = make_collection([[7, 90, 3], [2], [], [300], [55] * 9], vocab_size=300)
    counted = label_counts(examples_of(collection, 32), 7, 300, None, show=False)
    documents = [document.ids for document in collection.documents if len(document.ids)]
    assert np.array_equal(counted, next_token_counts(documents, SEP, CLS, 300))
    assert counted[SEP] == 4 and counted[CLS] == counted[PAD] == 0


def test_a_cut_document_ends_without_a_label_and_begins_again_behind_a_start(make_traceable):
    collection = make_traceable([[4], [9]])
    batch = examples_of(collection, 12).batch(0, 0, [0, 1])
    assert batch["input_ids"].tolist() == [
        [CLS, 7, 8, 9, 10, SEP, CLS, 11, 12, 13, 14, SEP],
        [CLS, 15, 16, 17, 18, 19, SEP, PAD, PAD, PAD, PAD, PAD],
    ]
    assert batch["labels"].tolist() == [
        [7, 8, 9, 10, SEP, NOTHING, 11, 12, 13, 14, NOTHING, NOTHING],
        [15, 16, 17, 18, 19, SEP] + [NOTHING] * 6,
    ]
    blocks = batch["attention_mask"][0]
    assert blocks[:6, :6].all() and blocks[6:, 6:].all() and not blocks[6:, :6].any()


def test_documents_see_those_before_them_where_attention_is_not_reset(make_traceable):
    batch = examples_of(make_traceable([[4], [9]]), 12, reset_attention=False).batch(0, 0, [0, 1])
    assert batch["attention_mask"].tolist() == [[True] * 12, [True] * 7 + [False] * 5]


@pytest.mark.parametrize("segments", ["babylm", "documents", "bnc"])
def test_other_ways_of_cutting_predict_an_end_only_where_the_document_has_one(make_traceable, segments):
    collection = make_traceable([[3, 3, 30], [5]])
    examples = examples_of(collection, 16, segments=segments)
    last = {int(document.ids[-1]) for document in collection.documents}
    for index in range(len(examples)):
        example = examples.example(0, 0, index)
        ends = [int(i) for i, label in zip(example.input_ids, example.labels, strict=True) if label == SEP]
        assert ends == [token for token in example.input_ids.tolist() if token in last]


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (
            {"task": "causal", "mask_probability": 0.2},
            "mask_probability: unknown key here: it belongs to task masked; allowed are: reset_attention, segments",
        ),
        (
            {"reset_attention": False},
            "reset_attention: unknown key here: it belongs to task causal; allowed are: at_least_",
        ),
        ({"task": "casual"}, "task: got 'casual'; did you mean 'causal'. Allowed are: masked, causal, "),
        (
            {"task": "causal", "segments": "pact"},
            "segments: got 'pact'; did you mean 'packed'. Allowed are: babylm, bnc, ",
        ),
        (
            {"task": "causal", "segments": "bnc", "reset_attention": False},
            "reset_attention: got False, expected true with segments that hold one document each",
        ),
    ],
)
def test_a_setting_that_means_nothing_to_the_objective_is_refused_in_a_line(written, message):
    with pytest.raises(Exception, match=f"^objective.{message}") as error:
        build(ObjectiveSettings, written, "objective")
    assert len(str(error.value).splitlines()) == 1


def test_an_objective_without_a_task_is_a_masked_one():
    assert build(ObjectiveSettings, {"mask_probability": 0.2}, "objective").task == "masked"
    with pytest.raises(RefusedError, match="reset_attention"):
        CausalSettings(segments="documents", reset_attention=False)
