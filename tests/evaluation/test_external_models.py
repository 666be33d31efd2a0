"""Public models in the layout of the library transformers: tiny random ones, scored as the library itself would."""

import json
import shutil

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from hatchery.artifacts.manifests import read_manifest
from hatchery.errors import ConfigError, ModelError
from hatchery.evaluation.minimal_pairs.pairs import MinimalPair
from hatchery.evaluation.minimal_pairs.scoring import token_scores
from hatchery.evaluation.minimal_pairs.settings import ExternalModel
from hatchery.evaluation.minimal_pairs.stage import pair_scores, score_minimal_pairs
from hatchery.evaluation.minimal_pairs.transformers_model import load_transformers_model
from hatchery.raw.registration import open_source, register_source
from hatchery.runner import run_stage

transformers = pytest.importorskip("transformers")

CPU = torch.device("cpu")
TEXTS = ["The dogs sleep near an old house.", "The cat sleeps.", "Dogs, unhappily, sleep!", "The dogs sleeps."]
SIZE = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
NAMES = ["bert", "roberta", "distilbert", "gpt2", "opt"]
MASKED = {"bert", "roberta", "distilbert"}


def wordpiece():
    pieces = ["the", "dog", "##s", "sleep", "near", "an", "old", "house", "cat", "un", "##happ", "##ily", ".", ",", "!"]
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *pieces]
    backend = Tokenizer(models.WordPiece({name: i for i, name in enumerate(names)}, unk_token="[UNK]"))
    backend.normalizer = normalizers.BertNormalizer(lowercase=True)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    special = {"pad_token": "[PAD]", "unk_token": "[UNK]", "mask_token": "[MASK]"}
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=backend, cls_token="[CLS]", sep_token="[SEP]", model_max_length=32, **special
    )


def byte_level(template):
    names = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", *sorted(pre_tokenizers.ByteLevel.alphabet())]
    backend = Tokenizer(models.BPE({name: i for i, name in enumerate(names)}, []))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    if template:
        backend.post_processor = processors.TemplateProcessing(
            single=template, special_tokens=[("<s>", 0), ("</s>", 2)]
        )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=backend,
        bos_token="<s>",
        eos_token="</s>",
        cls_token="<s>",
        sep_token="</s>",
        pad_token="<pad>",
        unk_token="<unk>",
        mask_token="<mask>",
    )


def build(name):
    """A tokenizer and a model with random weights of one of the families of the tables' baselines."""
    t = transformers
    torch.manual_seed(len(name))
    match name:
        case "bert":
            tokenizer = wordpiece()
            config = t.BertConfig(vocab_size=len(tokenizer), intermediate_size=24, max_position_embeddings=40, **SIZE)
            network = t.BertForMaskedLM(config)
        case "distilbert":
            tokenizer = wordpiece()
            config = t.DistilBertConfig(vocab_size=len(tokenizer), dim=16, n_layers=2, n_heads=2, hidden_dim=24)
            network = t.DistilBertForMaskedLM(config)
        case "roberta":
            tokenizer = byte_level("<s> $A </s>")
            config = t.RobertaConfig(vocab_size=len(tokenizer), max_position_embeddings=66, pad_token_id=1, **SIZE)
            network = t.RobertaForMaskedLM(config)
        case "gpt2":
            tokenizer = byte_level(None)
            config = t.GPT2Config(vocab_size=len(tokenizer), n_embd=16, n_layer=2, n_head=2, n_positions=64)
            network = t.GPT2LMHeadModel(config)
        case "opt":
            tokenizer = byte_level("</s> $A")
            config = t.OPTConfig(
                vocab_size=len(tokenizer), ffn_dim=24, max_position_embeddings=64, word_embed_proj_dim=12, **SIZE
            )
            network = t.OPTForCausalLM(config)
    with torch.no_grad():  # fresh models are nearly uniform
        for parameter in network.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return tokenizer, network.eval()


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """Folders of stored models by family, and their registered sources."""
    made = {}

    def get(name):
        if name not in made:
            folder = tmp_path_factory.mktemp(name) / "model"
            for part in build(name):
                part.save_pretrained(folder)
            made[name] = register(folder)
        return made[name]

    return get


def register(folder):
    register_source(folder.parent.name, folder, folder.parent / "source.json")
    return open_source(folder.parent / "source.json")


def external(name):
    return ExternalModel("masked" if name in MASKED else "causal")


@torch.no_grad()
def naive(name, texts):
    """Token scores by the definition: one call of the library's class per token, all logits, its own encoding."""
    tokenizer, network = build(name)
    scores = []
    for text in texts:
        ids = tokenizer(text)["input_ids"] if name in MASKED else tokenizer(text, add_special_tokens=False)["input_ids"]
        ids = torch.tensor(ids if name in MASKED else [tokenizer.eos_token_id, *ids])
        values = []
        for position in range(1, len(ids) - (name in MASKED)):
            if name in MASKED:
                row = ids.clone()
                row[position] = tokenizer.mask_token_id
                logits = network(row[None]).logits[0, position]
            else:
                logits = network(ids[None, :position]).logits[0, -1]
            values.append(float(torch.log_softmax(logits, dim=-1)[ids[position]]))
        scores.append(values)
    return scores


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("tokens_per_batch", [1, 90, None])
def test_scores_are_those_of_one_call_of_the_library_per_token(stored, name, tokens_per_batch):
    model = load_transformers_model(stored(name), external(name), CPU)
    scores = token_scores(model, model.encode(TEXTS), "auto", tokens_per_batch)
    for values, expected in zip(scores, naive(name, TEXTS), strict=True):
        np.testing.assert_allclose(values, expected, atol=2e-5)


@pytest.mark.parametrize("name", sorted(MASKED))
def test_logits_of_masked_models_are_made_at_the_wanted_positions_only(stored, name):
    model = load_transformers_model(stored(name), external(name), CPU)
    seen = []
    model.network.get_output_embeddings().register_forward_hook(lambda module, inputs, output: seen.append(output))
    ids = torch.tensor([[2, 5, 6, 3], [2, 7, 8, 3]])
    chosen = model.logits_at(ids, torch.tensor([1, 6]))
    assert chosen.shape == (2, model.vocabulary_size) and seen[0].numel() == chosen.numel()
    full = model.network(input_ids=ids).logits.flatten(0, 1)[[1, 6]]
    torch.testing.assert_close(chosen, full, atol=1e-5, rtol=1e-5)


def test_words_of_a_wordpiece_tokenizer_are_masked_together(stored):
    model = load_transformers_model(stored("bert"), external("bert"), CPU)
    (sentence,) = model.encode(["The dogs unhappily sleep."], words=True)
    assert sentence.words == (0, 1, 1, 2, 2, 2, 3, 4)
    assert len(token_scores(model, [sentence], "pll_within_word_l2r")[0]) == 8


def test_special_tokens_spelled_out_in_a_sentence_are_text(stored):
    for name, spelled in (("bert", "The [MASK] sleep."), ("roberta", "The <mask> sleep."), ("gpt2", "The </s> sleep.")):
        model = load_transformers_model(stored(name), external(name), CPU)
        special = {model.tokenizer.mask_token_id, model.tokenizer.eos_token_id, model.tokenizer.sep_token_id}
        assert not special & set(model.encode([spelled])[0].ids), name


def test_a_leading_blank_changes_byte_level_ids_without_a_prefix_space_and_no_wordpiece_ids(stored):
    for name, changes in (("bert", False), ("roberta", True), ("gpt2", True)):
        model = load_transformers_model(stored(name), external(name), CPU)
        assert (model.encode([" The dogs"]) != model.encode(["The dogs"])) is changes, name


def test_the_limit_of_an_input_is_known_before_it_is_scored(stored):
    longest = {name: load_transformers_model(stored(name), external(name), CPU).longest_input for name in NAMES}
    # RoBERTa counts positions from the padding id + 1; the others have as many tokens as positions.
    assert longest == {"bert": 32, "roberta": 64, "distilbert": 32, "gpt2": 64, "opt": 64}
    model = load_transformers_model(stored("roberta"), external("roberta"), CPU)
    pairs = [MinimalPair("p", "f", "0", "a" * 62, "a")]
    assert pair_scores(pairs, model).tokens.tolist() == [[62, 1]]


SETTINGS = {
    "stage": "score_minimal_pairs",
    "suite": "mine",
    "format": "blimp",
    "files": "*.jsonl",
    "pairs_per_paradigm": None,
    "seed": 0,
    "scoring": "auto",
    "model_kind": "transformers",
}
ROWS = [
    {"sentence_good": "The dogs sleep.", "sentence_bad": "The dogs sleeps.", "UID": "agreement", "pairID": "0"},
    {"sentence_good": "The cat sleeps.", "sentence_bad": "The cat sleep.", "UID": "agreement", "pairID": "1"},
]


@pytest.mark.parametrize("name", ["bert", "gpt2"])
def test_the_stage_scores_an_external_model_and_says_what_it_was(stored, make_source, json_lines, tmp_path, name):
    source = make_source({"pairs.jsonl": json_lines(ROWS)})
    settings = {**SETTINGS, "external": {"architecture": external(name).architecture, "leading_blank": True}}
    model = stored(name)
    run_stage(
        score_minimal_pairs,
        settings,
        tmp_path / "out/manifest.json",
        runtime={"device": "cpu"},
        model=model.manifest,
        source=source.manifest,
    )
    measures = read_manifest(tmp_path / "out" / "manifest.json").measures
    expected = {"bert": ("pll", "masked"), "gpt2": ("left_to_right", "causal")}[name]
    assert (measures["scoring"], measures["architecture"]) == expected
    assert measures["model_kind"] == "transformers" and measures["leading_blank"] is True
    wrong = {**settings, "scoring": "left_to_right" if name == "bert" else "pll"}
    with pytest.raises(ConfigError, match="language model, this one is"):
        run_stage(
            score_minimal_pairs,
            wrong,
            tmp_path / "out/manifest.json",
            runtime={"device": "cpu"},
            model=model.manifest,
            source=source.manifest,
        )
    assert not (tmp_path / "out" / "manifest.json").exists()


def test_the_kind_of_model_and_its_options_must_fit(stored, make_source, json_lines, tmp_path):
    source = make_source({"pairs.jsonl": json_lines(ROWS)})
    for wrong in ({"external": None}, {"model_kind": "hatchery", "external": {"architecture": "masked"}}):
        with pytest.raises(ConfigError, match=r"score_minimal_pairs.external"):
            run_stage(
                score_minimal_pairs,
                {**SETTINGS, **wrong},
                tmp_path / "o" / "m.json",
                runtime={},
                model=source.manifest,
                source=source.manifest,
            )


def copy_of(source, tmp_path):
    folder = tmp_path / "copy" / "model"
    shutil.copytree(source.root, folder)
    return folder


def test_a_checkpoint_without_a_head_is_refused_instead_of_being_scored_at_random(tmp_path):
    tokenizer, network = build("bert")
    folder = tmp_path / "encoder" / "model"
    tokenizer.save_pretrained(folder)
    network.bert.save_pretrained(folder)
    with pytest.raises(ModelError, match=r"no masked language model: the weights of \d+ parts are missing"):
        load_transformers_model(register(folder), ExternalModel("masked"), CPU)


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
        load_transformers_model(register(folder), ExternalModel("masked"), CPU)
    assert "\n" not in str(caught.value) and not (tmp_path / "ran").exists()


@pytest.mark.parametrize(("name", "architecture"), [("gpt2", "masked"), ("roberta", "causal"), ("bert", "causal")])
def test_a_model_of_the_other_architecture_is_refused(stored, name, architecture):
    with pytest.raises(ModelError, match=f"cannot be loaded as a {architecture} language model"):
        load_transformers_model(stored(name), ExternalModel(architecture), CPU)


def test_a_file_is_no_model(make_source, tmp_path):
    path = tmp_path / "model.bin"
    path.write_bytes(b"x")
    register_source("file", path, tmp_path / "file.json")
    with pytest.raises(ModelError, match="must be registered as a folder, this source is a file"):
        load_transformers_model(open_source(tmp_path / "file.json"), ExternalModel("masked"), CPU)
