"""Tiny models of ours and of the library transformers, each imported or loaded once for all tests."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from baseline_cases import ARCHITECTURES, build, imported

from hatchery.evaluation.baselines.encoder import BaselineModel
from hatchery.evaluation.baselines.loading import BaselineTokenizer, load_folder
from hatchery.evaluation.settings import BaselineSettings


@pytest.fixture(scope="session")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return the folder of a family's model in the format of the library transformers."""
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
    """Return the manifest of a family's imported model."""
    made: dict[str, Path] = {}

    def get(name: str) -> Path:
        if name not in made:
            made[name] = imported(stored(name), ARCHITECTURES[name], tmp_path_factory.mktemp(f"imported_{name}"))
        return made[name]

    return get


@pytest.fixture(scope="module")
def model(golden_directory: Path) -> Callable[[str], BaselineModel]:
    """Return a model of tests/golden/babylm_2026 by folder and scoring backend."""
    loaded: dict[str, BaselineModel] = {}

    def get(backend: str) -> BaselineModel:
        if backend not in loaded:
            name, way = backend.split("/")
            folder = golden_directory / "babylm_2026" / "models" / name
            architecture = "causal" if way == "causal" else "masked"
            network, tokenizer = load_folder(folder, architecture)
            settings = BaselineSettings(architecture, predicts_next=way == "mntp")
            its = BaselineTokenizer(tokenizer, architecture, name)
            loaded[backend] = BaselineModel(network, its, settings, torch.device("cpu"), template=True)
        return loaded[backend]

    return get


@pytest.fixture(scope="module")
def made(make_model_manifest: Callable[..., Path], manifest_of: Callable[[str], Path]) -> Callable[[str], Path]:
    """Return the manifest of a model by name: the task of a model of ours, or the family of an imported model."""
    ours: dict[str, dict[str, Any]] = {"masked": {}, "causal": {"causal": True, "objective": {"task": "causal"}}}
    ours["hybrid"] = {"objective": {"task": "hybrid"}}
    found: dict[str, Path] = {}

    def get(name: str) -> Path:
        if name not in found:
            found[name] = make_model_manifest(**ours[name]) if name in ours else manifest_of(name)
        return found[name]

    return get
