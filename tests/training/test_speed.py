"""Speed is measured over the steps since the last reading; the size of kept freed memory is limited."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from hatchery.training.speed import GROWTH, Speedometer

CPU = torch.device("cpu")


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_speed_is_that_of_the_steps_since_the_last_reading() -> None:
    clock = Clock()
    meter = Speedometer(CPU, devices=2, peak=1e6, clock=clock)
    assert meter.read() == {}
    clock.now += 3
    meter.count(tokens=600, flops=4e6)
    clock.now += 1
    meter.count(tokens=200, flops=4e6)
    reading = meter.read()
    assert (reading["tokens_per_second"], reading["step_seconds"], reading["mfu"]) == (200.0, 2.0, 1.0)
    clock.now += 1
    meter.count(tokens=50, flops=1e5)
    reading = meter.read()
    assert (reading["tokens_per_second"], reading["step_seconds"], reading["mfu"]) == (50.0, 1.0, 0.05)


def test_evaluation_is_no_training_time() -> None:
    clock = Clock()
    meter = Speedometer(CPU, clock=clock)
    clock.now += 2
    with meter.paused():
        clock.now += 50
    meter.count(tokens=100, flops=1.0)
    reading = meter.read()
    assert reading["tokens_per_second"] == 50.0
    assert reading["mfu"] is None, "the peak of a CPU is not known"


MEMORY_OF_A_PROCESS = """
import torch
from hatchery.training.speed import memory_mib

cpu = torch.device("cpu")
before = memory_mib(cpu)
held = torch.ones(64 * 2**18)
after = memory_mib(cpu)
del held
released = memory_mib(cpu)
print(*before, *after, *released)
"""
KEEPS = """
import resource
from hatchery.training.processes import prepare_device

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

def step():
    states = [torch.ones(2**20)]
    for _ in range(8):
        states.append(states[-1] * 1.0)

prepare_device(cpu, None)
# The first steps take what later ones keep.
for _ in range(20):
    step()
before = faults()
for _ in range(20):
    step()
print((faults() - before) / 20)
"""
GROWS = """
from hatchery.training.speed import INTERVAL_STEPS, KeptMemory, keep_freed_memory

def resident():
    return memory_mib(cpu).current

keep_freed_memory()
kept = KeptMemory()
for _ in range(INTERVAL_STEPS - 1):
    kept.step_finished()
numbers = [resident()]
tensors = [torch.ones(2**26 + step) for step in range(4)]
del tensors
numbers.append(resident())
kept.step_finished()
numbers.append(resident())
tensors = torch.ones(2**24)
del tensors
before = resident()
for _ in range(INTERVAL_STEPS):
    kept.step_finished()
print(*numbers, before - resident())
"""


@pytest.fixture(scope="module")
def printed(repository: Path) -> list[list[float]]:
    """Return the numbers that each piece of code prints, one after the other in a new process. A process that ran many
    tests may reuse memory that it has freed before, and its threads after the first use other memory.
    """
    glibc = platform.libc_ver()[0] == "glibc"
    result = subprocess.run(
        [sys.executable, "-c", MEMORY_OF_A_PROCESS + (KEEPS + GROWS if glibc else "")],
        env={**os.environ, "PYTHONPATH": str(repository / "scripts")},
        capture_output=True,
        text=True,
        check=True,
    )
    return [[float(number) for number in line.split()] for line in result.stdout.splitlines()]


def test_memory_is_that_of_this_process(printed: list[list[float]]) -> None:
    before, peak_before, after, _, released, peak = printed[0]
    assert after - before > 50
    assert released < after - 50
    # The kernel counts pages in batches, so the peak is not exact.
    assert peak == pytest.approx(max(peak_before, after), abs=2)


needs_glibc = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries are left as they are")


@needs_glibc
def test_a_process_on_the_cpu_gets_the_memory_of_freed_tensors_again_without_fresh_pages(
    printed: list[list[float]],
) -> None:
    (faults,) = printed[1]
    # The tensors of a step fill 9,216 pages. Without kept memory, 8,161 of them are fresh in every step.
    assert faults < 500


@needs_glibc
def test_memory_goes_back_when_a_process_has_grown_and_only_then(printed: list[list[float]]) -> None:
    start, grown, after, given_back = printed[2]
    assert grown > GROWTH * start > after
    assert given_back < 1
