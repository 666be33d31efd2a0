"""Sources, vocabularies and selections made by a test."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from hatchery.artifacts.manifests import Manifest, read_manifest, stage_run
from hatchery.corpora.raw_texts import RawTextOptions
from hatchery.raw.obtain import register_settings
from hatchery.vocabulary.settings import SelectionSettings, VocabularySettings
from hatchery.vocabulary.stages.build_vocabulary import build_vocabulary
from hatchery.vocabulary.stages.select_text import select_text

Files = dict[str, bytes | str]


@pytest.fixture
def register(tmp_path: Path) -> Callable[[str, Files | Path], Path]:
    """Return a function that registers files (name to content), or the files at a path, and returns the manifest."""

    def make(name: str, files: Files | Path) -> Path:
        root = files if isinstance(files, Path) else tmp_path / f"raw_{name}"
        if not isinstance(files, Path):
            for file, content in files.items():
                path = root / file
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content if isinstance(content, bytes) else content.encode())
        settings = {"name": name, "path": str(root)}
        register_settings(settings, tmp_path / f"{name}.json", tmp_path / "fetched")
        return tmp_path / f"{name}.json"

    return make


@pytest.fixture
def build() -> Callable[..., Path]:
    """Return a function that builds a vocabulary from the manifests of source, dictionary and released list."""

    def make(
        folder: Path, source: Path, dictionary: Path | None = None, released: Path | None = None, **changes: Any
    ) -> Path:
        settings: dict[str, Any] = {
            "kind": "transcripts",
            "reading": "corrected",
            "files": ("*.csv",),
            "encoding": "utf-8",
            "appended_words": (),
            "word_column": "word",
            "frequency_column": "frequency",
        }
        with stage_run(folder / "manifest.json", {}) as run:
            build_vocabulary(VocabularySettings(**{**settings, **changes}), source, dictionary, released, run)
        return folder

    return make


@pytest.fixture
def vocabulary_of(
    tmp_path: Path, register: Callable[..., Path], build: Callable[..., Path]
) -> Callable[[Iterable[str]], Path]:
    """Return a function that builds a vocabulary of the given words and returns its manifest."""

    def make(words: Iterable[str]) -> Path:
        source = register("list", {"list.csv": "word,frequency\n" + "".join(f"{word},1\n" for word in words)})
        return build(tmp_path / "vocabulary", source, kind="word_list") / "manifest.json"

    return make


@pytest.fixture
def select(
    tmp_path: Path, register: Callable[..., Path], vocabulary_of: Callable[..., Path]
) -> Callable[..., Manifest]:
    """Return a function that selects from files the texts of known words, in a subfolder of the test's folder."""

    def run_selection(
        files: Files,
        words: Iterable[str],
        folder: str = "out",
        workers: int = 1,
        model: Path | None = None,
        **changes: Any,
    ) -> Manifest:
        settings: dict[str, Any] = {
            "sentence_model": None if model is None else "punkt",
            "name": "selection",
            "options": RawTextOptions("json_lines"),
            "level": "sentences",
            "reading": "corrected",
            "lower_case": True,
            "rows_per_shard": 1000,
            "minimum_counted_words": 3,
        }
        source, vocabulary = register("pages", files), vocabulary_of(words)
        output = tmp_path / folder / "manifest.json"
        with stage_run(output, {}) as run:
            select_text(SelectionSettings(**{**settings, **changes}), source, vocabulary, run, model, workers)
        return read_manifest(output)

    return run_selection
