"""Sources for the reader tests: a small corpus of the generator, and folders made by a test."""

from collections.abc import Callable
from pathlib import Path

import pytest

from demo.stages.generate_embedded_sources import generate_embedded_sources
from hatchery.artifacts.manifests import stage_run
from hatchery.raw.registration import RawSource
from hatchery.raw.settings import EmbeddedSettings


@pytest.fixture(scope="session")
def embedded_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("embedded")
    with stage_run(folder / "manifest.json", {"stage": "generate_embedded_sources", "stage_version": 1}) as run:
        settings = EmbeddedSettings(seed=3, documents=160, pairs_per_paradigm=4, examples_per_task=8)
        generate_embedded_sources(settings, run)
    return folder


@pytest.fixture
def source_of(make_source: Callable[..., RawSource]) -> Callable[..., RawSource]:
    """As `make_source`, but two underscores in a name become a full stop."""
    return lambda **files: make_source({name.replace("__", "."): content for name, content in files.items()})
