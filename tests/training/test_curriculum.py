"""Order by difficulty: values by hand, each sequence once per epoch, and the same order after a restart."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from hatchery.errors import ConfigError
from hatchery.tokenization.special_tokens import SPECIAL_SETS
from hatchery.tokenization.token_shards import Document
from hatchery.training.curriculum import Curriculum, difficulties, order_of
from hatchery.training.data_order import DataOrder
from hatchery.training.objectives import objective_of
from hatchery.training.objectives.causal import CausalSettings
from hatchery.training.objectives.masked import MaskedSettings
from hatchery.training.settings import TrainingSettings
from hatchery.training.start_settings import CurriculumSettings
from hatchery.training.step_plan import StepPlan
from hatchery.typed import build

# Tokens of each document's sentences; each document is one sequence.
SENTENCES = [[[9, 9, 9, 9, 9, 9]], [[9, 7], [9, 7]], [[8, 8, 8]], [[9], [9], [9], [9], [7]]]


class Text:
    vocabulary_size, special, split = 20, SPECIAL_SETS["babylm"], "train"
    n_documents = len(SENTENCES)

    def document(self, index: int) -> Document:
        sentences = SENTENCES[index]
        ids = np.concatenate(sentences).astype(np.uint16)
        starts = np.cumsum([0, *map(len, sentences[:-1])]).astype(np.int32)
        return Document(ids, starts, np.packbits(np.ones(len(ids), bool), bitorder="little"), first_bit=0)

    def document_lengths(self) -> np.ndarray:
        return np.array([sum(map(len, sentences)) for sentences in SENTENCES], dtype=np.int64)


def examples_of(length: int) -> Any:
    objective = objective_of(MaskedSettings(segments="documents", short_probability=0.0))
    return objective.examples(Text(), length)  # type: ignore[arg-type]


def settings(steps: int = 8, **order: Any) -> TrainingSettings:
    return build(TrainingSettings, {"steps": steps, "batch_size": 2, "sequence_length": 16, "order": order})


def epochs(found: DataOrder, plan: StepPlan) -> list[list[int]]:
    """Return the sequences of each epoch of a plan."""
    by_epoch: dict[int, list[int]] = {}
    for step in range(plan.steps):
        for part in found(plan.at(step)):
            by_epoch.setdefault(part.epoch, []).extend(part.indices.tolist())
    return list(by_epoch.values())


def test_difficulties_are_those_by_hand() -> None:
    assert difficulties(examples_of(16), "length").tolist() == [6.0, 2.0, 3.0, 1.0]
    # Of 18 tokens, 12 are subword 9, 3 are subword 7 and 3 are subword 8.
    often, seldom = -np.log(12 / 18), -np.log(3 / 18)
    expected = [often, (often + seldom) / 2, seldom, (4 * often + seldom) / 5]
    assert difficulties(examples_of(16), "rarity") == pytest.approx(expected)


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ({"by": "length"}, [3, 1, 2, 0]),
        ({"by": "length", "first": "hard"}, [0, 2, 1, 3]),
        ({"by": "rarity"}, [0, 3, 1, 2]),
    ],
)
def test_every_epoch_goes_from_one_end_to_the_other(order: dict[str, Any], expected: list[int]) -> None:
    plan = StepPlan(settings(spread=0.0, **order))
    assert epochs(Curriculum(plan.settings.order, plan, 1, examples_of), plan) == [expected] * 4  # type: ignore[arg-type]


def test_sequences_of_each_length_are_ordered_by_their_own_difficulties() -> None:
    # 64 tokens are 8 sequences of 8 tokens in steps 0 and 1, and 4 sequences of 16 tokens in steps 2 and 3.
    values = {"steps": 4, "batch_size": 4, "sequence_length": 8, "order": {"by": "length", "spread": 0.0}}
    long = {"long_sequence": {"from_fraction": 0.5, "factor": 2}}
    plan = StepPlan(build(TrainingSettings, values | long))

    def last_is_easiest(examples: Any) -> np.ndarray:
        return -np.arange(float(len(examples)))

    order: Any = plan.settings.order
    found = Curriculum(order, plan, 1, lambda length: range(64 // length), last_is_easiest)
    assert epochs(found, plan) == [[7, 6, 5, 4, 3, 2, 1, 0, 3, 2, 1, 0]]


def test_later_epochs_are_those_of_a_random_order() -> None:
    plan = StepPlan(settings(by="length", epochs=2, spread=0.0))
    found = epochs(order_of(objective_of(MaskedSettings()), plan, 1, examples_of), plan)  # type: ignore[arg-type]
    random = epochs(DataOrder(plan, 1, examples_of), plan)
    assert found[:2] == [[3, 1, 2, 0]] * 2 and found[2:] == random[2:]


def test_one_random_order_serves_all_epochs_only_if_asked_for() -> None:
    plan = StepPlan(settings(by="first_epoch"))
    random = epochs(DataOrder(plan, 1, examples_of), plan)
    assert len({tuple(order) for order in random}) > 1
    found = order_of(objective_of(MaskedSettings()), plan, 1, examples_of)  # type: ignore[arg-type]
    assert epochs(found, plan) == [random[0]] * 4  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="first: got 'hard', which cannot be combined with `by: first_epoch`"):
        settings(by="first_epoch", first="hard")


@hypothesis_settings(max_examples=20)
@given(st.integers(0, 100), st.floats(0, 5), st.integers(0, 7))
def test_a_spread_keeps_each_sequence_once_and_any_step_is_known_by_itself(seed: int, spread: float, step: int) -> None:
    plan = StepPlan(settings(by="rarity", spread=spread))
    whole = Curriculum(plan.settings.order, plan, seed, examples_of)  # type: ignore[arg-type]
    assert [sorted(epoch) for epoch in epochs(whole, plan)] == [[0, 1, 2, 3]] * 4
    resumed = Curriculum(plan.settings.order, plan, seed, examples_of)  # type: ignore[arg-type]
    for ours, theirs in zip(resumed(plan.at(step)), whole(plan.at(step)), strict=True):
        assert ours.epoch == theirs.epoch and ours.indices.tolist() == theirs.indices.tolist()


def test_a_spread_moves_a_sequence_by_no_more_than_its_share_of_the_epoch() -> None:
    class Ramp:
        def __len__(self) -> int:
            return 1000

    plan = StepPlan(
        build(TrainingSettings, {"steps": 1000, "batch_size": 2, "order": {"by": "length", "spread": 0.05}})
    )
    ordered = Curriculum(CurriculumSettings("length", spread=0.05), plan, 3, lambda length: Ramp())
    import hatchery.training.curriculum as module

    kept = module.difficulties
    module.difficulties = lambda examples, by: np.arange(1000.0)  # type: ignore[assignment]
    try:
        found, second = epochs(ordered, plan)
        other, _ = epochs(Curriculum(ordered.settings, plan, 4, lambda length: Ramp()), plan)
    finally:
        module.difficulties = kept
    moved = np.abs(np.array(found) - np.arange(1000))
    assert 10 < moved.max() <= 50 and sorted(found) == list(range(1000))
    assert found != second and found != other, "each epoch and each seed has draws of its own"


def test_without_settings_the_order_is_the_random_one_and_packed_texts_have_one_too() -> None:
    plain = StepPlan(build(TrainingSettings, {"steps": 8, "batch_size": 2}))
    assert type(order_of(objective_of(MaskedSettings()), plain, 1, examples_of)) is DataOrder
    packed = objective_of(CausalSettings()).examples(Text(), 12)  # type: ignore[arg-type]
    assert len(difficulties(packed, "rarity")) == len(packed)


def test_a_schedule_of_lengths_is_refused() -> None:
    values = {"steps": 8, "batch_size": 2, "order": {"by": "length"}}
    with pytest.raises(ConfigError, match="expected null, because the task translation and a length_schedule"):
        build(TrainingSettings, {**values, "length_schedule": [{"from_fraction": 0.5, "factor": 2}]})
