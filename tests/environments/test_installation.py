"""`make env`, really run in a checkout whose path has spaces, with tiny packages in place of the real ones."""

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hatchery.environments.installation import (
    CPU_LOCK,
    MAIN_LOCK,
    STAMP,
    InstallationError,
    environment_digest,
    install_environment,
    is_installed,
)

pytestmark = pytest.mark.slow  # four real installations

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


def test_other_content_of_a_lock_or_another_place_is_another_environment(checkout) -> None:
    digest = environment_digest(checkout.folder, checkout.environment)
    assert is_installed(checkout.environment, digest)
    lock = checkout.folder / CPU_LOCK
    content = lock.read_bytes()
    try:
        lock.write_bytes(content + b"# another line\n")
        assert not is_installed(checkout.environment, environment_digest(checkout.folder, checkout.environment))
    finally:
        lock.write_bytes(content)
    assert environment_digest(checkout.folder, checkout.folder / "elsewhere") != digest


def test_a_killed_installation_is_made_again_even_by_its_own_python(checkout) -> None:
    (checkout.environment / STAMP).unlink()
    (checkout.environment / "lib/python3.11/site-packages/torch.py").unlink()
    shutil.rmtree(checkout.environment / "lib/python3.11/site-packages/pip")
    path = f"{checkout.environment / 'bin'}{os.pathsep}{os.environ['PATH']}"
    outcome = checkout.make("env", PATH=path)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    assert checkout.installed_version("torch") == "2.0+cpu"
    assert checkout.make("env").stdout == ""


def test_the_index_build_brings_what_it_needs_from_the_gpu_lock(make_checkout: MakeCheckout) -> None:
    checkout = make_checkout(cpu_build=False)
    outcome = checkout.make("env")
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    assert "offers no CPU-only PyTorch" in outcome.stdout
    assert checkout.installed_version("torch") == "2.0"
    assert checkout.installed_version("nvidia-things") == "3.0"


def test_a_file_with_another_hash_is_refused_in_one_line(make_checkout: MakeCheckout) -> None:
    checkout = make_checkout(cpu_build=True)
    (checkout.wheels / "helper-1.0-py3-none-any.whl").write_bytes(b"not what was locked")
    outcome = checkout.make("env")
    assert outcome.returncode != 0
    errors = [line for line in outcome.stderr.splitlines() if not line.startswith("make")]
    assert len(errors) == 1, outcome.stderr
    assert errors[0].startswith("error: requirements-build.lock: pip failed: THESE PACKAGES DO NOT MATCH THE HASHES")
    assert not (checkout.environment / STAMP).exists()


def test_a_folder_that_is_no_environment_is_left_alone(checkout, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("do not lose me")
    with pytest.raises(InstallationError, match="is there already and is no virtual environment"):
        install_environment(checkout.folder, tmp_path)
    assert (tmp_path / "thesis.txt").exists()
