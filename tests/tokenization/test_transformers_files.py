import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from tokenizers import Tokenizer as Backend

from hatchery.artifacts.manifests import read_manifest
from hatchery.runner import run_stage
from hatchery.tokenization.special_tokens import SPECIAL_SETS
from hatchery.tokenization.stages.train_tokenizer import train_tokenizer

NAMES = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")


@pytest.mark.parametrize("name", SPECIAL_SETS)
def test_the_files_beside_a_tokenizer_agree_with_it(
    small: SimpleNamespace, corpus: Path, tmp_path: Path, name: str
) -> None:
    manifest = tmp_path / "manifest.json"
    run_stage(
        train_tokenizer, small.tokenizer_settings(kind="byte_bpe", special_tokens=name), manifest, corpus=[corpus]
    )
    assert {path.name for path in read_manifest(manifest).files()} == set(NAMES)
    backend = Backend.from_file(str(tmp_path / "tokenizer.json"))
    config, roles = (json.loads((tmp_path / file).read_text("utf-8")) for file in NAMES[1:])
    special = SPECIAL_SETS[name]
    assert config["tokenizer_class"] == "PreTrainedTokenizerFast"
    assert isinstance(config["model_max_length"], int)
    # Version 4 of `transformers` adds token types, which no model here takes, where nothing is said.
    assert config["model_input_names"] == ["input_ids", "attention_mask"]
    assert {key: config[key] for key in roles} == roles
    assert backend.token_to_id(roles["mask_token"]) == special.ids[special.mask]
    assert roles["cls_token"] == backend.encode("").tokens[0]
    assert roles["sep_token"] == backend.encode("").tokens[-1]
    named = {token for value in roles.values() for token in ([value] if isinstance(value, str) else value)}
    assert named == set(special.order)
    added = {int(index): token for index, token in config["added_tokens_decoder"].items()}
    assert {index: token["content"] for index, token in added.items()} == dict(enumerate(special.order))
    for token in json.loads(backend.to_str())["added_tokens"]:
        assert added[token.pop("id")] == token


def test_only_roberta_names_begin_and_end_and_only_the_others_have_more_tokens(
    small: SimpleNamespace, corpus: Path, tmp_path: Path
) -> None:
    found = {}
    for name in SPECIAL_SETS:
        settings = small.tokenizer_settings(kind="byte_bpe", special_tokens=name)
        run_stage(train_tokenizer, settings, tmp_path / name / "manifest.json", corpus=[corpus])
        found[name] = json.loads((tmp_path / name / NAMES[2]).read_text("utf-8"))
    assert (found["roberta"]["bos_token"], found["roberta"]["eos_token"]) == ("<s>", "</s>")
    assert "additional_special_tokens" not in found["roberta"]
    assert found["bnc"]["additional_special_tokens"] == ["[PAR]"]
    assert found["babylm"]["additional_special_tokens"] == ["[PAR]", "[TAB]"]
