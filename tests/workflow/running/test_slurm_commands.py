"""Where Slurm is not installed, sending jobs to it is refused in one line; looking at the plan is not."""

from pathlib import Path

import pytest

from hatchery.errors import ConfigError
from hatchery.workflow.software import require_slurm


@pytest.fixture
def without_slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))


@pytest.mark.usefixtures("without_slurm")
def test_sending_jobs_from_a_machine_without_slurm_is_one_line() -> None:
    with pytest.raises(ConfigError, match="this machine has no sbatch and no squeue") as caught:
        require_slurm("slurm", dry_run=False)
    assert "\n" not in str(caught.value)


@pytest.mark.usefixtures("without_slurm")
def test_a_dry_run_and_other_executors_need_no_slurm() -> None:
    require_slurm("slurm", dry_run=True)
    require_slurm("local", dry_run=False)


def test_a_machine_with_slurm_may_send_jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for command in ("sbatch", "squeue"):
        (tmp_path / command).touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    require_slurm("slurm", dry_run=False)
