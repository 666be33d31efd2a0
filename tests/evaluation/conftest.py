"""Raw sources and a small pretrained model for the evaluation tests."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from finetuning_cases import sentences

from hatchery.artifacts.manifests import stage_run
from hatchery.modeling.language_model import LanguageModel, initialise_
from hatchery.modeling.ltg.config import LtgBertConfig
from hatchery.modeling.store import save_model
from hatchery.raw.registration import RawSource
from hatchery.tokenization.tokenizer_file import Tokenizer, load_tokenizer
from hatchery.tokenization.trainer import train
from hatchery.tokenization.trainer_settings import TokenizerSettings


@pytest.fixture
def json_lines() -> Callable[[list[dict[str, object]]], str]:
    """Rows as the text of a JSON-lines file."""
    return lambda rows: "".join(json.dumps(row) + "\n" for row in rows)


@pytest.fixture
def source(make_source: Callable[..., RawSource], json_lines: Callable[..., str]) -> RawSource:
    """A source with training and validation sentences."""
    return make_source({"train.jsonl": json_lines(sentences(60, 0)), "validation.jsonl": json_lines(sentences(40, 1))})


@pytest.fixture(scope="session")
def small_model() -> Callable[..., LanguageModel]:
    """Make an initialised model of narrow layers for a vocabulary size."""

    def make(vocabulary_size: int, causal: bool = False, layers: int = 2) -> LanguageModel:
        config = LtgBertConfig(
            vocab_size=vocabulary_size,
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=layers,
            num_attention_heads=2,
            position_bucket_size=8,
            max_position_embeddings=64,
        )
        model = LanguageModel(config, causal=causal)
        initialise_(model, seed=0)
        return model

    return make


@pytest.fixture(scope="session")
def make_model_manifest(
    tmp_path_factory: pytest.TempPathFactory, small_model: Callable[..., LanguageModel]
) -> Callable[..., Path]:
    """Write a small model with random weights like pretraining does; return its manifest, with `more` settings."""

    def make(causal: bool = False, layers: int = 2, **more: Any) -> Path:
        folder = tmp_path_factory.mktemp("pretrained")
        lines = ["The old dogs near the house sleep .", "A cat chases the dogs .", "She likes old houses and sleeps ."]
        tokenizer = train(iter(lines * 20), TokenizerSettings("wordpiece", vocabulary_size=320, min_frequency=2))
        tokenizer.save(str(folder / "tokenizer.json"))
        model = small_model(load_tokenizer(folder / "tokenizer.json").vocabulary_size, causal, layers)
        with stage_run(folder / "manifest.json", {"stage": "pretrain", "stage_version": 1, **more}) as run:
            for path in [*save_model(folder, model), folder / "tokenizer.json"]:
                run.add_output(path)
        return folder / "manifest.json"

    return make


@pytest.fixture(scope="session")
def model_manifest(make_model_manifest: Callable[..., Path]) -> Path:
    """The manifest of a small masked model with random weights."""
    return make_model_manifest()


@pytest.fixture(scope="session")
def tokenizer(model_manifest: Path) -> Tokenizer:
    """The tokenizer of `model_manifest`; it reads special tokens in a text as plain text."""
    return load_tokenizer(model_manifest.parent / "tokenizer.json", recognise=())


@pytest.fixture
def compiled_graphs(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """Yield the graphs that torch.compile makes. The graphs run uncompiled; a graph break is an error.

    Making a graph takes a second, so the models of these tests have one layer.
    """
    graphs: list[Any] = []
    real = torch.compile

    def backend(graph: Any, _: Any) -> Any:
        graphs.append(graph)
        return graph

    def compile_(function: Any, **options: Any) -> Any:
        return real(function, **{**options, "backend": backend, "fullgraph": True})

    monkeypatch.setattr(torch, "compile", compile_)
    torch.compiler.reset()
    yield graphs
    torch.compiler.reset()
