"""What tensors free is kept for the next ones, until a process has grown too much by it."""

import platform
import subprocess
import sys
from pathlib import Path

import pytest

from hatchery.training.speed import GROWTH

pytestmark = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries are left as they are")
KEEPS = """
import resource, sys
sys.path.insert(0, sys.argv[1])
import torch
from hatchery.training.processes import prepare_device

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

def step():
    states = [torch.ones(2**20)]
    for _ in range(8):
        states.append(states[-1] * 1.0)

prepare_device(torch.device("cpu"), None)
# The first steps take what later ones keep.
for _ in range(20):
    step()
before = faults()
for _ in range(20):
    step()
print((faults() - before) / 20)
"""
GROWS = """
import sys
sys.path.insert(0, sys.argv[1])
import torch
from hatchery.training.speed import INTERVAL_STEPS, KeptMemory, keep_freed_memory
from hatchery.training.speed import memory_mib

def resident():
    return memory_mib(torch.device("cpu")).current

keep_freed_memory()
kept = KeptMemory()
for _ in range(INTERVAL_STEPS - 1):
    kept.step_finished()
print(resident())
tensors = [torch.ones(2**26 + step) for step in range(4)]
del tensors
print(resident())
kept.step_finished()
print(resident())
tensors = torch.ones(2**24)
del tensors
before = resident()
for _ in range(INTERVAL_STEPS):
    kept.step_finished()
print(before - resident())
"""


def run(code: str, repository: Path) -> list[str]:
    """What `code` prints in a process of its own: threads other than the first have memory of another kind."""
    command = [sys.executable, "-c", code, str(repository / "scripts")]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


def test_a_process_on_the_cpu_gets_the_memory_of_freed_tensors_again_without_fresh_pages(repository: Path) -> None:
    (faults,) = run(KEEPS, repository)
    # The tensors of a step have 9,216 pages; 8,161 of them are fresh in every step where nothing is kept.
    assert float(faults) < 500


def test_memory_goes_back_when_a_process_has_grown_and_only_then(repository: Path) -> None:
    start, grown, after, given_back = map(float, run(GROWS, repository))
    assert grown > GROWTH * start > after
    assert given_back < 1
