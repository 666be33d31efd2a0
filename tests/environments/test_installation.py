"""`make env`, really run in a checkout whose path has spaces, with tiny packages in place of the real ones."""

import os
import shutil
import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from hatchery.environments.conda import CPU_LOCK, MAIN_LOCK

STAMP = "made-from"

pytestmark = pytest.mark.slow  # real installations

MakeCheckout = Callable[..., object]


@pytest.fixture(scope="module")
def checkout(make_checkout: MakeCheckout):
    """A checkout that is installed, on a machine whose pip offers both builds of PyTorch."""
    made = make_checkout(cpu_build=True)
    outcome = made.make("env")
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    return made


def test_the_cpu_build_of_pytorch_is_taken_where_pip_offers_it(checkout) -> None:
    assert checkout.installed_version("torch") == "2.0+cpu"
    assert checkout.installed_version("helper") == "1.0"
    assert checkout.installed_version("nvidia-things") == ""


def test_bytecode_is_compiled(checkout) -> None:
    assert list(checkout.environment.glob("lib/python3.11/site-packages/__pycache__/torch.*.pyc"))


def test_a_second_call_does_nothing_within_two_seconds(checkout) -> None:
    os.utime(checkout.folder / MAIN_LOCK)
    before = (checkout.environment / STAMP).stat().st_mtime_ns
    started = time.monotonic()
    outcome = checkout.make("env")
    assert time.monotonic() - started < 2
    assert (outcome.returncode, outcome.stdout, outcome.stderr) == (0, "", "")
    assert (checkout.environment / STAMP).stat().st_mtime_ns == before


def test_a_killed_installation_is_made_again_even_by_its_own_python(checkout) -> None:
    (checkout.environment / STAMP).unlink()
    (checkout.environment / "lib/python3.11/site-packages/torch.py").unlink()
    shutil.rmtree(checkout.environment / "lib/python3.11/site-packages/pip")
    path = f"{checkout.environment / 'bin'}{os.pathsep}{os.environ['PATH']}"
    outcome = checkout.make("env", PATH=path)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    assert checkout.installed_version("torch") == "2.0+cpu"
    assert checkout.make("env").stdout == ""


def test_other_content_of_a_lock_or_another_place_is_another_environment(checkout) -> None:
    # The last test of this checkout, which moves.
    with (checkout.folder / CPU_LOCK).open("a") as lock:
        lock.write("# another line\n")
    assert "making .venv" in checkout.make("env").stdout
    moved = replace(checkout, folder=checkout.folder.rename(checkout.folder.with_name("moved")))
    assert "making .venv" in moved.make("env").stdout
    assert moved.make("env").stdout == ""
    assert moved.installed_version("torch") == "2.0+cpu"


def test_the_index_build_brings_what_it_needs_from_the_gpu_lock(make_checkout: MakeCheckout) -> None:
    checkout = make_checkout(cpu_build=False)
    outcome = checkout.make("env")
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    assert "offers no CPU-only PyTorch" in outcome.stdout
    assert checkout.installed_version("torch") == "2.0"
    assert checkout.installed_version("nvidia-things") == "3.0"


@pytest.mark.parametrize("wheel", ["helper-1.0", "torch-2.0+cpu"])
def test_a_file_with_another_hash_is_refused(make_checkout: MakeCheckout, wheel: str) -> None:
    checkout = make_checkout(cpu_build=True)
    (checkout.wheels / f"{wheel}-py3-none-any.whl").write_bytes(b"not what was locked")
    outcome = checkout.make("env")
    assert outcome.returncode != 0
    assert "THESE PACKAGES DO NOT MATCH THE HASHES" in outcome.stderr
    assert not (checkout.environment / STAMP).exists()
