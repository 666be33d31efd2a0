"""How long a generated file is, told without generating it."""

import json
from pathlib import Path

import pytest

from hatchery.embedded.settings import EmbeddedSettings


@pytest.mark.parametrize(
    "file", ["glue/acceptability.train.jsonl", "glue/entailment.train.jsonl", "superglue/wic.train.jsonl"]
)
def test_the_length_of_a_training_file_is_known_without_it(file: str, generated: Path) -> None:
    settings = EmbeddedSettings(
        **{
            key: value
            for key, value in json.loads((generated / "manifest.json").read_text(encoding="utf-8"))["settings"].items()
            if key in EmbeddedSettings.__dataclass_fields__
        }
    )
    rows = (generated / file).read_text(encoding="utf-8").count("\n")
    assert rows == settings.training_rows(file)
