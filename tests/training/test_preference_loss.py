"""The loss of preference training against its formulas, on random logits."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch

from hatchery.modeling.flops import PassShape
from hatchery.modeling.language_model import LanguageModelOutput
from hatchery.objectives.preference_pairs import PairTexts, PreferencePairs
from hatchery.tokenization.special_tokens import SPECIAL_SETS
from hatchery.tokenization.token_shards import Document
from hatchery.training.batches import StepBatch
from hatchery.training.loop import divisors, loss_of
from hatchery.training.objectives.preference import PreferenceObjective, PreferenceSettings
from hatchery.training.settings import TrainingSettings
from hatchery.training.step_plan import StepPlan
from hatchery.training.topology import SINGLE_PROCESS

VOCABULARY = 40
# Numbers of tokens of prompt, chosen and rejected text; the second pair has no prompt.
SIZES = [(2, 3, 1), (0, 4, 2)]


class Collection:
    """Documents of `SIZES`, in which no token occurs twice."""

    n_documents = len(SIZES)

    def document(self, index: int) -> Document:
        sizes, first = SIZES[index], 5 + 20 * index
        starts = [sum(sizes[:part]) for part, size in enumerate(sizes) if size]
        ids = np.arange(first, first + sum(sizes)).astype(np.uint16)
        return Document(ids, np.array(starts, dtype=np.int32), np.full(4, 255, dtype=np.uint8), 0)

    def document_lengths(self) -> np.ndarray:
        return np.array([sum(sizes) for sizes in SIZES], dtype=np.int64)


class Pairs:
    """Pairs with random logits at every position, and the formulas' values, computed without the library."""

    def __init__(self) -> None:
        self.collection = Collection()
        self.examples = PreferencePairs(PairTexts(self.collection, SPECIAL_SETS["roberta"], 50, True), len(SIZES))
        self.logits = np.random.default_rng(3).normal(0, 2, (len(SIZES), 2, 12, VOCABULARY))

    def terms(self, objective: PreferenceObjective, indices: Sequence[int]) -> tuple[Any, tuple[int, ...]]:
        batch = self.examples.batch(0, 0, np.array(indices))
        rows, length = batch["labels"].shape
        logits = torch.from_numpy(self.logits[list(indices)].reshape(rows, 12, VOCABULARY)[:, :length]).float()
        logits.requires_grad_(True)
        positions = (batch["labels"].flatten() != -100).nonzero().squeeze(1)
        targets = batch["labels"].flatten()[positions]
        output = LanguageModelOutput(logits.flatten(0, 1)[positions], targets, positions)
        return objective.terms(output, batch), self.examples.counted(batch)

    def log_probabilities(self, pair: int, side: int) -> np.ndarray:
        """Return the log-probability of each token of a text and of its end, given the tokens before."""
        prompt, chosen, rejected = SIZES[pair]
        ids = self.collection.document(pair).ids.tolist()
        text = (ids[prompt : prompt + chosen], ids[prompt + chosen :])[side]
        assert len(text) == (chosen, rejected)[side]
        found = []
        for number, token in enumerate([*text, 2]):
            row = self.logits[pair, side, prompt + number]
            found.append(row[token] - math.log(np.exp(row).sum()))
        return np.array(found)


@pytest.fixture
def pairs() -> Pairs:
    return Pairs()


def simpo(chosen: float, rejected: float) -> float:
    return -math.log(1 / (1 + math.exp(-(2.5 * chosen - 2.5 * rejected - 0.7))))


def simper(chosen: float, rejected: float) -> float:
    return -math.exp(chosen) + math.exp(rejected)


LOSSES: dict[str, tuple[dict[str, Any], Callable[[float, float], float], float]] = {
    "simpo": ({"beta": 2.5, "gamma": 0.7, "language_weight": 0.0}, simpo, 0.0),
    "simpo with the default weight of the language-model term": ({"beta": 2.5, "gamma": 0.7}, simpo, 0.2),
    "simper": ({"loss": "simper"}, simper, 0.0),
    "simper with a language-model term": ({"loss": "simper", "language_weight": 0.5}, simper, 0.5),
}


@pytest.mark.parametrize("micro_batches", [[[0, 1]], [[1], [0]]], ids=["one batch", "two micro-batches"])
@pytest.mark.parametrize(("keys", "formula", "weight"), LOSSES.values(), ids=LOSSES.keys())
def test_the_loss_of_a_step_is_that_of_the_formula(
    pairs: Pairs,
    micro_batches: list[list[int]],
    keys: dict[str, Any],
    formula: Callable[[float, float], float],
    weight: float,
) -> None:
    objective = PreferenceObjective(PreferenceSettings(**keys))
    made = [pairs.terms(objective, indices) for indices in micro_batches]
    counted = tuple(sum(counts) for counts in zip(*(counts for _, counts in made), strict=True))
    divisor = divisors(StepBatch([], counted, 0), "tokens", SINGLE_PROCESS, torch.device("cpu"))
    found = sum(loss_of(terms, divisor) for terms, _ in made)
    of_tokens = [[pairs.log_probabilities(pair, side) for side in (0, 1)] for pair in (0, 1)]
    losses = [formula(chosen.mean(), rejected.mean()) for chosen, rejected in of_tokens]
    chosen = np.concatenate([chosen for chosen, _ in of_tokens])
    # The chosen texts with their end tokens have four and five tokens.
    assert len(chosen) == 9
    assert float(found.detach()) == pytest.approx(sum(losses) / 2 - weight * chosen.sum() / 9, rel=1e-5)
    # Check the columns of the log, which have no weight in the loss.
    language, preference = (list(zip(*(terms[term] for terms, _ in made), strict=True)) for term in (0, 1))
    assert sum(loss.item() for loss in language[0]) == pytest.approx(-chosen.sum(), rel=1e-5)
    assert sum(loss.item() for loss in preference[0]) == pytest.approx(sum(losses), rel=1e-5)
    better, margins = zip(*preference[1], strict=True)
    expected = [chosen.mean() - rejected.mean() for chosen, rejected in of_tokens]
    assert sum(margin.item() for margin in margins) == pytest.approx(sum(expected), rel=1e-4)
    assert sum(map(int, better)) == sum(margin > 0 for margin in expected)


def test_tokens_of_chosen_texts_alone_are_counted_as_predicted(pairs: Pairs) -> None:
    # A token of the second pair's chosen text and one of the first pair's rejected text are predicted.
    pairs.logits[1, 0, 0, 25] = pairs.logits[0, 1, 2, 10] = 20
    assert pairs.collection.document(1).ids[0] == 25 and pairs.collection.document(0).ids[5] == 10
    terms, _ = pairs.terms(PreferenceObjective(PreferenceSettings()), [0, 1])
    rightly = 0
    for pair, (prompt, chosen, _) in enumerate(SIZES):
        text = pairs.collection.document(pair).ids.tolist()[prompt : prompt + chosen]
        rightly += sum(
            pairs.logits[pair, 0, prompt + number].argmax() == token for number, token in enumerate([*text, 2])
        )
    assert int(terms[0].sums[0]) == rightly >= 1


def test_the_gradient_raises_chosen_and_lowers_rejected_tokens(pairs: Pairs) -> None:
    for keys in ({"language_weight": 0.0}, {"loss": "simper"}):
        objective = PreferenceObjective(PreferenceSettings(**keys))
        batch = pairs.examples.batch(0, 0, [0])
        labels = batch["labels"]
        logits = torch.zeros(*labels.shape, VOCABULARY, requires_grad=True)
        positions = (labels.flatten() != -100).nonzero().squeeze(1)
        targets = labels.flatten()[positions]
        output = LanguageModelOutput(logits.flatten(0, 1)[positions], targets, positions)
        sum(term.weight * term.minimised for term in objective.terms(output, batch)).backward()  # type: ignore[union-attr]
        of_targets = logits.grad.flatten(0, 1)[positions, targets]  # type: ignore[union-attr]
        in_chosen = positions < labels.shape[1]
        assert (of_targets[in_chosen] < 0).all() and (of_targets[~in_chosen] > 0).all()


def test_a_forward_pass_has_the_rows_and_labels_of_both_texts(pairs: Pairs) -> None:
    batch = pairs.examples.batch(0, 0, [0, 1])
    # The longest row has a start token, a prompt of two, a text of three and an end token; 4 + 2 + 5 + 3 labels.
    shape = PreferenceObjective(PreferenceSettings()).pass_shape(batch, 0.0)
    assert shape == PassShape(4, 7, 14)
    settings = TrainingSettings(steps=3, batch_size=5, sequence_length=16, objective=PreferenceSettings())
    assert StepPlan(settings).flops(lambda length, labelled: 1.0) == 3 * 5 * 2
    assert StepPlan(settings).tokens() == 3 * 5 * 2 * 16


def test_early_stopping_compares_the_preference_loss_of_pairs_and_lower_is_better() -> None:
    criterion = PreferenceObjective(PreferenceSettings()).criterion
    assert (criterion.column, criterion.higher_is_better) == ("development_preference_loss", False)
