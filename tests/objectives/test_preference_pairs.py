"""Preference pairs as examples: inputs and targets of the model, rejected pairs, counts of words, and divisors."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from hatchery.errors import TrainingError
from hatchery.objectives.preference_pairs import PairTexts, PreferencePairs
from hatchery.tokenization.special_tokens import SPECIAL_SETS

Made = Callable[..., Any]
# A prompt of two tokens with texts of three tokens and of one token, and a pair without a prompt.
LENGTHS = [[2, 3, 1], [4, 2]]


def pairs_of(collection: Any, name: str = "roberta", length: int = 50, end_token: bool = True) -> PreferencePairs:
    return PreferencePairs(PairTexts(collection, SPECIAL_SETS[name], length, end_token), collection.n_documents)


def test_a_pair_is_two_causal_rows_in_which_the_prompt_is_read_and_not_predicted(make_traceable: Made) -> None:
    collection = make_traceable(LENGTHS, "roberta")
    (a, b, c, d, e, f), (g, h, i, j, k, m) = (collection.document(index).ids.tolist() for index in range(2))
    start, pad, end = 0, 1, 2
    batch = {name: tensor.tolist() for name, tensor in pairs_of(collection).batch(0, 0, [0, 1]).items()}
    assert batch["input_ids"] == [
        [start, a, b, c, d, e, end],
        [start, a, b, f, end, pad, pad],
        [start, g, h, i, j, end, pad],
        [start, k, m, end, pad, pad, pad],
    ]
    assert batch["labels"] == [
        [-100, -100, c, d, e, end, -100],
        [-100, -100, f, end, -100, -100, -100],
        [g, h, i, j, end, -100, -100],
        [k, m, end, -100, -100, -100, -100],
    ]
    assert batch["causal"] == [True] * 4
    assert [sum(row) for row in batch["attention_mask"]] == [7, 5, 6, 4]


def test_divisors_are_the_labels_of_chosen_texts_and_the_pairs(make_traceable: Made) -> None:
    pairs = pairs_of(make_traceable(LENGTHS, "roberta"))
    batch = pairs.batch(0, 0, [0, 1])
    # The chosen texts have three and four tokens and an end token each; the four rows are counted with all tokens.
    assert pairs.counted(batch) == (4 + 5, 2)
    assert pairs.n_tokens(batch) == 7 + 5 + 6 + 4


def test_without_end_token_no_end_is_read_or_predicted(make_traceable: Made) -> None:
    collection = make_traceable([[4, 2]], "roberta")
    ids = collection.document(0).ids.tolist()
    batch = pairs_of(collection, end_token=False).batch(0, 0, [0])
    assert batch["input_ids"].tolist() == [[0, *ids[:4]], [0, *ids[4:], 1, 1]]
    assert batch["labels"].tolist() == [[*ids[:4], -100], [*ids[4:], -100, -100, -100]]


def test_both_texts_end_a_paragraph_if_the_tokenizer_has_a_token_for_it(make_traceable: Made) -> None:
    collection = make_traceable([[1, 2, 3]], "babylm")
    special = SPECIAL_SETS["babylm"]
    par, sep = special.ids["[PAR]"], special.ids["[SEP]"]
    # The encoding adds the paragraph token to the last sentence of a document.
    document = collection.documents[0]
    collection.documents[0] = document._replace(ids=np.append(document.ids[:-1], par).astype(np.uint16))
    first, second, third, fourth, fifth = collection.documents[0].ids[:5].tolist()
    labels = pairs_of(collection, "babylm").batch(0, 0, [0])["labels"].tolist()
    assert labels == [
        [-100, second, third, par, sep, -100],
        [-100, fourth, fifth, par, sep, -100],
    ]
    assert first not in labels[0] + labels[1]
    # The longer row has six tokens; without an end token, it has five.
    fits = [(6, True), (5, True), (5, False), (4, False)]
    assert [len(pairs_of(collection, "babylm", *limits)) for limits in fits] == [1, 0, 1, 0]


def test_pairs_longer_than_the_sequence_and_empty_texts_are_left_out(make_traceable: Made) -> None:
    # The longer rows have 10, 11, 10 and 11 tokens with start and end; the last pair has an empty text.
    collection = make_traceable([[8, 2], [2, 9], [3, 1, 5], [3, 6, 1], [4, 0]], "roberta")
    pairs = pairs_of(collection, length=10)
    assert pairs.places().tolist() == [0, 21]
    assert (len(pairs), pairs.left_out) == (2, 3)


def test_a_prompt_is_read_before_both_texts_so_its_words_count_twice(make_traceable: Made) -> None:
    # A word starts at each id that is not a multiple of three; the first id is 5.
    pairs = pairs_of(make_traceable(LENGTHS, "roberta"))
    prompt, chosen, rejected = [5, 6], [7, 8, 9], [10]
    first = sum(id_ % 3 > 0 for id_ in [*prompt, *chosen, *prompt, *rejected])
    assert first == 1 + 2 + 1 + 1
    second = sum(id_ % 3 > 0 for id_ in range(11, 17))
    assert pairs.words(0, 0, [0, 1]).tolist() == [first, second]
    assert pairs.counted_batch(0, 0, np.array([0, 1]))[1] == first + second
    assert [part.tokens.tolist() for part in pairs.texts(0, 0, 0)] == [prompt, chosen, prompt, rejected]


@pytest.mark.parametrize(("lengths", "sentences"), [([4], 1), ([1, 2, 3, 4], 4)])
def test_a_document_that_is_no_pair_is_named(make_traceable: Made, lengths: list[int], sentences: int) -> None:
    with pytest.raises(
        TrainingError, match=f"document 2 of the split has {sentences} sentences, expected two or three"
    ):
        pairs_of(make_traceable([[2, 2], lengths], "roberta"))
