"""Defaults live in the classes of settings and are never shared between siblings; YAML reads as its users expect."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from hatchery.artifacts.yaml_files import read_yaml
from hatchery.errors import ConfigError
from hatchery.experiment.kinds import FILES
from hatchery.experiment.project import Project
from hatchery.experiment.written_blocks import merged
from hatchery.settings.fields import OneOfKeys
from hatchery.typed import validated

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
    [("1e-3", 1e-3), ("1.0e+5", 1e5), (".5", 0.5), ("7", 7), ("007", 7), ("no", "no"), ("12:30", "12:30"), ("~", None)],
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
    assert "(Corpus whose training documents it is trained on); or `corpora: [german" in str(caught.value)


def test_each_way_of_a_choice_is_written_with_its_keys() -> None:
    def classes(cls: type[OneOfKeys]) -> Iterator[type[OneOfKeys]]:
        yield cls
        for below in cls.__subclasses__():
            yield from classes(below)

    choices = [(group, written) for cls in classes(OneOfKeys) for group, written in getattr(cls, "ONE_OF", {}).items()]
    assert len(choices) > 15
    assert [written for group, written in choices if tuple(yaml.safe_load(f"{{{written}}}")) != group] == []


def test_a_number_without_end_is_refused_also_on_the_command_line() -> None:
    with pytest.raises(ConfigError, match=r"cluster\.planned_mfu: got inf, expected a number"):
        validated(FILES["config"], {"cluster": {"planned_mfu": float("inf")}}, "config.yaml")


def test_a_choice_of_values_and_types_is_said_in_words() -> None:
    document = {**MINIMAL, "pretraining": {**MINIMAL["pretraining"], "output_bias": {"weight_scale": []}}}
    with pytest.raises(ConfigError) as caught:
        validated(FILES["experiment"], document, "x.yaml")
    assert str(caught.value) == (
        "x.yaml: pretraining.output_bias.weight_scale: got [], expected own or unit or unit_uniform or centred or "
        "frobenius or a number more than 0"
    )
