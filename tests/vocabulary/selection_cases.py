"""Words, raw texts and items for the tests of selections."""

import gzip
import json
from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hatchery.artifacts.manifests import Manifest

Select = Callable[..., Manifest]
WORDS = ["the", "cat", "sat", "on", "a", "mat", "is", "big"]


def json_lines(texts: Iterable[str]) -> bytes:
    return gzip.compress("".join(json.dumps({"text": text}) + "\n" for text in texts).encode(), mtime=0)


def items(manifest: Manifest) -> list[dict[str, Any]]:
    return pa.concat_tables([pq.read_table(path) for path in manifest.files(".parquet")]).to_pylist()


def texts(manifest: Manifest) -> list[str]:
    return [item["text"] for item in items(manifest)]
