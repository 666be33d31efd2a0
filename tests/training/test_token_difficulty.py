"""Masking by a model's token difficulty: values by hand, masks by values, and resumed runs with equal bytes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from hatchery.objectives.mask_rates import TokenPreference
from hatchery.tokenization.special_tokens import UNLABELLED
from hatchery.training.batches import StepBatch
from hatchery.training.objectives import objective_of
from hatchery.training.objectives.masked import MaskedSettings
from hatchery.training.token_difficulty import LEAST, TokenDifficulty

MODEL = nn.Linear(1, 1)


@pytest.mark.usefixtures("single_process")
@pytest.mark.parametrize(("by", "recent"), [("loss", [1.0, 3.0]), ("accuracy", [2 / 4, 2 / 3])])
def test_values_are_means_of_the_earlier_and_the_recent_value(by: Any, recent: list[float]) -> None:
    difficulty = TokenDifficulty(TokenPreference(by=by, interval_steps=2, memory=0.25, power=1.0), 4)
    difficulty.begin(MODEL)
    # Subword 1 occurs twice, once predicted rightly, with losses 0.5 and 1.5. Subword 2 occurs once, predicted wrongly,
    # with 3 nats. The other subwords do not occur.
    difficulty.see(torch.tensor([2]), torch.tensor([3.0]), torch.tensor([False]))
    difficulty.after_step(1, MODEL)
    assert difficulty.values.tolist() == [1, 1, 1, 1]
    # A checkpoint between two updates holds the sums.
    resumed = TokenDifficulty(difficulty.settings, 4)
    resumed.load({name: tensor.clone() for name, tensor in difficulty.state().items()}, [])
    resumed.begin(MODEL)
    for each in (difficulty, resumed):
        each.see(torch.tensor([1, 1]), torch.tensor([0.5, 1.5]), torch.tensor([True, False]))
        each.after_step(1, MODEL)
        expected = [1, 0.25 + 0.75 * recent[0], 0.25 + 0.75 * recent[1], 1]
        assert each.preferences == pytest.approx(expected, abs=1e-6)
    assert not difficulty.state()["token_difficulty::sums"].any()


@pytest.mark.usefixtures("single_process")
def test_a_subword_that_is_always_right_can_still_be_hidden() -> None:
    difficulty = TokenDifficulty(TokenPreference(by="loss", interval_steps=1, memory=0.0), 2)
    difficulty.see(torch.tensor([1]), torch.tensor([0.0]), torch.tensor([True]))
    difficulty.after_step(1, MODEL)
    assert difficulty.values.tolist() == [1, LEAST]


@pytest.mark.parametrize(("rate", "share"), [(None, 0.15), (0.4, 0.4)])
def test_a_batch_is_hidden_anew_by_the_values(make_batch: Callable[..., Any], rate: float | None, share: float) -> None:
    objective, batch = make_batch(MaskedSettings(kind="subword", preference=TokenPreference(by="loss")), rate)
    labels = batch.micro_batches[0]["labels"]
    assert int((labels != UNLABELLED).sum()) / (20 * 58) == pytest.approx(share, abs=0.04)
    difficulty = TokenDifficulty(objective.settings.preference, 300)
    same = difficulty.prepared(batch)
    for name, tensor in batch.micro_batches[0].items():
        assert torch.equal(tensor, same.micro_batches[0][name]), name
    assert same.counted == batch.counted
    difficulty.values = np.where(np.arange(300) < 150, 100.0, 1.0)
    part, before = difficulty.prepared(batch).micro_batches[0], batch.micro_batches[0]
    clean = torch.where(before["labels"] == UNLABELLED, before["input_ids"], before["labels"])
    again = torch.where(part["labels"] == UNLABELLED, part["input_ids"], part["labels"])
    assert torch.equal(clean, again)
    found = part["labels"][part["labels"] != UNLABELLED]
    # With the square root of the values, the preference is ten to one; half of the tokens are preferred.
    assert float((found < 150).double().mean()) == pytest.approx(10 / 11, abs=0.05)


@pytest.fixture
def make_batch() -> Callable[..., Any]:
    """Make one micro-batch of random subwords."""
    from hatchery.tokenization.special_tokens import SPECIAL_SETS
    from hatchery.tokenization.token_shards import Document

    class Text:
        vocabulary_size, special, split, n_documents = 300, SPECIAL_SETS["babylm"], "train", 20

        def document(self, index: int) -> Document:
            ids = np.random.default_rng(index).integers(6, 300, 56 + index % 5).astype(np.uint16)
            return Document(ids, np.zeros(1, np.int32), np.packbits(np.ones(60, bool), bitorder="little"), first_bit=0)

        def document_lengths(self) -> np.ndarray:
            return 56 + np.arange(20) % 5

    def make(settings: MaskedSettings, rate: float | None) -> Any:
        objective = objective_of(settings)
        examples = objective.examples(Text(), 64)  # type: ignore[arg-type]
        part = examples.batch(1, 0, np.arange(len(examples)), rate)
        return objective, StepBatch([part], examples.counted(part), 0)

    return make


@pytest.mark.slow
def test_a_killed_run_and_two_processes_come_to_the_same_weights(make_command: Any) -> None:
    preference = {"by": "loss", "interval_steps": 3}
    chosen = {"steps": 12, "objective": {"kind": "subword", "preference": preference}}
    whole, killed, two = (
        make_command({"checkpoint_interval_steps": 4, "micro_batch_size": 2}, **chosen) for _ in range(3)
    )
    whole.finish()
    killed.kill_after(5)
    assert "continues after step" in killed.finish()
    assert whole.digests() == killed.digests()
    two.finish(2)
    for name, tensor in whole.weights().items():
        torch.testing.assert_close(two.weights()[name], tensor, rtol=1e-4, atol=1e-6)
    plain = make_command(
        {"checkpoint_interval_steps": 4, "micro_batch_size": 2}, **{**chosen, "objective": {"kind": "subword"}}
    )
    plain.finish()
    assert any(not torch.equal(tensor, plain.weights()[name]) for name, tensor in whole.weights().items())
