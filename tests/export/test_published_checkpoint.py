"""Checkpoints under the authors' names: golden models keep their outputs, malicious files are refused in one line."""

import argparse
import json
import os
import pickle
import sys
import zipfile

import forked
import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from hatchery.artifacts.manifests import read_manifest
from hatchery.errors import HatcheryError, ModelError
from hatchery.evaluation.runtime import load_pretrained
from hatchery.export.published_checkpoint import (
    checkpoint_config,
    import_checkpoint,
    load_published,
    under_training_names,
)
from hatchery.export.published_weights import read_weights
from hatchery.modeling.gpt_bert.published_names import published_name
from hatchery.modeling.ltg.published_names import to_published
from hatchery.modeling.store import load_language_model

LTG_BERT = "ltg_bert/tiny_eps1e-5"
CONFIG = {
    "vocab_size": 340,
    "hidden_size": 24,
    "intermediate_size": 40,
    "num_hidden_layers": 3,
    "num_attention_heads": 3,
    "max_position_embeddings": 64,
    "position_bucket_size": 8,
}


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**CONFIG, "hidden_act": "gelu", "pad_token_id": 4}))
    return path


@pytest.fixture
def published(pretrained):
    """Return the state dict of a variant under the authors' names."""

    def make(variant):
        model = load_language_model(pretrained(variant).parent)
        state = to_published(model.state_dict(), model.encoder.relative_positions.rows(64))
        return {name: tensor.clone() for name, tensor in state.items()}

    return make


def save(state, path, kind):
    path = path.with_suffix(kind)
    if kind == ".safetensors":
        save_file({name: tensor.contiguous() for name, tensor in state.items()}, path)
    elif kind == ".npz":
        np.savez(path, **{name: tensor.numpy() for name, tensor in state.items()})
    else:
        torch.save(state, path)
    return path


@pytest.fixture
def attempt(published, config, tokenizers, tmp_path):
    """Return a function that imports a state dict of the plain LTG-BERT after `change` and returns the manifest."""

    def run(change=lambda state: state, *, variant="ltg", kind=".bin", **choices):
        path = save(change(published(variant)), tmp_path / "weights", kind)
        output = tmp_path / "imported" / "manifest.json"
        import_checkpoint(path, config, tokenizers["ltg"], output, **{"position_head_layout": "babylm", **choices})
        return output

    return run


@pytest.mark.parametrize(
    ("path", "outputs", "choices"),
    [
        (LTG_BERT, LTG_BERT, {"position_head_layout": "bnc"}),
        (LTG_BERT, f"{LTG_BERT}.babylm_outputs", {"position_head_layout": "babylm"}),
        ("elc_bert/base", "elc_bert/base", {"layer_weighting": "biased"}),
        ("elc_bert/zero", "elc_bert/zero", {"layer_weighting": "zero"}),
    ],
)
@torch.no_grad()
def test_a_golden_model_comes_in_with_its_logits(golden_directory, tmp_path, tokenizers, path, outputs, choices):
    facts = json.loads((golden_directory / f"{path}.json").read_text())["config"]
    arrays = np.load(golden_directory / f"{path}.npz")
    # The vocabulary size does not fit the test's tokenizer, but only the weights of these models matter here.
    config = tmp_path / "config.json"
    config.write_text(json.dumps(facts))
    with pytest.raises(ModelError, match=r"has 309 entries, but the model of .* only has"):
        import_checkpoint(golden_directory / f"{path}.npz", config, tokenizers["ltg"], tmp_path / "m.json", **choices)
    state = read_weights(golden_directory / f"{path}.npz")
    model = load_published(state, checkpoint_config(state, facts, path, **choices), path).eval()
    ids = torch.from_numpy(arrays["input_ids"]).t().contiguous()
    hidden = model.encoder(ids, ~torch.from_numpy(arrays["attention_mask"]))[-1]
    expected = torch.from_numpy(np.load(golden_directory / f"{outputs}.npz")["logits"]).transpose(0, 1)
    torch.testing.assert_close(model.logits_at(hidden), expected, atol=2e-5, rtol=0)


WRAPPERS = {
    "training": lambda name: name,
    "organisers": lambda name: (
        name.replace("classifier.", "lm_head.")
        if name.startswith("classifier.")
        else f"model.{name.removeprefix('transformer.')}"
    ),
    "keeps names": lambda name: name if name.startswith("classifier.") else f"model.{name}",
}


@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize("kind", ["model_gate_dwa", "model_plain"])
@torch.no_grad()
def test_a_gpt_bert_comes_in_with_its_logits_under_the_names_of_every_wrapper(golden_directory, kind, wrapper):
    folder = golden_directory / "gpt_bert" / kind
    facts = json.loads((folder / "info.json").read_text())["config"]
    weights = read_weights(folder / "weights.npz")
    state = under_training_names({WRAPPERS[wrapper](name): tensor for name, tensor in weights.items()})
    config = checkpoint_config(state, facts, kind)
    assert (config.family, config.layer_weighting, config.attention_gate) == (
        ("gpt_bert", "unrestricted", True) if kind == "model_gate_dwa" else ("gpt_bert", "none", False)
    )
    model = load_published(state, config, kind).eval()
    arrays = np.load(folder / "b_block_diagonal.npz")
    ids, mask = torch.from_numpy(arrays["input_ids"]).t().contiguous(), ~torch.from_numpy(arrays["attention_mask"])
    expected = torch.from_numpy(arrays["logits"]).transpose(0, 1)
    torch.testing.assert_close(model.logits_at(model.encoder(ids, mask)[-1]), expected, atol=2e-5, rtol=0)
    for name in model.state_dict():
        assert published_name(name, config.attention_gate) in weights


def test_a_choice_or_a_tensor_that_gpt_bert_does_not_have_is_told(golden_directory):
    folder = golden_directory / "gpt_bert" / "model_gate_dwa"
    facts = json.loads((folder / "info.json").read_text())["config"]
    state = read_weights(folder / "weights.npz")
    with pytest.raises(
        ModelError, match="position_head_layout: got 'bnc', but ELC-BERT and GPT-BERT only have the layout 'babylm'"
    ):
        checkpoint_config(state, facts, "w", position_head_layout="bnc")
    config = checkpoint_config(state, facts, "w")
    del state["transformer.dwa_modules.alphas.2"]
    with pytest.raises(ModelError, match=r"w: lacks the tensor transformer\.dwa_modules\.alphas\.2"):
        load_published(state, config, "w")


@pytest.mark.parametrize("kind", [".bin", ".pt", ".safetensors", ".npz"])
def test_every_kind_of_file_gives_a_model_that_evaluation_reads(attempt, pretrained, kind):
    model, tokenizer = load_pretrained(attempt(kind=kind))
    expected = load_language_model(pretrained("ltg").parent).state_dict()
    assert tokenizer.mask_id == 4
    assert all(torch.equal(tensor, expected[name]) for name, tensor in model.state_dict().items())


def test_a_checkpoint_of_the_training_loop_is_read(attempt, pretrained):
    def wrap(state):
        parallel = {f"module.{name}": tensor for name, tensor in state.items()}
        return {"model": parallel, "optimizer": {"state": {}}, "global_step": 7, "args": argparse.Namespace(seed=42)}

    model, _ = load_pretrained(attempt(wrap))
    expected = load_language_model(pretrained("ltg").parent).state_dict()
    assert all(torch.equal(tensor, expected[name]) for name, tensor in model.state_dict().items())


@pytest.mark.parametrize(
    ("variant", "choices", "expected"),
    [
        ("ltg", {"position_head_layout": "bnc"}, {"position_head_layout": "bnc", "head_dropout": "before_norm"}),
        ("ltg", {}, {"layer_weighting": "none", "head_dropout": "after_norm"}),
        ("elc_biased", {"layer_weighting": "biased"}, {"layer_weighting": "biased"}),
        ("elc_biased", {"layer_weighting": "normalized"}, {"layer_weighting": "normalized"}),
        ("elc_weighted_output", {"position_head_layout": None}, {"layer_weighting": "weighted_output"}),
        ("bnc_layout_with_pair_head", {"position_head_layout": "bnc"}, {"sentence_pair_head": True}),
    ],
)
def test_what_the_tensors_tell_is_detected(attempt, variant, choices, expected):
    model, _ = load_pretrained(output := attempt(variant=variant, **choices))
    assert {key: getattr(model.config, key) for key in expected} == expected
    # The manifest states how the file was interpreted, also if the user did not choose.
    manifest = read_manifest(output)
    recorded = {key: getattr(model.config, key) for key in ("family", "layer_weighting", "position_head_layout")}
    assert recorded.items() <= manifest.settings.items()
    assert manifest.measures["sentence_pair_head"] == (variant == "bnc_layout_with_pair_head")
    assert manifest.measures["parameters"] == sum(tensor.numel() for tensor in model.parameters())


def test_probabilities_of_dropout_are_those_of_the_published_configuration(published):
    given = {"hidden_dropout_prob": 0.25, "attention_probs_dropout_prob": 0.375, "layer_norm_eps": 1e-3}
    found = checkpoint_config(published("ltg"), {**CONFIG, **given}, "w", position_head_layout="babylm")
    assert {key: getattr(found, key) for key in given} == given


@pytest.mark.parametrize(
    ("variant", "choices", "complaint"),
    [
        ("ltg", {"position_head_layout": None}, "position_head_layout: got null, expected one of bnc, babylm: the BNC"),
        ("ltg", {"layer_weighting": "zero"}, "layer_weighting: got 'zero', but the tensor names are those of 'none'"),
        ("elc_zero", {}, "layer_weighting: got null, expected one of biased, zero, normalized"),
    ],
)
def test_a_choice_that_is_missing_or_contradicts_is_told(attempt, variant, choices, complaint):
    with pytest.raises(ModelError, match=complaint):
        attempt(variant=variant, **choices)


def replaced(name, make):
    return lambda state: {**state, name: make(state[name])}


VALUE = "transformer.layers.1.attention.in_proj_v.weight"


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda s: {k: v for k, v in s.items() if k != VALUE}, f"lacks the tensor {VALUE}"),
        (replaced(VALUE, lambda t: t[:-1]), rf"tensor {VALUE} has the shape \(23, 24\); the configuration requires"),
        (replaced(VALUE, lambda t: t.long()), f"tensor {VALUE} holds torch.int64"),
        (replaced(VALUE, lambda t: t * float("nan")), f"tensor {VALUE} contains numbers that are not finite"),
        (replaced(VALUE, lambda t: t.clamp(max=-1) / 0), f"tensor {VALUE} contains numbers that are not finite"),
        (
            lambda s: {**s, "extra.weight": torch.zeros(2)},
            "extra.weight: no tensor of Hatchery's model has this published name, expected the name of a tensor in the "
            "published code",
        ),
        (
            lambda s: {**s, "transformer.layers.3.attention.in_proj_v.bias": torch.zeros(24)},
            r"contains the tensor transformer\.layers\.3\.attention\.in_proj_v\.bias, which the configuration does",
        ),
        (replaced("classifier.nonlinearity.5.weight", lambda t: t + 1), "expected equal values"),
        (
            replaced("transformer.layers.2.attention.position_indices", lambda t: t.flip(0)),
            r"layers\.2\.attention\.position_indices differs from the position table for the configured 8 buckets "
            "and 64 positions",
        ),
        (lambda s: {}, "contains no tensors"),
        (lambda s: [1, 2], "contains a list, expected a state dict"),
    ],
)
def test_wrong_tensors_are_named(attempt, change, complaint):
    with pytest.raises(ModelError, match=complaint) as raised:
        attempt(change)
    assert "\n" not in str(raised.value)


class Intruder:
    """An object that runs a command when it is unpickled."""

    def __reduce__(self):
        return os.system, ("echo stolen > " + os.environ["INTRUDER_FILE"],)


def test_code_in_a_pickle_is_never_run(attempt, tmp_path, monkeypatch):
    trace = tmp_path / "stolen"
    monkeypatch.setenv("INTRUDER_FILE", str(trace))
    with pytest.raises(ModelError, match="contains objects that may run code") as raised:
        attempt(lambda state: {**state, "intruder": Intruder()})
    assert "\n" not in str(raised.value)
    (tmp_path / "old.bin").write_bytes(pickle.dumps(Intruder(), protocol=2))
    with pytest.raises(ModelError):
        read_weights(tmp_path / "old.bin")
    array = np.empty(1, dtype=object)
    array[0] = Intruder()
    np.savez(tmp_path / "objects.npz", weights=array)
    with pytest.raises(ModelError, match="not a readable npz file of numbers"):
        read_weights(tmp_path / "objects.npz")
    assert not trace.exists()


@pytest.mark.parametrize("kind", [".bin", ".safetensors", ".npz"])
def test_a_truncated_file_is_told(published, tmp_path, kind):
    path = save(published("ltg"), tmp_path / "weights", kind)
    whole = path.read_bytes()
    for length in (0, 10, len(whole) // 2, len(whole) - 50):
        path.write_bytes(whole[:length])
        with pytest.raises(ModelError, match=str(path)) as raised:
            read_weights(path)
        assert "\n" not in str(raised.value)


def test_files_that_are_no_weights_are_told(tmp_path):
    with pytest.raises(ModelError, match=r"weights\.onnx: got a file that ends in '\.onnx'"):
        (tmp_path / "weights.onnx").write_bytes(b"x")
        read_weights(tmp_path / "weights.onnx")
    with pytest.raises(ModelError, match="is missing"):
        read_weights(tmp_path / "weights.bin")
    with zipfile.ZipFile(tmp_path / "other.npz", "w") as archive:
        archive.writestr("readme.txt", "no array")
    with pytest.raises(ModelError, match=r"other\.npz"):
        read_weights(tmp_path / "other.npz")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{", "not a readable JSON file"),
        (json.dumps({"vocab_size": 3}), "lacks hidden_size, intermediate_size"),
        (json.dumps({**CONFIG, "hidden_size": "wide"}), "hidden_size"),
    ],
)
def test_an_unusable_configuration_is_named(attempt, config, text, complaint):
    config.write_text(text)
    with pytest.raises(HatcheryError, match=complaint):
        attempt()


def test_the_command_imports_and_complains_in_one_line(published, config, tokenizers, tmp_path, repository):
    weights = save(published("elc_biased"), tmp_path / "weights", ".bin")
    output = tmp_path / "imported" / "manifest.json"
    script = [sys.executable, str(repository / "scripts" / "import_checkpoint.py")]
    files = ["--weights", weights, "--config", config, "--tokenizer", tokenizers["ltg"], "--output", output]
    done = forked.run([*script, *map(str, files)], capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr.startswith("error: ") and done.stderr.count("\n") == 1
    assert not output.exists()
    forked.run([*script, *map(str, files), "--layer-weighting", "biased"], check=True)
    assert load_pretrained(output)[0].config.layer_weighting == "biased"
