"""What a stage is told of a block: its keys without names of other blocks and without what is only for people."""

from collections.abc import Mapping
from typing import Any


def without(block: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    """The block without these keys."""
    return {key: value for key, value in block.items() if key not in keys}


def tokenizer_body(block: Mapping[str, Any]) -> dict[str, Any]:
    """A tokenizer as its training is told of it (`TokenizerSettings`), or as one that is taken from a file."""
    if "path" in block:
        return {"imported": True, "vocabulary_size": block["vocabulary_size"]}
    return without(block, "description", "corpus", "corpora")


def suite_body(name: str, block: Mapping[str, Any]) -> dict[str, Any]:
    """A suite as scoring is told of it (`ScoringSettings`); keys of one format are left out in the others."""
    body = without(block, "description", "data", "embedded")
    absent = [key for key in ("columns", "good_line") if body[key] is None]
    return {"suite": name, **without(body, *absent)}


def task_body(name: str, block: Mapping[str, Any]) -> dict[str, Any]:
    """A task as fine-tuning is told of it (`TaskSettings`)."""
    body = without(block, "description", "base", "data", "embedded", "transfer_tasks")
    vocabulary = body["vocabulary"]
    return {"name": name, **body, "vocabulary": None if vocabulary is None else without(vocabulary, "name")}
