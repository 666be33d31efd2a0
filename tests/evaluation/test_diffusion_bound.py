"""The bound of masked diffusion on the likelihood of a sentence, against enumeration."""

import itertools
import math

import numpy as np
import pytest
import torch

from hatchery.evaluation.minimal_pairs.diffusion_bounds import hidden_sets
from hatchery.evaluation.minimal_pairs.scoring import sentence_scores, token_scores
from hatchery.evaluation.minimal_pairs.sentence_model import EncodedSentence, Frame
from hatchery.evaluation.ways_of_scoring import DIFFUSION_ORDERS

CLS, SEP, MASK = 1, 2, 4
FIRST = 6
LENGTH = 3
JOINT = np.random.default_rng(5).dirichlet(np.full(3**LENGTH, 0.4)).reshape(3, 3, 3)


class ThreeWords:
    """Exact conditional probabilities of three words at three positions; `blur` is the share of a uniform
    distribution."""

    architecture = "masked"
    device = torch.device("cpu")
    frame = Frame((CLS,), (SEP,))
    mask_id = MASK
    predicted_before = 0
    longest_input = None
    vocabulary_size = FIRST + 3

    def __init__(self, blur: float = 0.0) -> None:
        self.blur = blur

    def probabilities(self, words: list[int | None], place: int) -> np.ndarray:
        table = JOINT
        for axis in reversed(range(LENGTH)):
            if axis != place:
                word = words[axis]
                table = table.sum(axis=axis) if word is None else table.take(word, axis=axis)
        shares = table / table.sum()
        return (1 - self.blur) * shares + self.blur / 3

    def logits_at(self, input_ids: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        width = input_ids.shape[1]
        found = torch.full((len(rows), self.vocabulary_size), -1e9, dtype=torch.float64)
        for number, row in enumerate(rows.tolist()):
            ids = input_ids[row // width, 1 : 1 + LENGTH].tolist()
            words = [None if one == MASK else one - FIRST for one in ids]
            found[number, FIRST:] = torch.from_numpy(np.log(self.probabilities(words, row % width - 1)))
        return found


def bound_of(model: ThreeWords, text: tuple[int, ...]) -> float:
    """Sum over set sizes the mean over the hidden sets of this size; a set's value is its tokens' mean
    log-probability."""
    total = 0.0
    for size in range(1, LENGTH + 1):
        sets = list(itertools.combinations(range(LENGTH), size))
        for hidden in sets:
            words = [None if place in hidden else word for place, word in enumerate(text)]
            total += (
                sum(math.log(model.probabilities(words, place)[text[place]]) for place in hidden) / size / len(sets)
            )
    return total


@pytest.mark.parametrize("text", [(0, 1, 2), (2, 2, 0)])
def test_the_bound_of_an_exact_model_over_all_sets_is_the_likelihood(text: tuple[int, ...]) -> None:
    assert bound_of(ThreeWords(), text) == pytest.approx(math.log(JOINT[text]), rel=1e-9)


def mean_over_sets(model: ThreeWords, text: tuple[int, ...], orders: int) -> float:
    """Return the bound by hand over the hidden sets of `orders` orders."""
    total = 0.0
    for hidden in hidden_sets(LENGTH, orders):
        words = [None if hides else word for hides, word in zip(hidden, text, strict=True)]
        places = np.flatnonzero(hidden)
        total += sum(math.log(model.probabilities(words, place)[text[place]]) for place in places) / len(places)
    return total / orders


@pytest.mark.parametrize("tokens_per_batch", [16, 4096])
def test_the_bound_is_the_mean_over_the_drawn_sets(tokens_per_batch: int) -> None:
    model, text = ThreeWords(blur=0.3), (2, 0, 1)
    sentence = EncodedSentence(tuple(FIRST + word for word in text))
    (found,) = sentence_scores(token_scores(model, [sentence], "diffusion", tokens_per_batch))
    assert found == pytest.approx(mean_over_sets(model, text, DIFFUSION_ORDERS), rel=1e-5)


def test_the_mean_over_many_drawn_sets_is_that_over_all_sets() -> None:
    model, text = ThreeWords(blur=0.3), (2, 0, 1)
    # 2,000 drawn orders: the standard error is about 0.01.
    assert mean_over_sets(model, text, 2000) == pytest.approx(bound_of(model, text), abs=0.03)


def test_given_tokens_are_never_hidden() -> None:
    model, text = ThreeWords(), (1, 0, 2)
    sentence = EncodedSentence(tuple(FIRST + word for word in text), given=1)
    (values,) = token_scores(model, [sentence], "diffusion")
    assert len(values) == 2
    assert float(values.sum()) == pytest.approx(math.log(JOINT[text] / JOINT[text[0]].sum()), rel=1e-5)


@pytest.mark.parametrize("tokens", [1, 2, 7])
def test_every_size_of_a_hidden_set_is_drawn_equally_often(tokens: int) -> None:
    sizes = hidden_sets(tokens).sum(axis=1)
    assert np.bincount(sizes).tolist() == [0, *[DIFFUSION_ORDERS] * tokens]
