"""Batches of real shards are the same in any number of processes and across both lengths."""

import json
import math
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from batch_cases import OBJECTIVES, Factory, drawn, make_batches, rows

from hatchery.tokenization.documents import TRAINING_SPLIT
from hatchery.tokenization.special_tokens import SPECIAL_SETS, UNLABELLED
from hatchery.tokenization.token_shards import TokenShards
from hatchery.training import batches as batches_module
from hatchery.training.batches import BatchLoader, TrainingBatches, concatenate
from hatchery.training.development import DevelopmentSet, development_examples
from hatchery.training.objective import HeldOutTerms
from hatchery.training.objectives import objective_of
from hatchery.training.settings import pretrain_settings
from hatchery.training.step_plan import StepPlan
from hatchery.training.topology import SINGLE_PROCESS, Topology


@pytest.mark.parametrize(("steps", "switch"), [(31_250, 28_125), (15_625, 14_062), (7_812, 7_030), (10, 9)])
def test_long_sequences_begin_at_the_published_step_with_as_many_tokens(
    pretrain_slice: Callable[..., dict[str, Any]], steps: int, switch: int
) -> None:
    settings = pretrain_settings(pretrain_slice(steps=steps, batch_size=32_768, sequence_length=128, long=(0.9, 4)))
    short, long = StepPlan(settings).stretches
    assert (short.first_step, short.last_step, long.first_step, long.last_step) == (0, switch, switch, steps)
    sizes = [(step.sequence_length, step.batch_size) for step in map(StepPlan(settings).at, (switch - 1, switch))]
    assert sizes == [(128, 32_768), (512, 8_192)]


def test_the_time_of_waiting_for_batches_excludes_the_time_of_training(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(batches_module.time, "monotonic", lambda: now[0])

    def slow() -> Iterator[Any]:
        for seconds in (3.0, 2.0):
            now[0] += seconds
            yield seconds

    nothing: Any = None
    loader = BatchLoader(nothing)
    for _ in loader._measured(slow()):
        now[0] += 50
    assert loader.waited_seconds == 5


def test_lengths_without_a_step_are_left_out(pretrain_slice: Callable[..., dict[str, Any]]) -> None:
    assert StepPlan(pretrain_settings(pretrain_slice(steps=0))).stretches == ()
    (only,) = StepPlan(pretrain_settings(pretrain_slice(steps=5, batch_size=8, long=(0.0, 2)))).stretches
    assert (only.first_step, only.last_step, only.sequence_length) == (0, 5, 32)


@pytest.mark.parametrize("objective", OBJECTIVES.values(), ids=OBJECTIVES.keys())
@pytest.mark.parametrize("world_size", [2, 4])
def test_all_processes_together_see_the_sequences_and_masks_of_one(
    pretrain_slice: Factory, token_data: Any, objective: dict[str, Any], world_size: int
) -> None:
    settings = pretrain_settings(pretrain_slice(steps=10, long=(0.5, 2), **objective))
    whole = make_batches(settings, token_data, SINGLE_PROCESS, None)
    topologies = [Topology(rank, world_size, rank, "a", 1) for rank in range(world_size)]
    parts = [make_batches(settings, token_data, topology, 3) for topology in topologies]
    for step in range(settings.steps):
        expected, shares = whole.at(step), [part.at(step) for part in parts]
        assert rows([batch for share in shares for batch in share.micro_batches]) == rows(expected.micro_batches)
        assert sum(share.tokens for share in shares) == expected.tokens
        assert sum(share.labelled for share in shares) == expected.labelled > 0


@pytest.mark.parametrize("objective", OBJECTIVES.values(), ids=OBJECTIVES.keys())
def test_a_restarted_run_sees_the_batches_of_an_uninterrupted_one(
    pretrain_slice: Factory, token_data: Any, objective: dict[str, Any]
) -> None:
    settings = pretrain_settings(pretrain_slice(steps=8, long=(0.5, 2), **objective))
    through = drawn(BatchLoader(make_batches(settings, token_data, SINGLE_PROCESS, 3)), 0)
    restarted = drawn(BatchLoader(make_batches(settings, token_data, SINGLE_PROCESS, 3)), 5)
    assert [rows(batch.micro_batches) for batch in restarted] == [rows(batch.micro_batches) for batch in through[5:]]


@pytest.mark.parametrize("objective", OBJECTIVES.values(), ids=OBJECTIVES.keys())
def test_padding_is_no_token_whatever_the_mask_says(
    pretrain_slice: Factory, token_data: Any, objective: dict[str, Any]
) -> None:
    settings = pretrain_settings(pretrain_slice(batch_size=64, sequence_length=128, **objective))
    (batch,) = (step := make_batches(settings, token_data, SINGLE_PROCESS, None).at(0)).micro_batches
    assert step.tokens == sum(len(ids) for ids, *_ in rows([batch]))
    fills = settings.objective.padding_in_loss
    assert fills == (step.labelled > batch["labels"].numel() / 4)
    assert step.tokens < batch["input_ids"].numel() or settings.objective.segments == "packed"


def test_drawing_ahead_gives_the_batches_of_each_step_and_the_long_phase_has_fewer_longer_ones(
    pretrain_slice: Factory, token_data: Any
) -> None:
    settings = pretrain_settings(pretrain_slice(steps=6, batch_size=8, sequence_length=16, long=(0.5, 2)))
    batches = make_batches(settings, token_data, SINGLE_PROCESS, None)
    ahead = drawn(BatchLoader(batches), 2)
    assert len(ahead) == 4
    for step, batch in zip(range(2, 6), ahead, strict=True):
        for key, tensor in batches.at(step).micro_batches[0].items():
            assert torch.equal(batch.micro_batches[0][key], tensor)
    assert [len(batch.micro_batches[0]["labels"]) for batch in ahead] == [8, 4, 4, 4]
    assert ahead[0].micro_batches[0]["labels"].shape[1] <= 16 < ahead[1].micro_batches[0]["labels"].shape[1] <= 32


FILLERS: dict[str, int | bool] = {"input_ids": 1, "attention_mask": False, "labels": UNLABELLED}


def test_a_batch_across_two_epochs_is_padded_to_its_longest_sequence() -> None:
    short = {
        "input_ids": torch.tensor([[1, 9, 2]]),
        "attention_mask": torch.ones(1, 3, dtype=torch.bool),
        "labels": torch.tensor([[UNLABELLED, 9, UNLABELLED]]),
    }
    long = {key: torch.cat([tensor, tensor], dim=1) for key, tensor in short.items()}
    joined = concatenate([short, long], FILLERS | {"input_ids": 3})
    assert joined["input_ids"].tolist() == [[1, 9, 2, 3, 3, 3], [1, 9, 2, 1, 9, 2]]
    assert joined["attention_mask"].dtype == torch.bool and joined["attention_mask"].sum() == 9
    assert (joined["labels"] != UNLABELLED).sum() == 3
    assert set(joined) == set(short)
    assert concatenate([short, long], FILLERS)["input_ids"][0].tolist() == [1, 9, 2, 1, 1, 1]


def test_blocks_and_pair_labels_of_two_epochs_are_joined() -> None:
    short = {
        "input_ids": torch.tensor([[1, 9, 2]]),
        "attention_mask": torch.ones(1, 3, 3, dtype=torch.bool),
        "labels": torch.tensor([[UNLABELLED, 9, UNLABELLED]]),
        "pair_labels": torch.tensor([1]),
    }
    long = {key: tensor.repeat(1, *[2] * (tensor.dim() - 1)) for key, tensor in short.items()}
    joined = concatenate([short, {**long, "pair_labels": torch.tensor([0])}], FILLERS)
    assert joined["pair_labels"].tolist() == [1, 0]
    assert joined["attention_mask"].shape == (2, 6, 6)
    assert joined["attention_mask"][0].int().tolist() == [[1, 1, 1, 0, 0, 0]] * 3 + [[0] * 6] * 3
    assert joined["attention_mask"][1].all()


class Recorded:
    """Five sequences per epoch; sequence i has i + 2 tokens, i labels and 10 * epoch + i words."""

    fillers = FILLERS
    same_in_every_epoch = False

    def __init__(self) -> None:
        self.asked: list[tuple[int, int, int, float | None]] = []

    def of_length(self, length: int) -> Any:
        assert length == 8
        return self

    def __len__(self) -> int:
        return 5

    def places(self) -> np.ndarray:
        return 8 * np.arange(5)

    def counted_batch(self, seed: int, epoch: int, indices: Any, rate: float | None) -> Any:
        self.asked += [(seed, epoch, int(index), rate) for index in indices]
        shown = torch.zeros(len(indices), 6, dtype=torch.int64)
        labels = torch.full((len(indices), 6), UNLABELLED)
        for row, index in enumerate(indices.tolist()):
            shown[row, : index + 2], labels[row, :index] = 100 * epoch + index + 1, 7
        return {"input_ids": shown, "labels": labels}, sum(10 * epoch + int(index) for index in indices)

    def counted(self, batch: Any) -> tuple[int, ...]:
        return int((batch["labels"] != UNLABELLED).sum()), len(batch["labels"])

    def n_tokens(self, batch: Any) -> int:
        return int((batch["input_ids"] != 0).sum())


@pytest.mark.parametrize("micro_batch", [None, 2])
def test_a_step_over_three_epochs_has_the_sequences_rate_and_counts_that_are_worked_out_by_hand(
    pretrain_slice: Factory, micro_batch: int | None
) -> None:
    values = pretrain_slice(steps=4, batch_size=7, sequence_length=8, seed=9)
    values["objective"] = {"mask_probability": 0.4, "final_mask_probability": 0.2}
    settings, orders = pretrain_settings(values), []
    for epoch in range(6):
        keys = np.random.Philox(np.random.SeedSequence([9, epoch])).random_raw(5)
        orders += [(epoch, int(index)) for index in np.argsort(keys)]
    rates = [0.4, 0.35, 0.3, 0.25]
    for processes in (1, 2):
        cuts = {1: [0, 7], 2: [0, 3, 7]}[processes]
        for rank in range(processes):
            recorded = Recorded()
            topology = Topology(rank, processes, rank, "a", 1)
            batches = TrainingBatches(StepPlan(settings), 9, topology, micro_batch, recorded.of_length)
            # Steps 0 to 3 read sequences 0-6, 7-13, 14-20 and 21-27. The third step reads one sequence of epoch 2, five
            # of epoch 3 and one of epoch 4.
            for step in range(4):
                expected = orders[7 * step + cuts[rank] : 7 * step + cuts[rank + 1]]
                recorded.asked = []
                batch = batches.at(step)
                assert [asked[:3] for asked in recorded.asked] == [(9, *sequence) for sequence in expected]
                assert [asked[3] for asked in recorded.asked] == pytest.approx([rates[step]] * len(expected))
                shown = [int(ids[0]) for part in batch.micro_batches for ids in part["input_ids"]]
                assert shown == [100 * epoch + index + 1 for epoch, index in expected]
                indices = [index for _, index in expected]
                assert batch.counted == (sum(indices), len(indices))
                assert (batch.tokens, batch.sequences) == (sum(indices) + 2 * len(indices), len(indices))
                assert batch.words == sum(10 * epoch + index for epoch, index in expected)
                assert batch.first_sequence == cuts[rank]
                sizes = [len(part["input_ids"]) for part in batch.micro_batches]
                assert sizes == (
                    [len(indices)] if micro_batch is None else {3: [2, 1], 4: [2, 2], 7: [2, 2, 2, 1]}[len(indices)]
                )


def test_development_sequences_and_masks_do_not_depend_on_seed_or_model(
    pretrain_slice: Factory, token_data: Any
) -> None:
    batches = []
    for changes in ({"seed": 1}, {"seed": 2, "steps": 7, "long": (0.5, 2)}):
        settings = pretrain_settings(pretrain_slice(**changes))
        examples = development_examples(token_data.tokens, settings)
        assert examples is not None
        batches.append(DevelopmentSet(examples, 10, 4, SINGLE_PROCESS).batches)
    assert [len(batch["labels"]) for batch in batches[0]] == [4, 4, 2]
    assert rows(batches[0]) == rows(batches[1])


@pytest.mark.usefixtures("single_process")
def test_a_development_score_is_per_label_and_per_pair_over_all_batches() -> None:
    class Held(Recorded):
        def batch(self, seed: int, epoch: int, indices: Any) -> dict[str, torch.Tensor]:
            self.asked += [(seed, epoch, int(index), None) for index in indices]
            return {"input_ids": torch.tensor(indices)[:, None], "pair_labels": torch.ones(len(indices))}

    def evaluate(batch: dict[str, torch.Tensor]) -> Any:
        # Sequence i has i labels with a loss of 2 nats each; the loss of sequence 4 is one nat higher. Pairs with an
        # even index are classified correctly.
        index = batch["input_ids"].flatten()
        loss = 2.0 * index.sum() + (index == 4).sum()
        # Sequence i has i labels and i + 3 maskable tokens.
        maskable = (index + 3).sum()
        return SimpleNamespace(n_labelled=index.sum(), loss_sum=loss, rightly=(index % 2 == 0).sum(), maskable=maskable)

    def terms(output: Any, counted: bool) -> HeldOutTerms:
        return HeldOutTerms(output.loss_sum, output.rightly, output.maskable if counted else None)

    engine: Any = SimpleNamespace(on_device=lambda batch: batch, evaluate=evaluate, device=torch.device("cpu"))
    # There are ten labels. If the objective counts maskable tokens, the divisor is 10 + 5 * 3.
    for counted, divisor in ((False, 10), (True, 25)):
        examples: Any = Held()
        found = DevelopmentSet(
            examples, 5, 2, SINGLE_PROCESS, lambda output, _, counted=counted: terms(output, counted)
        )
        assert sorted(examples.asked) == [(20_231_106, 0, index, None) for index in range(5)]
        loss = (2 * 10 + 1) / divisor
        scores = {"development_loss": loss, "development_perplexity": math.exp(loss)}
        assert found.score(engine) == pytest.approx(scores | {"development_pair_accuracy": 3 / 5})
    # The perplexity is at most exp(700), because the exponential of a much larger loss has no floating-point number.
    engine.evaluate = lambda batch: SimpleNamespace(n_labelled=torch.tensor(1), loss_sum=torch.tensor(800.0))
    far = DevelopmentSet(Held(), 5, 5, SINGLE_PROCESS).score(engine)  # type: ignore[arg-type]
    assert (far["development_loss"], far["development_perplexity"]) == (800, math.exp(700))


def test_development_sequences_are_drawn_from_the_whole_text() -> None:
    class Many(Recorded):
        def __len__(self) -> int:
            return 1000

        def batch(self, seed: int, epoch: int, indices: Any) -> dict[str, torch.Tensor]:
            return {"input_ids": torch.tensor(indices)}

    examples: Any = Many()
    batches = DevelopmentSet(examples, 100, 30, SINGLE_PROCESS).batches
    chosen = torch.cat([batch["input_ids"] for batch in batches]).tolist()
    assert len(batches) == 4 and len(chosen) == 100 and chosen == sorted(set(chosen))
    # Each hundred contains about ten chosen numbers, with a binomial standard deviation of three.
    assert all(1 <= sum(number // 100 == part for number in chosen) <= 22 for part in range(10))


def test_more_development_sequences_than_there_are_means_all_of_them_once(
    pretrain_slice: Factory, token_data: Any
) -> None:
    examples = development_examples(token_data.tokens, pretrain_settings(pretrain_slice()))
    assert examples is not None
    shares = [DevelopmentSet(examples, 10**6, 64, Topology(rank, 3, rank, "a", 1)).batches for rank in range(3)]
    assert sum(len(batch["labels"]) for share in shares for batch in share) == len(examples)
    # Three processes need three sequences, so the first of two chosen sequences is scored twice.
    few = [DevelopmentSet(examples, 2, 64, Topology(rank, 3, rank, "a", 1)).batches for rank in range(3)]
    first, second, third = (batch["input_ids"].tolist() for (batch,) in few)
    assert first == third != second and len(first) == len(second) == 1


def test_without_evaluation_sequences_there_is_no_development_set(pretrain_slice: Factory, token_data: Any) -> None:
    settings = pretrain_settings(pretrain_slice(evaluation_sequences=0))
    assert development_examples(token_data.tokens, settings) is None


@pytest.mark.parametrize(("name", "framing"), [("babylm", (1, 2, 3, 4)), ("roberta", (0, 2, 1, 4))])
def test_sequences_are_framed_padded_and_masked_with_the_ids_that_the_shards_name(
    pretrain_slice: Factory, token_data: Any, tmp_path: Path, name: str, framing: tuple[int, int, int, int]
) -> None:
    shutil.copytree(token_data.tokens.parent, tmp_path / "tokens")
    manifest = tmp_path / "tokens" / "manifest.json"
    described = json.loads(manifest.read_text("utf-8"))
    described["measures"]["special_tokens"] = SPECIAL_SETS[name].record()
    manifest.write_text(json.dumps(described), encoding="utf-8")
    # provenance.json contains the checksum of the unchanged manifest.
    manifest.with_name("provenance.json").unlink()
    settings = pretrain_settings(pretrain_slice(batch_size=64))
    make = partial(objective_of(settings.objective).examples, TokenShards.open(manifest, TRAINING_SPLIT))
    batches = TrainingBatches(StepPlan(settings), settings.seed, SINGLE_PROCESS, None, make)
    cls, sep, pad, mask = framing
    (batch,) = batches.at(0).micro_batches
    ids, lengths = batch["input_ids"], batch["attention_mask"].sum(dim=1)
    assert (ids[:, 0] == cls).all() and lengths.min() < ids.shape[1]
    for row, length in enumerate(lengths.tolist()):
        assert ids[row, length - 1] == sep
        assert (ids[row, length:] == pad).all()
    assert (ids[batch["labels"] != UNLABELLED] == mask).float().mean() > 0.5
