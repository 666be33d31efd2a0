"""Tiny models of others, imported once for all tests."""

from collections.abc import Callable
from pathlib import Path

import pytest
from baseline_cases import ARCHITECTURES, build, imported


@pytest.fixture(scope="session")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a model of a family, as the library stores it."""
    made: dict[str, Path] = {}

    def get(name: str) -> Path:
        if name not in made:
            made[name] = tmp_path_factory.mktemp(name) / "model"
            for part in build(name):
                part.save_pretrained(made[name])
        return made[name]

    return get


@pytest.fixture(scope="session")
def manifest_of(stored: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The manifest of an imported model of a family."""
    made: dict[str, Path] = {}

    def get(name: str) -> Path:
        if name not in made:
            made[name] = imported(stored(name), ARCHITECTURES[name], tmp_path_factory.mktemp(f"imported_{name}"))
        return made[name]

    return get
