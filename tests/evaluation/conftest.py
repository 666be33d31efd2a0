"""Raw sources that the evaluation tests write themselves."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from hatchery.storage.sources import RawSource, open_source, register_source


@pytest.fixture
def make_source(tmp_path: Path) -> Callable[[dict[str, bytes | str]], RawSource]:
    """Write files into a folder, register it and open it."""

    def make(files: dict[str, bytes | str]) -> RawSource:
        root = tmp_path / "raw"
        for name, content in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
        register_source("raw", root, tmp_path / "source.json")
        return open_source(tmp_path / "source.json")

    return make


@pytest.fixture
def json_lines() -> Callable[[list[dict[str, object]]], str]:
    """Rows as the text of a JSON-lines file."""
    return lambda rows: "".join(json.dumps(row) + "\n" for row in rows)
