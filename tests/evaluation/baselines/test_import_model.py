"""Importing models of the library transformers: complete, checked, without foreign code, with path-independent
bytes."""

import json
import shutil
from types import SimpleNamespace

import pytest
import torch
from baseline_cases import ARCHITECTURES, NAMES, build, import_settings, imported
from safetensors.torch import load_file
from tokenizers import Tokenizer as Backend
from tokenizers import models

from hatchery.artifacts.manifests import read_manifest
from hatchery.errors import ModelError
from hatchery.evaluation.baselines.loading import ATTENTIONS, NO_LIMIT, BaselineTokenizer, load_folder
from hatchery.evaluation.runtime import load_sentence_model
from hatchery.evaluation.stages.import_model import import_model
from hatchery.raw.registration import open_source, register_source
from hatchery.runner import run_stage


def contents(manifest):
    """Return the digests of the outputs by name, and the measures."""
    found = read_manifest(manifest)
    return {output.path.name: output.sha256 for output in found.outputs}, found.measures


def copy_of(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "copy" / "model")
    return tmp_path / "copy" / "model"


@pytest.mark.parametrize("name", ["bert", "opt", "t5"])
def test_an_imported_model_lies_whole_beside_its_sizes(manifest_of, name):
    manifest = read_manifest(manifest_of(name))
    manifest.verify()
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= {path.path.name for path in manifest.outputs}
    network = build(name)[1]
    measures = manifest.measures
    assert measures["parameters"] == network.num_parameters()
    assert measures["class"] == type(network).__name__ and measures["architecture"] == ARCHITECTURES[name]
    assert (measures["layers"], measures["hidden_size"]) == (2, 16)
    assert measures["vocabulary_rows"] == network.config.vocab_size
    assert measures["model_type"] == name and measures["embedding_size"] == network.get_input_embeddings().embedding_dim
    assert measures["tied"] is (network.get_output_embeddings().weight is network.get_input_embeddings().weight)
    assert measures["longest_input"] == {"bert": 32, "opt": 64, "t5": None}[name]
    assert "generation_config.json" not in {path.name for path in manifest.folder.iterdir()}


def test_a_repeated_import_leaves_no_file_of_the_import_before(stored, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "merges.txt").write_text("old")
    manifest = read_manifest(imported(stored("bert"), "masked", tmp_path / "out"))
    assert "merges.txt" not in {path.path.name for path in manifest.outputs}


def test_the_bytes_of_an_import_do_not_depend_on_where_the_model_lay(stored, manifest_of, tmp_path):
    again = imported(copy_of(stored("t5"), tmp_path), "encoder_decoder", tmp_path / "again")
    assert contents(again) == contents(manifest_of("t5"))


CLS, SEP, BOS, EOS, PAD, UNKNOWN = range(2, 8)
SPECIAL = {"cls": CLS, "sep": SEP, "bos": BOS, "eos": EOS, "pad": PAD, "unk": UNKNOWN}


@pytest.mark.parametrize(
    ("architecture", "absent", "template", "frame", "pad"),
    [
        ("masked", (), False, (CLS, [SEP], [SEP]), PAD),
        ("causal", (), False, (BOS, [EOS], [EOS]), PAD),
        ("encoder_decoder", (), False, (None, [EOS], [EOS]), PAD),
        # Without a start token, the end token begins a text.
        ("causal", ("bos",), False, (EOS, [EOS], [EOS]), PAD),
        ("masked", ("cls", "pad"), False, (SEP, [SEP], [SEP]), EOS),
        ("masked", ("eos", "pad"), False, (CLS, [SEP], [SEP]), CLS),
        # By the rules of a template, only the template adds tokens. So it is for a masked model without `sep_token`.
        ("masked", (), True, (None, [], []), PAD),
        ("masked", ("sep",), False, (None, [], []), PAD),
        ("causal", (), True, (None, [], []), PAD),
        ("causal", ("bos", "eos"), True, (None, [], []), PAD),
    ],
)
def test_a_tokenizer_without_a_template_frames_texts_as_the_architecture_does(
    architecture, absent, template, frame, pad
):
    backend = Backend(models.WordLevel({"a": 0, "[UNK]": 1}, unk_token="[UNK]"))
    ids = {f"{role}_token_id": None if role in absent else index for role, index in SPECIAL.items()}
    library = SimpleNamespace(backend_tokenizer=backend, model_max_length=10**30, **ids)
    its = BaselineTokenizer(library, architecture, "here", template)
    assert ((its.cls_id, its.between_ids, its.end_ids), its.pad_id) == (frame, pad)
    assert (its.unknown_id, its.bos_id) == (UNKNOWN, None if "bos" in absent else BOS)
    assert its.longest_input is None and not its.numbers_texts and its.before == ()
    library.model_max_length = NO_LIMIT - 1
    assert its.longest_input == NO_LIMIT - 1


def test_a_start_of_the_decoder_that_stands_with_the_rules_of_generation_is_kept(stored, tmp_path):
    folder = copy_of(stored("t5"), tmp_path)
    config = json.loads((folder / "config.json").read_text())
    start = config.pop("decoder_start_token_id")
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "generation_config.json").write_text(json.dumps({"decoder_start_token_id": start}))
    model = load_sentence_model(imported(folder, "encoder_decoder", tmp_path / "out"), torch.device("cpu"))
    assert model.frame.before == (start,)


def test_a_checkpoint_without_a_head_is_refused_instead_of_being_scored_at_random(tmp_path):
    tokenizer, network = build("bert")
    folder = tmp_path / "encoder" / "model"
    tokenizer.save_pretrained(folder)
    network.bert.save_pretrained(folder)
    with pytest.raises(
        ModelError, match=r"cannot be loaded as a masked language model: \d+ weight tensors are missing"
    ):
        imported(folder, "masked", tmp_path / "out")


def test_code_that_comes_with_the_weights_is_never_run(stored, tmp_path):
    folder = copy_of(stored("bert"), tmp_path)
    config = json.loads((folder / "config.json").read_text())
    config |= {
        "model_type": "foreign",
        "auto_map": dict.fromkeys(("AutoConfig", "AutoModelForMaskedLM"), "evil.Evil"),
    }
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nclass Evil: pass\n")
    with pytest.raises(ModelError, match="cannot be loaded as a masked language model") as caught:
        imported(folder, "masked", tmp_path / "out")
    assert "\n" not in str(caught.value) and not (tmp_path / "ran").exists()


@pytest.mark.parametrize("key", ["_attn_implementation", "attn_implementation"])
def test_a_kernel_that_a_config_names_is_not_asked_for(key, stored, tmp_path):
    folder = copy_of(stored("bert"), tmp_path)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {key: "some/kernel"}))
    found, expected = (load_folder(each, "masked").network.config for each in (folder, stored("bert")))
    assert found._attn_implementation == expected._attn_implementation in ATTENTIONS


def test_files_outside_of_the_folder_and_adapters_are_refused(stored, tmp_path):
    folder = copy_of(stored("bert"), tmp_path)
    (folder / "model.safetensors").rename(folder.parent / "outside.safetensors")
    weights = load_file(folder.parent / "outside.safetensors")
    index = {"metadata": {}, "weight_map": dict.fromkeys(weights, "../outside.safetensors")}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    message = (
        r"model\.safetensors\.index\.json: names the file '\.\./outside\.safetensors', expected files of this folder"
    )
    with pytest.raises(ModelError, match=message):
        imported(folder, "masked", tmp_path / "out")
    (folder / "model.safetensors.index.json").unlink()
    (folder.parent / "outside.safetensors").rename(folder / "model.safetensors")
    (folder / "adapter_config.json").write_text("{}")
    with pytest.raises(
        ModelError,
        match=r"contains an adapter \(adapter_config\.json\), which the import would leave out; merge the adapter",
    ):
        imported(folder, "masked", tmp_path / "out")


def test_code_in_the_weights_is_never_run_and_nobody_is_told_how_to_run_it(stored, tmp_path):
    folder = copy_of(stored("bert"), tmp_path)
    (folder / "model.safetensors").unlink()
    torch.save({"bert.embeddings.word_embeddings.weight": tmp_path}, folder / "pytorch_model.bin")
    with pytest.raises(ModelError, match="its weights file holds objects other than tensors") as caught:
        imported(folder, "masked", tmp_path / "out")
    assert "weights_only" not in str(caught.value) and "\n" not in str(caught.value)


WRONG = [(name, other) for name in NAMES for other in sorted({*ARCHITECTURES.values()} - {ARCHITECTURES[name]})]


@pytest.mark.parametrize(("name", "architecture"), WRONG)
def test_a_model_of_another_architecture_is_refused(stored, tmp_path, name, architecture):
    what = architecture.replace("_", "-")
    with pytest.raises(ModelError, match=f"cannot be loaded as a {what} language model|no {what} language model"):
        imported(stored(name), architecture, tmp_path / "out")


def test_a_file_is_no_model(tmp_path):
    path = tmp_path / "model.bin"
    path.write_bytes(b"x")
    register_source("file", path, tmp_path / "file.json")
    source = open_source(tmp_path / "file.json").manifest
    with pytest.raises(ModelError, match="must be registered as a folder, this source is a file"):
        run_stage(import_model, import_settings("masked"), tmp_path / "out/manifest.json", source=source)
