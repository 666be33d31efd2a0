"""How long a generated file is, told without generating it."""

from dataclasses import fields
from pathlib import Path

import pytest

from hatchery.artifacts.manifests import read_manifest
from hatchery.raw.settings import EmbeddedSettings


@pytest.mark.parametrize("task", ["glue/acceptability", "glue/entailment", "superglue/wic"])
def test_the_length_of_a_training_file_is_known_without_it(task: str, generated: Path) -> None:
    told = read_manifest(generated / "manifest.json").settings
    settings = EmbeddedSettings(**{field.name: told[field.name] for field in fields(EmbeddedSettings)})
    file = f"{task}.train.jsonl"
    assert (generated / file).read_text(encoding="utf-8").count("\n") == settings.training_rows(file)
