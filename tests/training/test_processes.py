"""Device of each process, messages between processes, and the rank in errors."""

import threading
from datetime import timedelta

import pytest
import torch
from torch.distributed import HashStore

from hatchery.errors import ConfigError, TrainingError
from hatchery.training import processes
from hatchery.training.processes import announce, await_announcement, named_in_errors, select_device
from hatchery.training.topology import SINGLE_PROCESS, Topology


@pytest.mark.parametrize(
    ("requested", "gpus", "local_rank", "device"),
    [
        ("auto", 0, 0, "cpu"),
        ("auto", 4, 0, "cuda:0"),
        ("cuda", 4, 3, "cuda:3"),
        # Slurm may show each process only its own GPU.
        ("cuda", 1, 3, "cuda:0"),
        ("cpu", 4, 3, "cpu"),
    ],
)
def test_a_process_has_the_gpu_of_its_local_rank(
    monkeypatch: pytest.MonkeyPatch, requested: str, gpus: int, local_rank: int, device: str
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpus > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    assert select_device(requested, Topology(7, 8, local_rank, "a", 1)) == torch.device(device)


def test_a_gpu_that_is_asked_for_and_missing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ConfigError, match=r"runtime\.device: got 'cuda', but torch sees no CUDA device here"):
        select_device("cuda", SINGLE_PROCESS)


def test_an_error_names_its_process_where_there_are_several() -> None:
    for topology, message in ((Topology(2, 3, 0, "a", 1), "process 2 of 3: no text"), (SINGLE_PROCESS, "no text")):
        with pytest.raises(TrainingError) as caught, named_in_errors(topology):
            raise TrainingError("no text")
        assert str(caught.value) == message


def test_the_first_process_waits_until_all_others_have_its_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "COLLECTIVE_TIMEOUT", timedelta(seconds=20))
    store, received = HashStore(), list[str]()

    def wait() -> None:
        received.append(await_announcement(store, timedelta(seconds=30)))

    others = [threading.Thread(target=wait) for _ in range(2)]
    for other in others:
        other.start()
    announce(store, "train", Topology(0, 3, 0, "a", 1))
    for other in others:
        other.join()
    assert received == ["train"] * 2
    announce(store, "nobody waits", SINGLE_PROCESS)
    # Two of three other processes have received a message.
    monkeypatch.setattr(processes, "COLLECTIVE_TIMEOUT", timedelta(seconds=0.05))
    with pytest.raises(TrainingError, match="the other processes of this training did not connect within the time"):
        announce(store, "train", Topology(0, 4, 0, "a", 1))


def test_a_message_that_never_comes_is_an_error_of_one_line() -> None:
    with pytest.raises(
        TrainingError, match=r"the other processes are lost: .*see the message of the process"
    ) as caught:
        await_announcement(HashStore(), timedelta(seconds=0.05))
    assert "\n" not in str(caught.value)
