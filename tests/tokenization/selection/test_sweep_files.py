"""Every sweep in the configuration becomes settings that the stage accepts."""

import json
from pathlib import Path

import pytest

from hatchery.config.kinds import FILES
from hatchery.config.project import Project
from hatchery.errors import ConfigError
from hatchery.stages.registry import stage_settings
from hatchery.storage.yaml_files import read_yaml
from hatchery.tokenization.selection.settings import SweepSettings
from hatchery.tokenization.selection.table import read_published_selection
from hatchery.typed import build, stage_body, validated

CONFIG = Path(__file__).parents[3] / "config"
SWEEPS = sorted(path.stem for path in (CONFIG / "tokenizer_sweeps").glob("*.yaml"))


@pytest.mark.parametrize("sweep", SWEEPS)
def test_the_stage_accepts_every_sweep(sweep: str) -> None:
    settings = stage_body(json.loads(stage_settings(Project(CONFIG), "select_tokenizer", sweep=sweep)))
    assert build(SweepSettings, settings).name == sweep


@pytest.mark.parametrize("sweep", SWEEPS)
def test_published_names_are_in_the_published_table(sweep: str) -> None:
    block = validated(FILES["tokenizer_sweep"], read_yaml(CONFIG / "tokenizer_sweeps" / f"{sweep}.yaml"), sweep)
    named = {entry["published_as"] for entry in block["types"].values()} - {None}
    assert (block["published"] is None) == (not named)
    if named:
        table = read_published_selection(CONFIG / "published" / "tokenizers" / f"{block['published']}.csv")
        assert named <= {name for name, _ in table}


def test_the_sweep_of_the_study_has_every_size_of_its_table() -> None:
    table = read_published_selection(CONFIG / "published" / "tokenizers" / "tokenizer_selection.csv")
    types = read_yaml(CONFIG / "tokenizer_sweeps" / "reduced_vocabulary.yaml")["types"].values()
    tried = {(entry["published_as"], str(size)) for entry in types for size in entry["sizes"]}
    assert {key for key in table if key[1] != "pretrained" and key[0] != "BNC WordPiece"} <= tried


def test_an_unknown_key_is_named_with_the_nearest() -> None:
    sweep = {"corpus": "demo", "types": {"a": {"definition": {}, "size": [400]}}}
    with pytest.raises(ConfigError, match=r"types\.a\.size: unknown key.*did you mean 'sizes'"):
        validated(FILES["tokenizer_sweep"], sweep, "file")
