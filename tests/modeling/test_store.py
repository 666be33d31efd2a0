"""The model folder: exact round trips, and a message of one line for every fault of a folder."""

import dataclasses
import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from hatchery.errors import ConfigError, ModelError
from hatchery.modeling.exported_folder import load_exported
from hatchery.modeling.families import FAMILIES, model_config, with_token_ids
from hatchery.modeling.store import load_config, load_language_model, save_model
from hatchery.tokenization.special_tokens import SPECIAL_SETS


@pytest.fixture
def folder(tmp_path, make_model):
    save_model(tmp_path, make_model(layer_weighting="weighted_output"))
    return tmp_path


def replace_tensors(folder, change) -> None:
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    save_file(tensors, folder / "model.safetensors")


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"layer_weighting": "weighted_output"},
        {"family": "gpt_bert"},
        {"family": "modern", "value_residual": True, "head_gate": True, "unet_skips": True},
        {"family": "roberta"},
        {"family": "roberta", "embedding_size": 16, "tie_word_embeddings": False, "extra_vocabulary_rows": 3},
        {"family": "roberta", "vocabulary_bias": False, "sentence_pair_head": True},
    ],
)
def test_a_saved_model_comes_back_unchanged(tmp_path, make_model, batch, changes):
    model = make_model(disturbed=0.1, **changes)
    paths = save_model(tmp_path, model)
    assert sorted(path.name for path in paths) == sorted(path.name for path in tmp_path.iterdir())
    loaded = load_language_model(tmp_path)
    assert loaded.config == model.config
    assert torch.equal(loaded(*batch).loss_sum, model(*batch).loss_sum)
    assert torch.equal(loaded.encoder(*batch[:2])[-1], model.encoder(*batch[:2])[-1])
    loaded(*batch).loss_sum.backward()


@pytest.mark.parametrize(
    ("heads", "causal"),
    [(("ForMaskedLM",), False), (("ForCausalLM",), True), (("ForMaskedLM", "ForCausalLM"), False)],
)
def test_an_exported_model_attends_to_later_tokens_unless_its_only_head_is_causal(
    tmp_path, make_model, batch, heads, causal
):
    model = make_model(family="gpt_bert", disturbed=0.1, causal=causal)
    values = {**model.config.to_dict(), "model_type": "hatchery_gpt_bert", "torch_dtype": "float32"}
    values["architectures"] = [f"HatcheryGptBert{head}" for head in heads]
    # The base class of an exported model is named `model`; its head is outside of this class.
    tensors = {name.replace("encoder.", "model.encoder.", 1): value for name, value in model.state_dict().items()}
    save_file(tensors, tmp_path / "model.safetensors")
    found = load_exported(tmp_path, values)
    assert found.heads == heads and found.network.causal == causal
    assert torch.equal(found.network.encoder(*batch[:2])[-1], model.encoder(*batch[:2])[-1])
    assert torch.equal(found.network(*batch).loss_sum, model(*batch).loss_sum)


def test_weights_that_are_stored_in_half_precision_are_read_in_full_precision(folder):
    halves = {name: tensor.half() for name, tensor in load_file(folder / "model.safetensors").items()}
    replace_tensors(folder, lambda tensors: tensors.update(halves))
    found = load_language_model(folder).state_dict()
    assert {tensor.dtype for tensor in found.values()} == {torch.float32}
    assert all(torch.equal(found[name], tensor.float()) for name, tensor in halves.items())


def test_loading_draws_no_values_only_to_overwrite_them(folder, monkeypatch):
    for name in ("normal_", "uniform_"):
        monkeypatch.setattr(torch.Tensor, name, None)
    load_language_model(folder)


def test_the_tied_matrix_is_stored_once(folder):
    tensors = load_file(folder / "model.safetensors")
    assert [name for name, tensor in tensors.items() if tensor.shape[0] == 61 and tensor.ndim == 2] == [
        "encoder.embedding.word_embedding.weight"
    ]


def test_saving_twice_gives_the_same_bytes(tmp_path, make_model):
    for name in ("a", "b"):
        save_model(tmp_path / name, make_model())
    for file in ("model.safetensors", "config.json"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


@pytest.mark.parametrize("file", ["model.safetensors", "config.json"])
def test_a_missing_file_is_named(folder, file):
    (folder / file).unlink()
    with pytest.raises(ModelError, match=rf"{file}.*missing"):
        load_language_model(folder)


@pytest.mark.parametrize("file", ["model.safetensors", "config.json"])
@pytest.mark.parametrize("damage", ["truncated", "garbage", "empty", "huge header", "a list"])
def test_a_damaged_file_is_named(folder, file, damage):
    content = (folder / file).read_bytes()
    damaged = {
        "truncated": content[: len(content) // 2],
        "garbage": b"\xfe\xed" * 50,
        "empty": b"",
        "huge header": b"\xff" * 7 + b"\x7f" + content,
        "a list": b"[]",
    }
    (folder / file).write_bytes(damaged[damage])
    with pytest.raises(ModelError, match=file) as caught:
        load_language_model(folder)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda tensors: tensors.pop("head.linear.bias"), r"lacks the tensor head\.linear\.bias"),
        (lambda tensors: tensors.update(extra=torch.zeros(2)), "contains the tensor extra"),
        (lambda tensors: tensors.update({"head.linear.bias": torch.zeros(23)}), r"shape \(23,\).*\(24,\)"),
        (lambda tensors: tensors.update({"head.linear.bias": torch.zeros(24).int()}), "floating-point"),
    ],
)
def test_weights_that_do_not_fit_the_configuration_are_named(folder, change, message):
    replace_tensors(folder, change)
    with pytest.raises(ModelError, match=rf"model\.safetensors.*{message}"):
        load_language_model(folder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hidden_size": 25}, r"expected a divisor of hidden_size \(25\)"),
        ({"unheard_of": 1}, "unheard_of"),
    ],
)
def test_an_impossible_configuration_file_is_named(folder, change, message):
    values = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**values, **change}))
    with pytest.raises(ModelError, match=rf"config\.json.*{message}"):
        load_config(folder)


IMPOSSIBLE = {
    "ltg": [
        ({"num_attention_heads": 5}, r"num_attention_heads: got 5, expected a divisor of hidden_size \(24\)"),
        ({"hidden_dropout_prob": 1.0}, "hidden_dropout_prob: got 1.0"),
        (
            {"block_norm_affine": True},
            "block_norm_affine: got true, expected null, because `normalisation: normformer`",
        ),
        (
            {"layer_weighting": "zero", "residual_scaling": True},
            "residual_scaling: got true, expected false, because layers with the layer_weighting zero",
        ),
    ],
    "roberta": [
        (
            {"tie_word_embeddings": True, "embedding_size": 16},
            "tie_word_embeddings: got true, expected false with embedding_size 16",
        ),
        ({"pad_token_id": 61}, r"pad_token_id: got 61, expected an id below vocab_size \(61\)"),
    ],
    "encoder_decoder": [
        ({"layer_weighting": "zero"}, "layer_weighting: got 'zero', expected none"),
    ],
}


@pytest.mark.parametrize(
    ("family", "changes", "message"),
    [(family, *case) for family, cases in IMPOSSIBLE.items() for case in cases],
)
def test_a_configuration_refuses_impossible_values(make_model, family, changes, message):
    with pytest.raises(ConfigError, match=message):
        make_model(family=family, **changes)
    # The configuration classes of an exported model are built without the validation of the settings.
    with pytest.raises(ConfigError, match=message):
        dataclasses.replace(make_model(family=family).config, **changes)


@pytest.mark.parametrize(
    ("family", "changes", "limit"),
    [
        ("ltg", {}, None),
        ("ltg", {"position_embedding": "absolute"}, 64),
        ("gpt_bert", {}, None),
        ("encoder_decoder", {}, None),
        ("modern", {}, 64),
        ("roberta", {}, 64),
    ],
)
def test_inputs_are_limited_where_positions_are_not_relative(make_model, family, changes, limit):
    assert make_model(family=family, **changes).config.position_limit == limit


def test_models_know_the_special_tokens_that_they_read_by_the_ids_of_the_tokenizer():
    special = SPECIAL_SETS["babylm"]
    found = {family: with_token_ids({"family": family, "hidden_size": 24}, special) for family in FAMILIES}
    own = {
        family: {key: value for key, value in values.items() if "token_id" in key} for family, values in found.items()
    }
    assert all(values["hidden_size"] == 24 for values in found.values())
    assert own.pop("roberta") == {"pad_token_id": 3}
    assert own.pop("encoder_decoder") == {"pad_token_id": 3, "cls_token_id": 1, "sep_token_id": 2}
    assert not any(own.values()) and with_token_ids({}, special) == {}


def test_a_configuration_survives_the_round_trip_through_a_dictionary(make_model):
    config = make_model(layer_weighting="zero", position_head_layout="bnc").config
    assert model_config(json.loads(json.dumps(config.to_dict()))) == config
    # Configurations of models without this later setting have kept their content.
    for depth in (0.0, 0.1):
        modern = make_model(family="modern", stochastic_depth=depth).config.to_dict()
        assert modern.get("stochastic_depth") == (depth or None)
    with pytest.raises(ConfigError, match=r"model\.hidden_sise"):
        model_config({**config.to_dict(), "hidden_sise": 3})
