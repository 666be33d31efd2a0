"""A run of the generator that the tests of this folder share."""

from pathlib import Path

import pytest

from demo.stages.generate_embedded_sources import generate_embedded_sources
from hatchery.artifacts.manifests import stage_run
from hatchery.raw.settings import EmbeddedSettings


@pytest.fixture(scope="session")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("generated")
    settings = EmbeddedSettings(
        seed=0, documents=600, pairs_per_paradigm=40, examples_per_task=120, examples_per_suite_task=60
    )
    with stage_run(folder / "manifest.json", vars(settings)) as run:
        generate_embedded_sources(settings, run)
    return folder
