"""Batches drawn ahead of time by threads and processes: equal batches, reported errors, and a clean end."""

import signal
import threading
import time
from typing import Any

import psutil
import pytest
import torch
from batch_cases import OBJECTIVES, Factory, drawn, make_batches

from hatchery.errors import TrainingError
from hatchery.training.batches import BatchLoader, StepBatch
from hatchery.training.settings import pretrain_settings
from hatchery.training.topology import SINGLE_PROCESS, Topology


def assert_equal(one: StepBatch, other: StepBatch) -> None:
    assert (one.counted, one.tokens, one.first_sequence) == (other.counted, other.tokens, other.first_sequence)
    assert len(one.micro_batches) == len(other.micro_batches)
    for part, expected in zip(one.micro_batches, other.micro_batches, strict=True):
        assert list(part) == list(expected)
        assert all(torch.equal(part[key], expected[key]) and part[key].dtype == expected[key].dtype for key in part)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("objective", ["babylm", "packed", "order pairs"])
def test_any_number_of_worker_processes_draws_the_batches_of_the_thread(
    pretrain_slice: Factory, token_data: Any, objective: str, workers: int
) -> None:
    settings = pretrain_settings(pretrain_slice(steps=8, long=(0.5, 2), **OBJECTIVES[objective]))
    by_thread = drawn(BatchLoader(make_batches(settings, token_data, SINGLE_PROCESS, 3)), 1)
    by_processes = drawn(BatchLoader(make_batches(settings, token_data, SINGLE_PROCESS, 3), workers), 1)
    for one, other in zip(by_processes, by_thread, strict=True):
        assert_equal(one, other)


@pytest.mark.parametrize("workers", [0, 2])
def test_who_draws_ends_with_the_block_even_in_the_middle_of_the_run(
    pretrain_slice: Factory, token_data: Any, workers: int
) -> None:
    settings = pretrain_settings(pretrain_slice(steps=1000))
    loader = BatchLoader(make_batches(settings, token_data, SINGLE_PROCESS, None), workers)
    threads, children = threading.active_count(), set(psutil.Process().children())
    with pytest.raises(ZeroDivisionError), loader.from_step(0) as batches:
        next(batches)
        started = set(psutil.Process().children()) - children
        assert len(started) == workers and (workers or threading.active_count() > threads)
        raise ZeroDivisionError
    deadline = time.monotonic() + 30
    while threading.active_count() > threads and time.monotonic() < deadline:
        # The feeder threads of torch's queues are asked to end, and torch does not wait for them.
        time.sleep(0.01)
    assert threading.active_count() == threads
    assert not any(child.is_running() and child.status() != psutil.STATUS_ZOMBIE for child in started)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_mistake_that_a_worker_finds_arrives_as_it_is(pretrain_slice: Factory, token_data: Any, workers: int) -> None:
    settings = pretrain_settings(pretrain_slice(steps=10, batch_size=2))
    loader = BatchLoader(make_batches(settings, token_data, Topology(0, 4, 0, "a", 1), None), workers)
    with pytest.raises(
        TrainingError,
        match=r"^got a batch of 2 sequences for 4 processes, expected at least one sequence for each process$",
    ):
        drawn(loader, 0)


def test_a_worker_that_was_killed_ends_the_training_with_one_line(pretrain_slice: Factory, token_data: Any) -> None:
    settings = pretrain_settings(pretrain_slice(steps=100_000))
    loader = BatchLoader(make_batches(settings, token_data, SINGLE_PROCESS, None), workers=1)
    before = set(psutil.Process().children())
    with pytest.raises(TrainingError, match=r"^runtime\.workers: .* has died"), loader.from_step(0) as batches:
        next(batches)
        (worker,) = set(psutil.Process().children()) - before
        worker.kill()
        list(batches)


def test_a_terminal_s_signals_do_not_reach_the_workers(pretrain_slice: Factory, token_data: Any) -> None:
    settings = pretrain_settings(pretrain_slice(steps=50))
    loader = BatchLoader(make_batches(settings, token_data, SINGLE_PROCESS, None), workers=2)
    before = set(psutil.Process().children())
    with loader.from_step(0) as batches:
        # Read one batch from each worker, so that both workers already ignore signals.
        next(batches), next(batches)
        for worker in set(psutil.Process().children()) - before:
            worker.terminate()
            worker.send_signal(signal.SIGINT)
        assert len(list(batches)) == 48
