"""Settings classes: accepted and refused values, defaults, and the schemas and the page that describe the settings."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pytest
import yaml
from annotated_types import MinLen
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from hatchery.artifacts.yaml_files import read_yaml
from hatchery.errors import ConfigError
from hatchery.experiment.kinds import FILES, FOLDERS
from hatchery.experiment.project import Project
from hatchery.experiment.written_blocks import merged
from hatchery.schemas import PAGE, SCHEMAS, schema_texts, settings_page
from hatchery.settings.base import Settings
from hatchery.settings.fields import OneOfKeys, hints_of, key_paths, members_of, metadata
from hatchery.typed import stage_body, validated
from hatchery.views.paper_tables.layout import PaperLayout


def test_the_body_of_a_slice_has_no_stage_keys() -> None:
    assert stage_body({"stage": "x", "stage_version": 1, "a": 2}) == {"a": 2}


MINIMAL = {
    "corpus": "c",
    "tokenizer": "t",
    "pretraining": {"steps": 1, "batch_size": 2},
    "runs": {"a": {"model": "m"}, "b": {"model": "m", "pretraining": {"optimizer": {"learning_rate": 0.5}}}},
}


def test_defaults_are_filled_at_every_depth() -> None:
    experiment = validated(FILES["experiment"], MINIMAL, "x.yaml")
    assert experiment.pretraining.optimizer.beta2 == 0.98
    assert experiment.runs["a"].seeds == (42,)
    assert experiment.perplexity.mask_probability == 0.15


def test_overrides_are_not_filled_with_defaults() -> None:
    experiment = validated(FILES["experiment"], MINIMAL, "x.yaml")
    assert experiment.runs["b"].pretraining == {"optimizer": {"learning_rate": 0.5}}


def test_siblings_do_not_share_a_default() -> None:
    experiment = validated(FILES["experiment"], MINIMAL, "x.yaml")
    experiment.runs["a"].model_changes["hidden_size"] = 1
    assert experiment.runs["b"].model_changes == {}
    assert validated(FILES["experiment"], MINIMAL, "x.yaml").runs["a"].model_changes == {}


def test_validation_leaves_its_argument_alone() -> None:
    validated(FILES["experiment"], MINIMAL, "x.yaml")
    assert "finetuning" not in MINIMAL


def test_all_problems_are_reported_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        validated(FILES["tokenizer"], {"kind": "bpee", "vocabulary_size": 7, "extra": 1}, "t.yaml")
    assert len(str(caught.value).splitlines()) == 3


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-3", 1e-3),
        ("1.0e+5", 1e5),
        (".5", 0.5),
        ("7", 7),
        ("-70", -70),
        ("0", 0),
        ("no", "no"),
        ("12:30", "12:30"),
        ("~", None),
    ],
)
def test_scalars_mean_what_they_look_like(text: str, value: object, tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(f"key: {text}\n", encoding="utf-8")
    assert read_yaml(path) == {"key": value}


def test_settings_do_not_depend_on_key_order_or_comments(tmp_path: Path, repository: Path) -> None:
    import shutil

    folder = tmp_path / "config"
    shutil.copytree(repository / "config", folder)
    before = Project(folder).experiment("demo")
    path = folder / "experiments/demo.yaml"
    lines = path.read_text(encoding="utf-8").splitlines()
    index = next(i for i, line in enumerate(lines) if line.startswith("  batch_size"))
    lines[index - 1], lines[index] = lines[index], lines[index - 1] + "  # a comment"
    path.write_text("\n".join(lines), encoding="utf-8")
    assert Project(folder).experiment("demo") == before


trees = st.recursive(st.integers(), lambda sub: st.dictionaries(st.sampled_from("abc"), sub, max_size=3), max_leaves=8)
mappings = st.dictionaries(st.sampled_from("abc"), trees, max_size=3)


@given(base=mappings, overrides=mappings)
def test_merging_is_idempotent_and_keeps_what_is_not_overridden(base: dict, overrides: dict) -> None:
    once = merged(base, overrides)
    assert merged(once, overrides) == once
    assert all(once[key] == base[key] for key in base.keys() - overrides.keys())


def test_what_differs_from_a_protocol_is_checked_but_not_filled() -> None:
    document = {**MINIMAL, "finetuning": {"protocol": {"epochs": 3}, "tasks": {"rte": {"batch_size": 4}}}}
    experiment = validated(FILES["experiment"], document, "x.yaml")
    assert experiment.finetuning.protocol == {"epochs": 3}
    assert experiment.finetuning.tasks == {"rte": {"batch_size": 4}}
    document["finetuning"]["tasks"]["rte"] = {"batch_sise": 4}
    with pytest.raises(ConfigError, match=r"tasks\.rte\.batch_sise: unknown key.*did you mean 'batch_size'"):
        validated(FILES["experiment"], document, "x.yaml")


@pytest.mark.parametrize(
    ("document", "beginnings"),
    [
        # The names of other programs.
        (
            {**MINIMAL, "pretraining": {"steps": 1, "batch_size": 2, "optimizer": {"lr": 1}}},
            ["pretraining.optimizer.lr: unknown key; did you mean 'learning_rate'? Allowed are: beta1"],
        ),
        # A key of two other mappings.
        (
            {**MINIMAL, "epochs": 3},
            ["epochs: unknown key here: it belongs under `pretraining.budget` or `pretraining.order`; allowed are: "],
        ),
        # A misspelt key comes before the key that is therefore missing.
        (
            {**{key: value for key, value in MINIMAL.items() if key != "tokenizer"}, "tokeniser": "t"},
            ["tokeniser: unknown key; did you mean 'tokenizer'? Allowed are: acq", "tokenizer: the key is missing"],
        ),
        ({**MINIMAL, "runs": {"a b": {"model": "m"}}}, ["runs: got the name 'a b', expected letters a-z and A-Z"]),
    ],
)
def test_a_key_that_is_unknown_leads_to_the_right_one(document: dict[str, Any], beginnings: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        validated(FILES["experiment"], document, "x.yaml")
    lines = str(caught.value).splitlines()
    assert [line[: len(one) + 8] for line, one in zip(lines, beginnings, strict=True)] == [
        f"x.yaml: {one}" for one in beginnings
    ]


@dataclass(frozen=True)
class _Lists(Settings):
    one: Annotated[tuple[int, ...], MinLen(1)]
    two: Annotated[tuple[int, ...], MinLen(2)]


def test_a_list_that_is_too_short_says_how_many_entries_it_has_and_needs() -> None:
    with pytest.raises(ConfigError) as caught:
        validated(_Lists, {"one": [], "two": [5]}, "x.yaml")
    assert str(caught.value).splitlines() == [
        "x.yaml: one: expected at least 1 entry, got 0",
        "x.yaml: two: expected at least 2 entries, got 1",
    ]


def test_a_missing_key_that_decides_between_classes_is_named() -> None:
    with pytest.raises(ConfigError) as caught:
        validated(PaperLayout, {"paper": "elc_bert", "tables": {"1": {"caption": "c"}}}, "x.yaml")
    assert str(caught.value) == "x.yaml: tables.1.kind: the key is missing"


def test_each_missing_key_is_told_once() -> None:
    with pytest.raises(ConfigError) as caught:
        validated(FILES["experiment"], {}, "x.yaml")
    keys = ("corpus", "pretraining", "tokenizer")
    assert str(caught.value).splitlines() == [f"x.yaml: {key}: the key is missing" for key in keys]


@pytest.mark.parametrize(
    ("document", "given"),
    [
        ({"corpus": "demo"}, "corpus"),
        ({"corpus": "demo", "kind": "bpe", "path": "x.json"}, "corpus and kind and path"),
        ({}, "none of these"),
    ],
)
def test_a_choice_of_keys_says_what_was_written_and_how_each_is_written(document: dict[str, str], given: str) -> None:
    with pytest.raises(ConfigError) as caught:
        validated(FILES["tokenizer"], {"vocabulary_size": 1000, **document}, "x.yaml")
    assert str(caught.value).startswith(f"x.yaml: got {given}, expected exactly one of: `corpus: my_text, kind: wordp")
    assert "(Corpus on whose training split the tokenizer is trained); or `corpora: [german" in str(caught.value)


def test_each_way_of_a_choice_is_written_with_its_keys() -> None:
    def classes(cls: type[OneOfKeys]) -> Iterator[type[OneOfKeys]]:
        yield cls
        for below in cls.__subclasses__():
            yield from classes(below)

    choices = [(group, written) for cls in classes(OneOfKeys) for group, written in getattr(cls, "ONE_OF", {}).items()]
    assert len(choices) > 15
    assert [written for group, written in choices if tuple(yaml.safe_load(f"{{{written}}}")) != group] == []


def test_a_choice_of_values_and_types_is_said_in_words() -> None:
    document = {**MINIMAL, "pretraining": {**MINIMAL["pretraining"], "output_bias": {"weight_scale": []}}}
    with pytest.raises(ConfigError) as caught:
        validated(FILES["experiment"], document, "x.yaml")
    assert str(caught.value) == (
        "x.yaml: pretraining.output_bias.weight_scale: got [], expected own or unit or unit_uniform or centred or "
        "frobenius or a number more than 0"
    )


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
    rate = "| `learning_rate` | number, more than 0 | `0.01` | Peak learning rate. |"
    head = lines.index("### Optimizer")
    assert lines[head + 2] == "Keys below `pretraining.optimizer`." and rate in lines[head : head + 12]


@pytest.mark.parametrize("kind", FOLDERS)
def test_editors_accept_every_shipped_file(kind: str, texts: dict[Path, str], repository: Path) -> None:
    validator = Draft202012Validator(yaml.safe_load(texts[SCHEMAS / f"{kind}.schema.yaml"]))
    for path in sorted((repository / "config" / FOLDERS[kind]).glob("*.yaml")):
        document = read_yaml(path)
        # A file with a base may contain only parts of mandatory blocks.
        if "base" in document and kind in ("task", "experiment"):
            continue
        problems = [error.message for error in validator.iter_errors(document)]
        assert problems == [], path


def test_editors_take_parts_of_analyses_of_a_study_with_a_base_alone(texts: dict[Path, str]) -> None:
    schema = Draft202012Validator(yaml.safe_load(texts[SCHEMAS / "study.schema.yaml"]))
    part = {"analyses": {"types": {"analysis": "tokenizer_sweep"}}}
    assert schema.is_valid({"base": "other", **part}) and schema.is_valid(
        {"base": "other", "analyses": {"types": None}}
    )
    assert schema.is_valid({"experiments": ["demo"]}) and not schema.is_valid({})
    assert not schema.is_valid({"experiments": ["demo"], **part})
    assert not schema.is_valid({"base": "other", "analyses": {"types": {"swep": "demo"}}})


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
