"""Held-out text for perplexity, and models as pretraining writes them."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from perplexity_cases import OBJECTIVE, ModelMaker, Text, documents

from hatchery.artifacts.manifests import read_manifest, stage_run
from hatchery.modeling.language_model import LanguageModel
from hatchery.modeling.store import save_model


@pytest.fixture(scope="session")
def text(tmp_path_factory: pytest.TempPathFactory) -> Text:
    return Text(
        tmp_path_factory.mktemp("text"), 300, {"train": documents(20), "dev": documents(60), "test": documents(25)}
    )


@pytest.fixture
def make_model(text: Text, small_model: Callable[..., LanguageModel], tmp_path: Path) -> ModelMaker:
    """Write a model as pretraining writes it, and return its manifest."""

    def make(
        name: str = "model",
        objective: Any = OBJECTIVE,
        damaged: bool = False,
        tokenizer: Any = None,
        biased: bool = False,
        layers: int = 2,
    ) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        tokenizer = tokenizer or text.tokenizer
        causal = (objective or {}).get("task") == "causal"
        model = small_model(int(read_manifest(text.tokens).measures["vocabulary_size"]), causal, layers)
        if biased:
            with torch.no_grad():
                bias = model.output_layer[1]
                bias.copy_(torch.linspace(-3.0, 2.0, len(bias)))
        if damaged:
            with torch.no_grad():
                model.encoder.word_embedding.weight[:] = math.nan
        settings = {"stage": "pretrain", "stage_version": 1, **({} if objective is None else {"objective": objective})}
        inputs = {"tokens": text.tokens, "tokenizer": tokenizer}
        with stage_run(folder / "manifest.json", settings, inputs) as run:
            for path in save_model(folder, model):
                run.add_output(path)
            (folder / "tokenizer.json").write_bytes(text.tokenizer.with_name("tokenizer.json").read_bytes())
            run.add_output(folder / "tokenizer.json")
        return folder / "manifest.json"

    return make
