"""Tiny Transformers models with random weights, of the model families in the papers' tables and of other families."""

from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from hatchery.artifacts.manifests import Manifest, read_manifest
from hatchery.evaluation.stages.import_model import import_model
from hatchery.evaluation.stages.measure_surprisal import measure_surprisal
from hatchery.evaluation.ways_of_scoring import Architecture
from hatchery.raw.registration import RawSource, open_source, register_source
from hatchery.runner import run_stage

transformers: Any = pytest.importorskip("transformers")

SIZE = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
ARCHITECTURES: dict[str, Architecture] = {
    "bert": "masked",
    "roberta": "masked",
    "distilbert": "masked",
    "gpt2": "causal",
    "opt": "causal",
    "t5": "encoder_decoder",
    "bart": "encoder_decoder",
}
NAMES = list(ARCHITECTURES)
CLASSES: dict[Architecture, Any] = {
    "masked": transformers.AutoModelForMaskedLM,
    "causal": transformers.AutoModelForCausalLM,
    "encoder_decoder": transformers.AutoModelForSeq2SeqLM,
}
# The templates of RoBERTa and BART: special tokens around a text and around a pair.
ROBERTA_FRAMES = ("<s> $A </s>", "<s> $A </s> </s> $B </s>")
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,!"


def wordpiece(longest: int = 32) -> Any:
    """Return a tokenizer like BERT's."""
    pieces = ["the", "dog", "##s", "sleep", "near", "an", "old", "house", "cat", "un", "##happ", "##ily", ".", ",", "!"]
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *pieces]
    backend = Tokenizer(models.WordPiece({name: i for i, name in enumerate(names)}, unk_token="[UNK]"))
    backend.normalizer = normalizers.BertNormalizer(lowercase=True)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    special = {"pad_token": "[PAD]", "unk_token": "[UNK]", "mask_token": "[MASK]"}
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=backend, cls_token="[CLS]", sep_token="[SEP]", model_max_length=longest, **special
    )


def byte_level(single: str, pair: str) -> Any:
    """Return a byte-level tokenizer like those of RoBERTa, GPT-2, OPT and BART, which differ in their templates."""
    names = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", *sorted(pre_tokenizers.ByteLevel.alphabet())]
    backend = Tokenizer(models.BPE({name: i for i, name in enumerate(names)}, []))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    if single:
        backend.post_processor = processors.TemplateProcessing(
            single=single, pair=pair, special_tokens=[("<s>", 0), ("</s>", 2)]
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


def unigram() -> Any:
    """Return a tokenizer like T5's: SentencePiece pieces, no leading token, and sentinels instead of a mask token."""
    pieces = ["▁", "▁the", "▁dog", "▁cat", "▁sleep", "▁old", "s", *LETTERS.replace("s", "")]
    sentinels = [f"<extra_id_{i}>" for i in range(4)]
    entries = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)]
    entries += [(piece, -1.0 - i / 100) for i, piece in enumerate([*pieces, *sentinels])]
    backend = Tokenizer(models.Unigram(entries, unk_id=2))
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    backend.post_processor = processors.TemplateProcessing(
        single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)]
    )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=backend,
        pad_token="<pad>",
        eos_token="</s>",
        unk_token="<unk>",
        additional_special_tokens=sentinels,
    )


def build(name: str, positions: int = 64) -> tuple[Any, Any]:
    """Return a tokenizer and a model with random weights and `positions` positions."""
    sizes: dict[str, Any]
    match name:
        case "bert":
            tokenizer = wordpiece(positions // 2)
            sizes = {"intermediate_size": 24, "max_position_embeddings": positions, **SIZE}
        case "distilbert":
            tokenizer = wordpiece()
            sizes = {"dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 24}
        case "roberta":
            tokenizer = byte_level(*ROBERTA_FRAMES)
            sizes = {"max_position_embeddings": positions + 2, "pad_token_id": 1, **SIZE}
        case "gpt2":
            tokenizer = byte_level("", "")
            sizes = {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": positions}
        case "opt":
            tokenizer = byte_level("</s> $A", "</s> $A </s> $B")
            sizes = {"ffn_dim": 24, "max_position_embeddings": positions, "word_embed_proj_dim": 16, **SIZE}
        case "t5":
            tokenizer = unigram()
            sizes = {"d_model": 16, "d_kv": 8, "d_ff": 24, "num_heads": 2, "num_layers": 2, "num_decoder_layers": 3}
            sizes["decoder_start_token_id"] = 0
        case "bart":
            tokenizer = byte_level(*ROBERTA_FRAMES)
            sizes = {"d_model": 16, "max_position_embeddings": positions, "pad_token_id": 1}
            for side in ("encoder", "decoder"):
                sizes |= {f"{side}_layers": 2, f"{side}_attention_heads": 2, f"{side}_ffn_dim": 24}
    torch.manual_seed(len(name))
    config = transformers.AutoConfig.for_model(name, vocab_size=len(tokenizer), **sizes)
    network = CLASSES[ARCHITECTURES[name]].from_config(config)
    with torch.no_grad():  # Because fresh models predict nearly uniformly.
        for parameter in network.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return tokenizer, network.eval()


def register(folder: Path) -> RawSource:
    register_source(folder.parent.name, folder, folder.parent / "source.json")
    return open_source(folder.parent / "source.json")


def import_settings(architecture: str, leading_blank: bool | None = None) -> dict[str, Any]:
    return {
        "stage": "import_model",
        "stage_version": 1,
        "architecture": architecture,
        "leading_blank": leading_blank,
    }


def imported(folder: Path, architecture: str, output: Path, leading_blank: bool | None = None) -> Path:
    """Import the model in `folder` to `output` and return its manifest."""
    run_stage(
        import_model,
        import_settings(architecture, leading_blank),
        output / "manifest.json",
        source=register(folder).manifest,
    )
    return output / "manifest.json"


def measured(source: RawSource, model: Path, output: Path, **settings: Any) -> Manifest:
    """Measure the surprisal of the words of a source."""
    told = {"stage": "measure_surprisal", "stage_version": 2, "name": "mine", **settings}
    manifest = output / "manifest.json"
    run_stage(measure_surprisal, told, manifest, runtime={"device": "cpu"}, model=model, source=source.manifest)
    return read_manifest(manifest)


def staged(stage: Any, output: Path, model: Path, settings: dict[str, Any], **inputs: Any) -> Manifest:
    """Run a stage and return its manifest."""
    told = {"stage": stage.__name__, "stage_version": 1, **settings}
    run_stage(stage, told, output / "manifest.json", runtime={"device": "cpu"}, model=model, **inputs)
    return read_manifest(output / "manifest.json")
