"""The schema files for editors are what the classes of settings say, and say it of every key."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from hatchery.artifacts.yaml_files import read_yaml
from hatchery.experiment.kinds import FILES, FOLDERS
from hatchery.schemas import PAGE, SCHEMAS, schema_texts, settings_page
from hatchery.settings.base import Settings
from hatchery.settings.fields import hints_of, key_paths, members_of, metadata


@pytest.fixture(scope="module")
def texts() -> dict[Path, str]:
    return schema_texts()


def test_the_schema_files_are_those_of_the_classes(texts: dict[Path, str]) -> None:
    assert {path: path.read_text(encoding="utf-8") for path in SCHEMAS.glob("*")} == texts, "run `make schemas`"


@pytest.mark.parametrize("kind", FILES)
def test_a_schema_is_valid_and_refuses_unknown_keys_and_has_a_sentence_for_every_key(
    kind: str, texts: dict[Path, str]
) -> None:
    schema = yaml.safe_load(texts[SCHEMAS / f"{kind}.schema.yaml"])
    Draft202012Validator.check_schema(schema)
    for rules in objects(schema):
        assert rules["additionalProperties"] is False
        assert [
            key for key, about in rules["properties"].items() if not about.get("description", "").endswith(".")
        ] == []


def objects(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, list):
        for item in value:
            yield from objects(item)
    elif isinstance(value, dict):
        if isinstance(value.get("properties"), dict) and value.get("type") == "object":
            yield value
        for item in value.values():
            yield from objects(item)


def test_the_page_of_all_keys_is_that_of_the_classes() -> None:
    assert PAGE.read_text(encoding="utf-8") == settings_page(), "run `make schemas`"


@pytest.mark.parametrize("kind", FILES)
def test_every_key_has_a_row_with_its_sentence_on_the_page(kind: str) -> None:
    rows = re.findall(r"^\| `(\w+)` \| .+ \| .*\.\)? \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    keys = {path[-1] for cls in members_of(FILES[kind]) for path in key_paths(cls)}
    assert keys and keys <= set(rows)


def test_the_page_says_type_range_default_and_meaning() -> None:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    rate = "| `learning_rate` | number, more than 0 | `0.01` | The peak rate. |"
    head = lines.index("### Optimizer")
    assert lines[head + 2] == "Below `pretraining.optimizer`." and rate in lines[head : head + 12]


@pytest.mark.parametrize("kind", FOLDERS)
def test_editors_accept_every_shipped_file(kind: str, texts: dict[Path, str], repository: Path) -> None:
    validator = Draft202012Validator(yaml.safe_load(texts[SCHEMAS / f"{kind}.schema.yaml"]))
    for path in sorted((repository / "config" / FOLDERS[kind]).glob("*.yaml")):
        document = read_yaml(path)
        if kind in ("task", "experiment") and "base" in document:
            continue
        problems = [error.message for error in validator.iter_errors(document)]
        assert problems == [], path


def test_every_class_inside_settings_is_one_of_settings() -> None:
    def classes(cls: Any) -> Iterator[Any]:
        for below in cls.__subclasses__():
            yield below
            yield from classes(below)

    inner = {
        (cls.__name__, key, member)
        for cls in classes(Settings)
        for key, hint in hints_of(cls).items()
        for member, _about in metadata(hint)
        if hasattr(member, "__dataclass_fields__")
    }
    assert [found for found in inner if not issubclass(found[2], Settings)] == []
