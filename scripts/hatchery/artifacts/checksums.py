"""Identity of settings and files: canonical JSON and SHA-256."""

import hashlib
import json
from pathlib import Path
from typing import Any


def canonical_json(value: Any) -> str:
    """The one spelling of `value` as JSON: sorted keys, no spaces, no NaN.

    Settings enter Snakemake's parameters only in this form, because Snakemake compares parameters as an unordered
    set and would miss two swapped values otherwise.
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest(value: Any) -> str:
    """SHA-256 (hexadecimal) of the canonical JSON of `value`."""
    return hashlib.sha256(canonical_json(value).encode("utf-8")).hexdigest()


def sha256_file(path: str | Path) -> str:
    """SHA-256 (hexadecimal) of the bytes of the file at `path`."""
    with Path(path).open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()
