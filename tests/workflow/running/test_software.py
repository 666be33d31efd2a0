"""Where conda is missing, jobs run in the environment of this shell; the user is told so in one line."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from snakemake.settings.types import DeploymentMethod, DeploymentSettings

from hatchery.workflow.software import choose_software, has_conda

Say = Callable[..., tuple[int, list[str]]]
WITHOUT_CONDA = os.pathsep.join([str(Path(sys.executable).parent), "/usr/bin", "/bin"])


def test_a_profile_that_asks_for_conda_runs_without_it(say: Say, folder: Path) -> None:
    status, lines = say("--software-deployment-method", "conda", "--", "join", PATH=WITHOUT_CONDA)
    assert status == 0
    told = [line for line in lines if "conda" in line]
    assert len(told) == 1 and told[0].startswith("conda is not on PATH: jobs run in the environment of this shell (")


def test_a_dry_run_says_it_too(say: Say) -> None:
    status, lines = say("--dry-run", "--software-deployment-method", "conda", "--", "join", PATH=WITHOUT_CONDA)
    assert status == 0
    assert sum(line.startswith("conda is not on PATH") for line in lines) == 1


def test_conda_is_used_where_it_is(say: Say, folder: Path) -> None:
    (folder / "bin").mkdir()
    conda = folder / "bin/conda"
    conda.write_text("#!/bin/sh\necho conda was asked: $@ >&2; exit 5\n", encoding="utf-8")
    conda.chmod(0o755)
    path = os.pathsep.join([str(conda.parent), os.environ["PATH"]])
    status, lines = say("--software-deployment-method", "conda", "--", "join", PATH=path)
    assert status == 1
    assert any("conda was asked: info --json" in line for line in lines)


@pytest.mark.parametrize(
    ("asked", "left"),
    [
        ({DeploymentMethod.CONDA}, set()),
        ({DeploymentMethod.CONDA, DeploymentMethod.ENV_MODULES}, {DeploymentMethod.ENV_MODULES}),
        # A container has a conda of its own.
        ({DeploymentMethod.CONDA, DeploymentMethod.APPTAINER}, {DeploymentMethod.CONDA, DeploymentMethod.APPTAINER}),
        (set(), set()),
    ],
)
def test_only_conda_outside_of_containers_is_left_out(
    asked: set[DeploymentMethod], left: set[DeploymentMethod]
) -> None:
    settings = DeploymentSettings(deployment_method=frozenset(asked))
    told = choose_software(settings, lambda: False)
    assert set(settings.deployment_method) == left
    assert (told is None) == (asked == left)
    unchanged = DeploymentSettings(deployment_method=frozenset(asked))
    assert choose_software(unchanged, lambda: True) is None
    assert set(unchanged.deployment_method) == asked


def test_conda_may_be_a_function_of_the_shell() -> None:
    assert has_conda(lambda name: None, {"BASH_FUNC_conda%%": "() { :; }"})
    assert not has_conda(lambda name: None, {})
