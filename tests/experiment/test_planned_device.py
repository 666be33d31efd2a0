"""Costs are estimated for what jobs will compute on, unless the configuration names a device."""

from pathlib import Path
from typing import Any

import pytest

from hatchery.experiment import cluster as module
from hatchery.experiment.project import Project
from hatchery.workflow.jobs import Jobs


@pytest.fixture
def device(repository: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The device of the demo's estimate, with these settings and on a machine with or without a GPU."""

    def of(has_gpu: bool, device: str = "auto", **cluster: Any) -> str:
        monkeypatch.setattr(module, "_has_gpu", lambda: has_gpu)
        project = Project(repository / "config", {"cluster": cluster, "compute": {"device": device}})
        settings = Jobs(project).settings("write_cost", experiment="demo")
        return next(name for name in ("h100", "a100", "cpu") if f'"device":"{name}"' in settings)

    return of


def test_a_machine_without_a_gpu_is_estimated_for_its_processor(device: Any) -> None:
    assert device(has_gpu=False) == "cpu"
    assert device(has_gpu=True) == "h100"


def test_the_configuration_decides_before_the_machine(device: Any) -> None:
    assert device(has_gpu=True, device="cpu") == "cpu"
    assert device(has_gpu=False, device="cuda") == "h100"
    # A login node has no GPU; the nodes have.
    assert device(has_gpu=False, gpus_per_node=8) == "h100"
    assert device(has_gpu=False, planned_device="a100") == "a100"
    assert device(has_gpu=True, planned_device="cpu") == "cpu"
